// Package source turns what a person names into exactly the bytes a container may read: a
// commit of a local git repository, or a directory as it lies, becomes a snapshot on disk and a
// manifest whose digest is the identity of what was checked.
//
// Words: a locator is the text a person types (`PATH` or `PATH@REV`); a subject is what it means
// now (a directory, or a commit by its full hash); a manifest lists files and links with mode,
// size and SHA-256; a snapshot is a directory with those files, readable by all and writable by
// nobody; a refusal names, by a stable code, why a source may not be run on.
//
//	loc, err := source.ParseLocator("~/src/project@v1.2")
//	subject, err := source.Resolve(ctx, loc)
//	err = source.Check(ctx, subject, reserved)            // before anything is recorded
//	snap, err := source.Materialize(ctx, source.Request{
//		Subject: subject, Parent: "<home>/execution", Name: "snapshot-a1-1", Reserved: reserved,
//	})
//	defer snap.Remove()
//	digest, err := snap.Manifest.Digest()
//
// The rules are the same for both kinds, so that equal content has an equal digest whether it
// comes from a commit or from a directory:
//
//   - Only files and symbolic links have entries. Of a file's permissions only the owner's
//     execute bit survives. Empty directories, owners, times and extended attributes don't.
//   - A link must resolve, through other links, to a file or directory of the manifest itself.
//   - Names that some filesystem takes for `.git` or `.baildock*` never enter: skipped and
//     listed in a directory, refused in a commit. So are a home, ledger, keys and the Docker
//     socket, which are recognised by device and inode wherever they lie; a home, ledger or key
//     under a name that isn't reserved refuses the directory.
//   - Submodules, special files and, in a directory, hard links are refused.
//   - Sizes are bounded by Limits; a size that is known is checked before bytes are allocated.
//
// A workspace is made from the same listing, by List, whose files several workers read at once; what git
// would say of the tree is noted by ReadGitState, which compares git's index and objects itself.
//
// Reading is safe against a tree that changes while it is read. A directory is listed first and
// copied afterwards through directory handles, never following a link; what is copied must be
// what was listed, by device, inode, size and times. A git object is read as raw bytes and must
// hash to its name. Nothing is ever executed: no git program, hook, filter or smudge.
package source
