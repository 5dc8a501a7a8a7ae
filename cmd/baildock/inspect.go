package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/containment"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/verify"
)

func inspectCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show what lies in a bundle, without verifying it",
		ArgsUsage: "FILE",
		Action:    p.inspect,
	}
}

// inspection is a bundle taken apart. Nothing in it was checked.
type inspection struct {
	Verdict    verify.Verdict    `json:"verdict"` // not_checked, always
	Header     headerView        `json:"header"`
	Ledger     evidence.LedgerID `json:"ledger"`
	Origin     string            `json:"origin"`
	At         uint64            `json:"at"`
	Checkpoint string            `json:"checkpoint"`
	Streams    []streamView      `json:"streams"`
	Blobs      []blobView        `json:"blobs"`
	Missing    []bundle.Missing  `json:"missing"`
	Schemas    []bundle.Schema   `json:"schemas"`

	Containment []containment.Evidence `json:"containment"` // of each judged attempt, if its history folds
}

type headerView struct {
	Alg         int64          `json:"alg"`
	ContentType string         `json:"content_type"`
	KeyID       evidence.KeyID `json:"kid"`
	Issuer      string         `json:"iss"`
	Subject     string         `json:"sub"`
}

type streamView struct {
	Name   string      `json:"name"`
	Role   bundle.Role `json:"role"`
	Events []eventView `json:"events"`
}

type blobView struct {
	Digest bundle.BlobDigest `json:"digest"`
	Bytes  int               `json:"bytes"`
}

func (p *program) inspect(*cli.Context) error {
	args, err := p.positional("FILE")
	if err != nil {
		return err
	}
	file, err := readBundle(args[0])
	if err != nil {
		return err
	}
	v, err := takeApart(file)
	if err != nil {
		return fail(exitBadEvidence, "bundle_unparsable", "%q is no bundle: %w", args[0], err)
	}
	if p.ui.json {
		if err := p.ui.printJSON(v); err != nil {
			return err
		}
		return verdict(exitNotChecked)
	}
	if err := p.printf("%s", v.text()); err != nil {
		return err
	}
	p.note("nothing was verified: baildock verify %s --key ledger.pub", visible(args[0]))
	return verdict(exitNotChecked)
}

func takeApart(file []byte) (inspection, error) {
	env, err := bundle.UnmarshalEnvelope(file)
	if err != nil {
		return inspection{}, err
	}
	b, err := bundle.Unmarshal(env.Payload)
	if err != nil {
		return inspection{}, err
	}
	h := env.Protected
	v := inspection{
		Verdict: verify.NotChecked,
		Header:  headerView{h.Alg, h.ContentType, h.KeyID, h.Claims.Issuer, h.Claims.Subject},
		Ledger:  b.Ledger.ID, Origin: b.Ledger.Origin, At: b.At, Checkpoint: string(b.Checkpoint),
		Streams: []streamView{}, Blobs: []blobView{}, Missing: append([]bundle.Missing{}, b.Missing...),
		Schemas: append([]bundle.Schema{}, b.Schemas...), Containment: []containment.Evidence{},
	}
	for _, s := range b.Streams {
		events, err := s.Open()
		if err != nil {
			return v, err
		}
		sv := streamView{Name: s.Name, Role: s.Role, Events: []eventView{}}
		for _, e := range events {
			sv.Events = append(sv.Events, viewEvent(e))
		}
		v.Streams = append(v.Streams, sv)
	}
	for _, a := range verify.Verify(file, verify.Policy{}).Attempts {
		v.Containment = append(v.Containment, a.Containment)
	}
	for _, blob := range b.Blobs {
		v.Blobs = append(v.Blobs, blobView{blob.Digest, len(blob.Data)})
	}
	return v, nil
}

func (v inspection) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "%s\n", visible(fmt.Sprintf(format, args...))) }
	line("NOT VERIFIED: this is what the file says of itself")
	line("header     alg %d, content type %s, kid %s", v.Header.Alg, v.Header.ContentType, v.Header.KeyID)
	line("           iss %s, sub %s", v.Header.Issuer, v.Header.Subject)
	line("ledger     %s, origin %s, as of index %d", v.Ledger, v.Origin, v.At)
	for _, s := range v.Streams {
		line("stream     %s (%s)", s.Name, s.Role)
		for _, e := range s.Events {
			line("  %d %d %s %s", e.Index, e.Version, e.Type, e.Time)
			line("    %s", diagnose(e.Media, e.Data))
		}
	}
	for _, blob := range v.Blobs {
		line("blob       %s %d bytes", blob.Digest, blob.Bytes)
	}
	for _, c := range v.Containment {
		line("containment %s", c.Attempt)
		line("  %s", c.JSON())
	}
	for _, m := range v.Missing {
		line("missing    %s %s %s", m.Digest, m.Class, m.Why)
	}
	for _, s := range v.Schemas {
		line("schema     %s %s", s.Name, s.Digest)
	}
	return b.String()
}
