package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/ledger"
)

func replayCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "print a stream, or all events in their one order",
		ArgsUsage: "[STREAM]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Value: "0", Usage: "first version with STREAM, else first index"},
			&cli.StringFlag{Name: "limit", Usage: "at most `N` events"},
			&cli.BoolFlag{Name: "follow", Usage: "wait for more until interrupted"},
			&cli.StringFlag{Name: "format", Usage: "json, ndjson or diag; diag when omitted, json with --json"},
		},
		Action: p.replay,
	}
}

// replayed is what to print.
type replayed struct {
	stream string // empty: all
	from   uint64
	limit  uint64 // 0: no limit
	follow bool
	format string
}

func (p *program) replay(c *cli.Context) error {
	r, err := p.replayed(c)
	if err != nil {
		return err
	}
	return readHome(c, func(h *home) error {
		print, finish := p.eventPrinter(r.format)
		n := uint64(0)
		for e, err := range r.events(c.Context, h.store) {
			if r.follow && errors.Is(err, context.Canceled) {
				break
			}
			if err != nil {
				return err
			}
			if err := print(e); err != nil {
				return err
			}
			if n++; n == r.limit {
				break
			}
		}
		return finish()
	})
}

func (p *program) replayed(c *cli.Context) (replayed, error) {
	r := replayed{follow: c.Bool("follow"), format: c.String("format")}
	args := append(append([]string{}, p.args...), p.tail...)
	if len(args) > 1 {
		return r, usage("unexpected argument %q", args[1])
	}
	if len(args) == 1 {
		stream, err := ledger.ParseStreamID(args[0])
		if err != nil {
			return r, fail(exitUsage, "stream_name", "%w", err)
		}
		r.stream = string(stream)
	}
	var err error
	if r.from, err = parseCount("--from", c.String("from")); err != nil {
		return r, err
	}
	if s := c.String("limit"); s != "" {
		if r.limit, err = parseCount("--limit", s); err != nil {
			return r, err
		}
		if r.limit == 0 {
			return r, usage("--limit 0 prints nothing")
		}
	}
	switch {
	case r.format == "" && p.ui.json:
		r.format = "json"
	case r.format == "":
		r.format = "diag"
	case r.format != "json" && r.format != "ndjson" && r.format != "diag":
		return r, usage("--format %q is none of json, ndjson, diag", r.format)
	case p.ui.json && r.format != "json":
		return r, usage("--json prints one document; it contradicts --format %s", r.format)
	}
	if r.follow && r.format == "json" {
		return r, usage("--follow never ends, and one JSON document must").hint("use --format ndjson without --json")
	}
	return r, nil
}

func (r replayed) events(ctx context.Context, store ledger.Store) iter.Seq2[ledger.Event, error] {
	switch {
	case !r.follow && r.stream == "":
		return store.ReadAll(ctx, ledger.Index(r.from))
	case !r.follow:
		return store.ReadStream(ctx, ledger.StreamID(r.stream), ledger.Version(r.from))
	case r.stream == "":
		return store.Subscribe(ctx, ledger.Index(r.from))
	}
	return r.followStream(ctx, store)
}

// followStream reads the stream to its end, then what is added to the ledger after that.
func (r replayed) followStream(ctx context.Context, store ledger.Store) iter.Seq2[ledger.Event, error] {
	return func(yield func(ledger.Event, error) bool) {
		next, from := ledger.Version(r.from), ledger.Index(0)
		for e, err := range store.ReadStream(ctx, ledger.StreamID(r.stream), next) {
			if !yield(e, err) || err != nil {
				return
			}
			next, from = e.Version+1, e.Index+1
		}
		for e, err := range store.Subscribe(ctx, from) {
			if err == nil && (string(e.Stream) != r.stream || e.Version < next) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// eventPrinter prints events one by one in a format; finish ends the document.
func (p *program) eventPrinter(format string) (print func(ledger.Event) error, finish func() error) {
	n := 0
	switch format {
	case "ndjson":
		return func(e ledger.Event) error {
			b, err := json.Marshal(viewEvent(e))
			if err != nil {
				return fmt.Errorf("event %d: %w", e.Index, err)
			}
			return p.printf("%s\n", b)
		}, func() error { return nil }
	case "json":
		return func(e ledger.Event) error {
				b, err := json.MarshalIndent(viewEvent(e), "  ", "  ")
				if err != nil {
					return fmt.Errorf("event %d: %w", e.Index, err)
				}
				before := "[\n  "
				if n++; n > 1 {
					before = ",\n  "
				}
				return p.printf("%s%s", before, b)
			}, func() error {
				if n == 0 {
					return p.printf("[]\n")
				}
				return p.printf("\n]\n")
			}
	}
	return func(e ledger.Event) error {
		return p.printf("%d %s %d %s %s\n  %s\n", e.Index, e.Stream, e.Version, visible(e.Type), stamp(e.Time), diagnose(e.Media, e.Data))
	}, func() error { return nil }
}
