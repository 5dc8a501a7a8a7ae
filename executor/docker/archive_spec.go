package docker

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/distribution/reference"

	"github.com/baildock/baildock/evidence"
)

// ArchiveFile puts a local file, or a directory with all it holds, into an image.
type ArchiveFile struct {
	Host string // path of a file or directory
	Dest string // absolute path in the image; what Host is becomes what Dest is
}

// ArchiveCode is the stable name of a refusal to make an image.
type ArchiveCode string

const (
	ArchiveName        ArchiveCode = "image_name"     // no Docker reference
	ArchiveDestination ArchiveCode = "image_dest"     // a path no image made here may hold
	ArchiveHost        ArchiveCode = "image_host"     // missing, a link or a special file
	ArchiveConflict    ArchiveCode = "image_conflict" // two things in one place
	ArchiveTooLarge    ArchiveCode = "image_too_large"
	ArchiveChanged     ArchiveCode = "image_changed" // a file changed while it was read
)

// ArchiveRefusedError says why no image can be made.
type ArchiveRefusedError struct {
	Code   ArchiveCode
	Path   string // as given, or in the image
	Detail string // what, why and the likely fix
}

func (e *ArchiveRefusedError) Error() string {
	if e.Path == "" {
		return e.Detail
	}
	return fmt.Sprintf("%q: %s", e.Path, e.Detail)
}

func refuseArchive(code ArchiveCode, path, format string, args ...any) error {
	return &ArchiveRefusedError{Code: code, Path: path, Detail: fmt.Sprintf(format, args...)}
}

// ParseArchiveFile reads `HOST:DEST`. DEST starts with a slash, so the last `:/` divides them and
// HOST may hold colons.
func ParseArchiveFile(s string) (ArchiveFile, error) {
	i := strings.LastIndex(s, ":/")
	if i < 1 {
		return ArchiveFile{}, refuseArchive(ArchiveDestination, s, "not HOST:DEST with an absolute DEST, as in ./tool:/bin/tool")
	}
	f := ArchiveFile{Host: s[:i], Dest: s[i+1:]}
	return f, checkDestination(f.Dest)
}

// archiveName completes a Docker reference to `repo:tag`.
func archiveName(name string) (string, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", refuseArchive(ArchiveName, name, "no image name: %v; use repo or repo:tag in lower case", err)
	}
	if _, digested := named.(reference.Digested); digested {
		return "", refuseArchive(ArchiveName, name, "an image is made under a name, not a digest; its ID is printed")
	}
	if reference.FamiliarName(named) == "sha256" {
		return "", refuseArchive(ArchiveName, name, "the name reads like an image ID; choose another")
	}
	full := reference.FamiliarString(reference.TagNameOnly(named))
	if !refPattern.MatchString(full) {
		return "", refuseArchive(ArchiveName, name, "image name longer than 255 bytes")
	}
	return full, nil
}

// mountPoints are the container paths of the profiles. Docker gives a tmpfs the mode of the
// directory it covers, so an image that has one makes it unwritable for the container's user.
var mountPoints = []string{"scratch", "source", "workspace", "tmp"}

// checkDestination refuses a path in the image that isn't clean and absolute, that Docker reads as
// the deletion of another (a whiteout), or that a profile mounts over.
func checkDestination(dest string) error {
	if dest == "/" {
		return nil
	}
	if !strings.HasPrefix(dest, "/") || path.Clean(dest) != dest {
		return refuseArchive(ArchiveDestination, dest, "the destination must be absolute and clean (no . or .., no double or trailing slash)")
	}
	rel := dest[1:]
	if err := evidence.CheckPath(rel); err != nil {
		return refuseArchive(ArchiveDestination, dest, "%v", err)
	}
	if !utf8.ValidString(rel) || strings.ContainsFunc(rel, unicode.IsControl) {
		return refuseArchive(ArchiveDestination, dest, "the destination holds control characters or bad UTF-8")
	}
	for component := range strings.SplitSeq(rel, "/") {
		if strings.HasPrefix(component, ".wh.") {
			return refuseArchive(ArchiveDestination, dest, "names that start with .wh. delete files of lower layers; rename it")
		}
	}
	first, _, _ := strings.Cut(rel, "/")
	for _, m := range mountPoints {
		if first == m {
			return refuseArchive(ArchiveDestination, dest, "/%s is mounted by the profiles and must not be in the image; choose another place", m)
		}
	}
	return nil
}
