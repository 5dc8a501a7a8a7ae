// Package workspace gives an agent a copy of a repository to work in, and says afterwards what it
// changed (req O1 to O6).
//
// Words: the source is a person's directory and is only read; the workspace is the copy, the one tree
// the agent may write to; the baseline is what the copy held before the agent had it; mutations are how
// it differs afterwards; evidence is a directory beside the workspace that the agent never sees.
//
//	w, err := workspace.Prepare(ctx, workspace.Request{
//		Root: "~/src/project", Parent: "<home>/execution/a1/1", Writable: []string{"."}, Reserved: reserved,
//	})
//	err = w.HandOver(1000, 1000)           // as root; otherwise the user must be that one already
//	…  run, with w.Dir mounted; ask w.Usage() now and then
//	…  once the container is proved gone:
//	mutations, err := w.Capture(ctx)
//	diff, err := w.Diff(ctx, workspace.DiffRequest{Bound: 256 << 10})
//	err = w.Remove()
//
// On disk, below a private parent:
//
//	<random>/workspace/               the agent's; the only directory that is mounted
//	<random>/evidence/baseline.cbor   the manifest of what was there before
//	<random>/evidence/origin.json     git's commit, branch and status of the source, and what stayed behind
//	<random>/evidence/ownership.json  what belongs to whom, in portable roles
//	<random>/evidence/texts           the texts as they were, for diffs
//
// Preparation lists the source, judges all of it, and only then makes a directory; a failure leaves
// nothing. Every file is opened, looked at, read once into copy and digest, looked at again, and its
// name too: what was swapped, grown or touched meanwhile fails closed. Nothing is opened through a link.
// Reserved trees (`.git`, `.baildock*`) stay behind, the commit and status of a git working tree are
// noted. The copy keeps permissions and times of files; its owner can always write; set-ID and sticky
// bits, owners, access lists and extended attributes stay behind.
//
// Capture trusts nothing the agent left: it lists and hashes the workspace by the same rules, but
// refuses a reserved name instead of skipping it, and compares with the stored baseline, never with a
// repository. A refusal is a *CaptureError. Nothing of the workspace is ever executed.
//
// A preparation that is killed leaves its directory below the parent, where recovery removes whatever it
// finds.
package workspace
