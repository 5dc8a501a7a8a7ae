package warden

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/executor/workspace"
)

// Codes of a workspace that could not be prepared, captured or removed, beside those of its package.
const (
	sourceSensitive  source.Code           = "source_sensitive" // a name or link in it holds a sensitive value
	captureSensitive workspace.CaptureCode = "workspace_sensitive"
	captureFailed    string                = "capture_failed"
)

// prepareWorkspace makes the copy, gives it to the agent's user and records its baseline, or records
// why there is none. False without an error means that the attempt ends here.
func (k *work) prepareWorkspace(ctx context.Context) (bool, error) {
	k.progress("workspace", "")
	w, err := k.copyWorkspace(ctx)
	if err != nil && ctx.Err() != nil {
		return false, errors.Join(k.rec.Record(k.life, evidence.StopOrdered{Cause: evidence.StopCancelled}), k.leftover(err))
	}
	if err != nil {
		return false, k.refuseSource(err)
	}
	k.workspace = w
	e, kept, err := k.baseline(w)
	if err == nil {
		err = k.rec.Keep(k.life, kept...)
	}
	if err == nil {
		err = k.rec.Record(k.life, e)
	}
	if err != nil {
		// Nothing mounts it yet, and nothing says that it is there.
		err = errors.Join(fmt.Errorf("record the workspace: %w", err), w.Remove())
		k.Home.tidy(k.req.Attempt, k.generation())
		return false, err
	}
	k.progress("workspace", fmt.Sprintf("%d files", e.Files))
	return true, nil
}

// copyWorkspace leaves nothing behind when it fails, or names what it left.
func (k *work) copyWorkspace(ctx context.Context) (*workspace.Workspace, error) {
	parent, err := k.Home.execution(k.req.Attempt, k.generation())
	if err != nil {
		return nil, err
	}
	w, err := workspace.Prepare(ctx, workspace.Request{
		Root: k.subject.Path, Parent: parent, Writable: k.recipe.Contained.Writable, Reserved: k.Reserved,
	})
	if err != nil {
		return nil, err
	}
	uid, gid := k.profile.User(k.recipe)
	if err := w.HandOver(int(uid), int(gid)); err != nil { // req N3
		return nil, errors.Join(err, w.Remove())
	}
	b, err := w.Baseline.Manifest.Marshal()
	if err == nil && k.sensitive(b) {
		err = &source.RefusedError{Code: sourceSensitive, Detail: "a name or a link in the source holds a sensitive value of the environment; its baseline could not be kept"}
	}
	if err != nil {
		return nil, errors.Join(err, w.Remove())
	}
	return w, nil
}

// sensitive reports whether bytes that can't be redacted hold a sensitive value.
func (k *work) sensitive(b []byte) bool {
	s := k.redactor().Stream()
	s.Push(b)
	s.Close()
	return s.Redacted()
}

// baseline makes the event of a workspace in place (req O1).
func (k *work) baseline(w *workspace.Workspace) (evidence.SourceMaterialized, []evidence.Withholdable, error) {
	m := w.Baseline.Manifest
	encoded, err := m.Marshal()
	if err != nil {
		return evidence.SourceMaterialized{}, nil, err
	}
	entries, err := k.withhold(encoded)
	if err != nil {
		return evidence.SourceMaterialized{}, nil, err
	}
	detail, err := k.withhold([]byte(k.redactor().String(baselineText(w.Baseline))))
	if err != nil {
		return evidence.SourceMaterialized{}, nil, err
	}
	return evidence.SourceMaterialized{
		Manifest: evidence.ManifestDigest(w.Baseline.Digest), Files: uint64(len(m.Entries)), Bytes: m.Bytes(),
		Entries: entries.Ref, Skipped: uint64(len(w.Baseline.Skipped)), Detail: &detail.Ref,
	}, []evidence.Withholdable{entries, detail}, nil
}

// baselineText says what stayed behind and where the repository stood.
func baselineText(b workspace.Baseline) string {
	var t strings.Builder
	for _, s := range b.Skipped {
		fmt.Fprintf(&t, "%q: %s\n", s.Path, s.Why)
	}
	if b.Stripped > 0 {
		fmt.Fprintf(&t, "set-ID and sticky bits stayed behind: %d entries\n", b.Stripped)
	}
	switch g := b.Git; {
	case g == nil:
		t.WriteString("git: no working tree\n")
	case g.Unavailable != "":
		fmt.Fprintf(&t, "git: head %q, branch %q, no status: %s\n", g.Head, g.Branch, g.Unavailable)
	default:
		fmt.Fprintf(&t, "git: head %q, branch %q, %d lines of status and %d more\n", g.Head, g.Branch, len(g.Status), g.More)
		for _, s := range g.Status {
			fmt.Fprintf(&t, "git: %c%c %q\n", s.Index, s.Worktree, s.Path)
		}
	}
	return t.String()
}

// usage looks at the workspace while the agent runs (req N10).
func (k *work) usage() (string, error) {
	u, err := k.workspace.Usage()
	return string(u.Broken), err
}

// capture records what the agent changed and what the policy says of it, once its container is
// confirmed gone (req O5, N7). Whatever fails is an event too.
func (k *work) capture() error {
	fold := k.appender.Attempt()
	if !fold.Run.Ordered || fold.Fenced() || len(fold.Custodies.Open()) > 0 {
		return nil
	}
	k.progress("capture", "")
	ctx, end := context.WithTimeout(k.life, captureBound)
	defer end()
	mutations, err := k.workspace.Capture(ctx)
	var encoded []byte
	if err == nil {
		encoded, err = mutations.Marshal()
	}
	if err == nil && k.sensitive(encoded) {
		err = &workspace.CaptureError{Code: captureSensitive, Detail: "a changed name or link holds a sensitive value of the environment"}
	}
	if err != nil {
		return k.captureFailed(err)
	}
	k.changes = &Changes{Mutations: mutations}
	e := evidence.WorkspaceMutated{}
	for _, m := range mutations {
		switch m.Kind {
		case evidence.MutationModified:
			e.Modified++
		case evidence.MutationAdded:
			e.Added++
		case evidence.MutationDeleted:
			e.Deleted++
		case evidence.MutationRenamed:
			e.Renamed++
		}
	}
	if e.Mutations, err = k.keepBytes(encoded); err != nil {
		return err
	}
	if e.Diff, e.Detail, err = k.diff(ctx); err != nil {
		return err
	}
	if err := k.rec.Record(k.life, e); err != nil {
		return err
	}
	k.progress("capture", fmt.Sprintf("%d changes", len(mutations)))
	k.patch(ctx)
	return k.checkPolicy(mutations)
}

func (k *work) captureFailed(cause error) error {
	code := captureFailed
	var refused *workspace.CaptureError
	if errors.As(cause, &refused) {
		code = string(refused.Code)
	}
	k.progress("capture", cause.Error())
	detail, err := k.keepText(cause.Error())
	if err != nil {
		return errors.Join(cause, err)
	}
	return k.rec.Record(k.life, evidence.WorkspaceMutated{Code: code, Detail: detail})
}

// diff keeps a bounded, redacted diff. One that can't be made says so and fails nothing: the list of
// mutations is the evidence.
func (k *work) diff(ctx context.Context) (diff, detail *evidence.BlobRef, err error) {
	r := k.redactor()
	request := workspace.DiffRequest{Bound: maxDiff}
	if r != nil {
		request.Redact = r.Bytes
	}
	d, failure := k.workspace.Diff(ctx, request)
	if failure != nil {
		detail, err = k.keepText("the diff could not be made: " + failure.Error())
		return nil, detail, err
	}
	k.changes.Diff, k.changes.Omitted = r.Bytes(d.Text), d.Omitted
	if diff, err = k.keepBytes(k.changes.Diff); err != nil {
		return nil, nil, err
	}
	if d.Omitted+d.Unshown > 0 {
		detail, err = k.keepText(fmt.Sprintf("the diff leaves out %d changes and names %d without their content", d.Omitted, d.Unshown))
	}
	return diff, detail, err
}

// patch writes what changed for a person. It is no evidence, and its failure changes nothing.
func (k *work) patch(ctx context.Context) {
	if k.req.Contained.Patch == nil {
		return
	}
	var veil func([]byte) []byte
	if r := k.redactor(); r != nil {
		veil = r.Bytes
	}
	p, err := k.workspace.WritePatch(ctx, k.req.Contained.Patch, veil)
	k.changes.Unpatched, k.changes.PatchErr = p.Left, err
}

// checkPolicy holds what changed against the policy that was registered (req N7).
func (k *work) checkPolicy(mutations evidence.Mutations) error {
	if k.policy == nil {
		return nil
	}
	e := evidence.PolicyChecked{Policy: *k.recipe.Contained.Policy, Checks: []evidence.CheckedRule{}}
	var lines []string
	for _, r := range k.policy.Check(mutations) {
		e.Checks = append(e.Checks, evidence.CheckedRule{Name: r.Name, Held: r.Held})
		r.Detail = k.redactor().String(r.Detail)
		k.changes.Checks = append(k.changes.Checks, r)
		says := "held"
		if !r.Held {
			says = "broken"
			k.progress("policy", string(r.Name)+" is broken")
		}
		lines = append(lines, fmt.Sprintf("%s: %s: %s", r.Name, says, r.Detail))
	}
	if len(lines) > 0 {
		var err error
		if e.Detail, err = k.keepText(strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	return k.rec.Record(k.life, e)
}

// keepBytes keeps bytes as they are, and returns their reference.
func (k *work) keepBytes(b []byte) (*evidence.BlobRef, error) {
	w, err := k.withhold(b)
	if err == nil {
		err = k.rec.Keep(k.life, w)
	}
	if err != nil {
		return nil, err
	}
	return &w.Ref, nil
}

// releaseWorkspace removes the workspace once no container can write to it, and records that. While
// custody is open it is kept and named (req O6).
func (k *work) releaseWorkspace() error {
	fold := k.appender.Attempt()
	if len(fold.Custodies.Open()) > 0 {
		k.progress("workspace", "kept: its container is not confirmed gone")
		return k.workspace.Keep()
	}
	if err := k.workspace.Remove(); err != nil {
		k.progress("workspace", "could not be removed")
		detail, keepErr := k.keepText(err.Error())
		return errors.Join(keepErr, k.rec.Record(k.life, evidence.SnapshotLeft{Code: snapshotStuck, Detail: detail}))
	}
	k.Home.tidy(k.req.Attempt, k.generation())
	return k.rec.Record(k.life, evidence.SnapshotRemoved{})
}
