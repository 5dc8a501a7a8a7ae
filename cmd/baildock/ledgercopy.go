package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/ledger"
)

func ledgerCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "ledger",
		Usage: "move a ledger between a file and a cluster",
		Subcommands: []*cli.Command{{
			Name:      "copy",
			Usage:     "copy a whole ledger to an empty place, or go on where a copy ended; both then have the same root",
			ArgsUsage: "FROM TO",
			Action:    p.ledgerCopy,
		}},
	}
}

// copied is what a copy did.
type copied struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Before uint64 `json:"before"` // events that the target had
	Events uint64 `json:"events"` // that it has now
	Blobs  uint64 `json:"blobs"`  // stored by this copy, or found there
	Absent uint64 `json:"absent"` // blobs that events name and the source doesn't have
	Unread uint64 `json:"unread"` // events that this version can't read: blobs they name weren't copied
	Root   string `json:"root"`
}

func (p *program) ledgerCopy(c *cli.Context) error {
	args, err := p.positional("FROM", "TO")
	if err != nil {
		return err
	}
	var at [2]ledgerAt
	for i, name := range []string{"FROM", "TO"} {
		if at[i], err = parseLedger(args[i]); err != nil {
			return usage("%s: %w", name, err)
		}
	}
	if at[0] == at[1] {
		return usage("FROM and TO are the same ledger, %q", at[0])
	}
	from, err := at[0].open(c.Context, "", true)
	if err != nil {
		return ledgerFailure(at[0], err)
	}
	to, err := at[1].open(c.Context, "", false)
	if err != nil {
		return errors.Join(ledgerFailure(at[1], err), from.Close())
	}
	v, err := copyLedger(c.Context, from, to, p.ui.bar("copy"))
	if err := errors.Join(err, from.Close(), to.Close()); err != nil {
		return err
	}
	v.From, v.To = at[0].String(), at[1].String()
	if p.ui.json {
		return p.ui.printJSON(v)
	}
	if v.Unread > 0 {
		p.ui.say(fmt.Sprintf("note: this version can't read %d of the events; blobs that they name were not copied", v.Unread))
	}
	return p.printf("copied %d events and %d blobs to %s\n%d events, root %s\n%d blobs that events name are not in the source\nsign a checkpoint there before going on: baildock --ledger %s checkpoint sign\n",
		v.Events-v.Before, v.Blobs, v.To, v.Events, v.Root, v.Absent, v.To)
}

// copyLedger appends to a ledger what another has and it hasn't. The target must be a prefix of the
// source. Events keep their order, so that the roots are equal; blobs come before the events that
// name them. It can be interrupted anywhere and run again.
func copyLedger(ctx context.Context, from, to ledger.Ledger, progress func(done, total uint64)) (copied, error) {
	var v copied
	size, err := from.Size(ctx)
	if err != nil {
		return v, err
	}
	if v.Before, err = to.Size(ctx); err != nil {
		return v, err
	}
	if v.Before > size {
		return v, notPrefix("the target has %d events, the source only %d", v.Before, size)
	}
	there, err := to.Root(ctx, v.Before)
	if err != nil {
		return v, err
	}
	here, err := from.Root(ctx, v.Before)
	if err != nil {
		return v, err
	}
	if there != here {
		return v, notPrefix("the target's %d events have root %s, the source's first %d have %s", v.Before, there, v.Before, here)
	}
	m := mover{ctx: ctx, from: from, to: to, v: &v, progress: progress, total: size}
	for e, err := range from.ReadAll(ctx, ledger.Index(v.Before)) {
		if err != nil {
			return v, err
		}
		if err := m.add(e); err != nil {
			return v, err
		}
	}
	if err := m.flush(); err != nil {
		return v, err
	}
	if v.Events, err = to.Size(ctx); err != nil {
		return v, err
	}
	root, err := to.Root(ctx, v.Events)
	if err != nil {
		return v, err
	}
	want, err := from.Root(ctx, v.Events)
	if err != nil {
		return v, err
	}
	if root != want {
		return v, notPrefix("somebody wrote to the target meanwhile: its %d events have root %s, the source's %s", v.Events, root, want)
	}
	v.Root = root.String()
	return v, nil
}

func notPrefix(format string, args ...any) *failure {
	return fail(exitBadEvidence, "not_a_prefix", format, args...).hint("copy to an empty place: a new file, or another ?ledger=NAME")
}

// mover appends events of one stream that stand next to each other together.
type mover struct {
	ctx      context.Context
	from, to ledger.Ledger
	v        *copied
	progress func(done, total uint64)
	total    uint64
	events   []ledger.Event
	bytes    int
}

func (m *mover) add(e ledger.Event) error {
	size := len(e.Meta) + len(e.Data)
	if n := len(m.events); n > 0 && (m.events[0].Stream != e.Stream || n == ledger.MaxBatch || m.bytes+size > ledger.MaxAppend) {
		if err := m.flush(); err != nil {
			return err
		}
	}
	if err := m.blobs(e); err != nil {
		return fmt.Errorf("index %d: %w", e.Index, err)
	}
	m.events = append(m.events, e)
	m.bytes += size
	return nil
}

func (m *mover) flush() error {
	if len(m.events) == 0 {
		return nil
	}
	first := m.events[0]
	prepared := make([]ledger.Prepared, len(m.events))
	for i, e := range m.events {
		prepared[i] = e.Prepared()
	}
	done, err := m.to.Append(m.ctx, first.Stream, first.Version-1, prepared...)
	if err != nil {
		return fmt.Errorf("index %d: %w", first.Index, err)
	}
	for i, e := range done.Events {
		if e.Index != m.events[i].Index || e.Leaf() != m.events[i].Leaf() {
			return notPrefix("index %d of the source got index %d there: somebody else writes to the target", m.events[i].Index, e.Index)
		}
	}
	m.progress(uint64(done.Last().Index)+1, m.total)
	m.events, m.bytes = m.events[:0], 0
	return nil
}

// blobs copies those an event names. Events of users name none that the product knows of.
func (m *mover) blobs(e ledger.Event) error {
	if !journal.IsProductStream(e.Stream) {
		return nil
	}
	payload, _, err := journal.Decode(e)
	if err != nil {
		m.v.Unread++
		return nil
	}
	for _, mention := range blobMentions(payload) {
		keys := []ledger.BlobKey{mention.Plain}
		if mention.Ref != nil {
			keys = []ledger.BlobKey{ledger.BlobKey(mention.Ref.Salted), ledger.BlobKey(mention.Ref.Descriptor)}
		}
		for _, key := range keys {
			b, err := m.from.Get(m.ctx, key)
			var absent *ledger.BlobAbsentError
			if errors.As(err, &absent) {
				m.v.Absent++
				continue
			}
			if err == nil {
				err = m.to.Put(m.ctx, b)
			}
			if err != nil {
				return err
			}
			m.v.Blobs++
		}
	}
	return nil
}
