package main

import (
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

func appendCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "append",
		Usage:     "append the bytes on stdin to a stream of your own",
		ArgsUsage: "STREAM",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "type", Usage: "event `TYPE`"},
			&cli.StringFlag{Name: "expect", Usage: "the stream's last `VERSION`, or none"},
			&cli.StringFlag{Name: "media", Value: "application/octet-stream", Usage: "media `TYPE` of the bytes"},
		},
		Action: p.append,
	}
}

func (p *program) append(c *cli.Context) error {
	args, err := p.positional("STREAM")
	if err != nil {
		return err
	}
	stream, err := userStream(args[0])
	if err != nil {
		return err
	}
	expected, err := expectedVersion(c.String("expect"))
	if err != nil {
		return err
	}
	typ := c.String("type")
	if typ == "" {
		return usage("--type is missing")
	}
	if journal.IsProductType(typ) {
		return fail(exitUsage, "type_reserved", "event type %q belongs to the product", typ).hint("choose another name")
	}
	data, err := io.ReadAll(io.LimitReader(p.in, ledger.MaxData+1))
	if err != nil {
		return fail(exitInternal, codeInternal, "stdin can't be read: %w", err)
	}
	nonce, err := newNonce()
	if err != nil {
		return err
	}
	event := ledger.Prepared{
		Type: typ, Time: time.Now().UnixNano(), Media: c.String("media"), Data: data,
		Meta: evidence.Marshal(evidence.Meta{Schema: evidence.SchemaVersion, Actor: "user", Nonce: nonce}),
	}
	if err := ledger.CheckAppend(stream, expected, []ledger.Prepared{event}); err != nil {
		return fail(exitUsage, "event_refused", "%w", err)
	}
	return withHome(c, actorOperator, func(h *home) error {
		done, err := h.store.Append(c.Context, stream, expected, event)
		if err != nil {
			return err
		}
		e := done.Last()
		v := struct {
			Stream  ledger.StreamID `json:"stream"`
			Version ledger.Version  `json:"version"`
			Index   ledger.Index    `json:"index"`
			ID      string          `json:"id"`
		}{e.Stream, e.Version, e.Index, e.ID().String()}
		if p.ui.json {
			return p.ui.printJSON(v)
		}
		return p.printf("stream %s version %d index %d id %s\n", v.Stream, v.Version, v.Index, v.ID)
	})
}

func userStream(name string) (ledger.StreamID, error) {
	stream, err := ledger.ParseStreamID(name)
	if err != nil {
		return "", fail(exitUsage, "stream_name", "%w", err)
	}
	if journal.IsProductStream(stream) {
		return "", fail(exitUsage, "stream_reserved", "stream %q belongs to the product", stream).
			hint("choose a name that is not ledger and does not start with attempt-, change-, policy-, runtime- or trial-")
	}
	return stream, nil
}

func expectedVersion(s string) (ledger.Version, error) {
	if s == "none" {
		return ledger.NoStream, nil
	}
	v, err := strconv.ParseUint(s, 10, 62)
	switch {
	case s == "":
		return 0, usage("--expect is missing").hint("write --expect none for a new stream, or its last version")
	case err != nil:
		return 0, usage("--expect %q is neither none nor a version from 0", s)
	}
	return ledger.Version(v), nil
}
