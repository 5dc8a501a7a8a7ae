package warden

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/workspace"
)

// Codes of a source that could not be put in place or removed, beside those of package source.
const (
	sourceFailed  = "source_failed" // an error of this machine, not of the source
	sourceLeft    = "source_leftover"
	snapshotStuck = "remove_failed"
)

// materialize puts the source in place and records it, or records why it can't be (req B6). False
// without an error means that the attempt ends here.
func (k *work) materialize(ctx context.Context) (bool, error) {
	k.progress("snapshot", "")
	snap, err := k.copySource(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(k.rec.Record(k.life, evidence.StopOrdered{Cause: evidence.StopCancelled}), k.leftover(err))
		return false, err
	}
	if err != nil {
		return false, k.refuseSource(err)
	}
	k.snapshot = &snap
	e, kept, err := k.describe(snap)
	if err == nil {
		err = k.rec.Keep(k.life, kept...)
	}
	if err == nil {
		err = k.rec.Record(k.life, e)
	}
	if err != nil {
		// Nothing mounts it yet, and nothing says that it is there.
		err = errors.Join(fmt.Errorf("record the snapshot: %w", err), snap.Remove())
		k.Home.tidy(k.req.Attempt, k.generation())
		return false, err
	}
	k.progress("snapshot", fmt.Sprintf("%d files", e.Files))
	return true, nil
}

func (k *work) copySource(ctx context.Context) (source.Snapshot, error) {
	parent, err := k.Home.execution(k.req.Attempt, k.generation())
	if err != nil {
		return source.Snapshot{}, err
	}
	return source.Materialize(ctx, source.Request{Subject: k.subject, Parent: parent, Name: "snapshot", Reserved: k.Reserved})
}

func (k *work) generation() uint64 { return k.appender.Attempt().Claimed.Generation }

// describe makes the event of a snapshot in place.
func (k *work) describe(snap source.Snapshot) (evidence.SourceMaterialized, []evidence.Withholdable, error) {
	var e evidence.SourceMaterialized
	digest, err := snap.Manifest.Digest()
	if err != nil {
		return e, nil, err
	}
	encoded, err := snap.Manifest.Marshal()
	if err != nil {
		return e, nil, err
	}
	entries, err := k.withhold(encoded)
	if err != nil {
		return e, nil, err
	}
	kept := []evidence.Withholdable{entries}
	e = evidence.SourceMaterialized{
		Manifest: digest, Files: uint64(len(snap.Manifest.Entries)), Bytes: snap.Manifest.Bytes(), Entries: entries.Ref,
		Skipped: uint64(len(snap.Skipped)),
	}
	if len(snap.Skipped) > 0 {
		var lines strings.Builder
		for _, s := range snap.Skipped {
			fmt.Fprintf(&lines, "%q: %s\n", s.Path, s.Why)
		}
		detail, err := k.withhold([]byte(lines.String()))
		if err != nil {
			return e, nil, err
		}
		kept = append(kept, detail)
		e.Detail = &detail.Ref
	}
	return e, kept, nil
}

func (k *work) withhold(b []byte) (evidence.Withholdable, error) {
	var salt evidence.Salt
	if _, err := io.ReadFull(k.Random, salt[:]); err != nil {
		return evidence.Withholdable{}, fmt.Errorf("draw a salt: %w", err)
	}
	return evidence.Withhold(salt, b), nil
}

// places are the host paths that evidence names by their role. What lies inside another comes first.
func (k *work) places() []executor.Place {
	var out []executor.Place
	if k.snapshot != nil {
		out = append(out, executor.Place{Path: k.snapshot.Dir, Role: executor.SnapshotRole})
	}
	if k.workspace != nil {
		out = append(out, executor.Place{Path: k.workspace.Dir, Role: executor.WorkspaceRole})
	}
	for _, r := range k.Reserved {
		if r.Kind == source.ReservedSocket {
			out = append(out, executor.Place{Path: r.Path, Role: "${DOCKER_SOCKET}"})
		}
	}
	named := []executor.Place{{Path: k.Home.Dir, Role: "${BAILDOCK_HOME}"}, {Path: k.subject.Path, Role: "${SOURCE}"}}
	slices.SortStableFunc(named, func(a, b executor.Place) int { return len(b.Path) - len(a.Path) })
	return append(out, named...)
}

// keepText keeps a text for people, without this host's paths, and returns its reference.
func (k *work) keepText(text string) (*evidence.BlobRef, error) {
	w, err := k.withhold([]byte(k.redactor().String(executor.Portable(text, k.places()...)) + "\n"))
	if err == nil {
		err = k.rec.Keep(k.life, w)
	}
	if err != nil {
		return nil, err
	}
	return &w.Ref, nil
}

// refuseSource records why there is no snapshot, and what is left of one.
func (k *work) refuseSource(cause error) error {
	code := sourceFailed
	var refused *source.RefusedError
	if errors.As(cause, &refused) {
		code = string(refused.Code)
	}
	k.progress("refused", k.redactor().String(cause.Error()))
	detail, err := k.keepText(cause.Error())
	if err != nil {
		return errors.Join(cause, err)
	}
	if err := k.rec.Record(k.life, evidence.SourceRefused{Code: code, Detail: detail}); err != nil {
		return errors.Join(cause, err)
	}
	return k.leftover(cause)
}

// leftover records an unfinished snapshot that could not be removed, and tidies up otherwise.
func (k *work) leftover(cause error) error {
	var left *source.LeftoverError
	var kept *workspace.LeftoverError
	if !errors.As(cause, &left) && !errors.As(cause, &kept) {
		k.Home.tidy(k.req.Attempt, k.generation())
		return nil
	}
	detail, err := k.keepText(cause.Error())
	if err != nil {
		return err
	}
	return k.rec.Record(k.life, evidence.SnapshotLeft{Code: sourceLeft, Detail: detail})
}

// dematerialize removes the snapshot once no container can mount it, and records that. While
// custody is open it stays (req B6, G7).
func (k *work) dematerialize() error {
	fold := k.appender.Attempt()
	if len(fold.Custodies.Open()) > 0 {
		return nil
	}
	if err := k.snapshot.Remove(); err != nil {
		k.progress("snapshot", "could not be removed")
		detail, keepErr := k.keepText(err.Error())
		return errors.Join(keepErr, k.rec.Record(k.life, evidence.SnapshotLeft{Code: snapshotStuck, Detail: detail}))
	}
	k.Home.tidy(k.req.Attempt, k.generation())
	return k.rec.Record(k.life, evidence.SnapshotRemoved{})
}
