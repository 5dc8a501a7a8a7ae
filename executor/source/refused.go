package source

import (
	"errors"
	"fmt"

	"github.com/baildock/baildock/evidence"
)

// Code is the stable name of a refusal.
type Code string

const (
	CodeLocator           Code = "source_locator"            // the text names nothing
	CodeNotFound          Code = "source_not_found"          // no such directory
	CodeRepository        Code = "source_repository"         // no git repository, or a format that can't be read
	CodeRevision          Code = "source_revision"           // the revision names no commit
	CodeAmbiguousRevision Code = "source_ambiguous_revision" // an abbreviated hash names several objects
	CodeMissingObject     Code = "source_missing_object"     // shallow, partial or damaged repository
	CodeCorruptObject     Code = "source_corrupt_object"     // an object isn't what its name says

	CodeSubmodule    Code = "source_submodule"     // another repository inside
	CodeSpecialFile  Code = "source_special_file"  // fifo, socket, device, unknown mode
	CodeHardLink     Code = "source_hard_link"     // a file that has another name too
	CodePath         Code = "source_path"          // no clean path, too long or too deep
	CodeReservedPath Code = "source_reserved_path" // `.git` or `.baildock*` in a commit
	CodeLinkAbsolute Code = "source_link_absolute"
	CodeLinkEscapes  Code = "source_link_escapes"
	CodeLinkDangling Code = "source_link_dangling"
	CodeLinkCycle    Code = "source_link_cycle"
	CodeLinkReserved Code = "source_link_reserved"

	CodeTooManyFiles Code = "source_too_many_files"
	CodeTooLarge     Code = "source_too_large"
	CodeFileTooLarge Code = "source_file_too_large"
	CodeUnreadable   Code = "source_unreadable" // no permission to read it
	CodeChanged      Code = "source_changed"    // it changed while it was read

	CodeInsideHome Code = "source_inside_home" // the source lies in a home
	CodeHoldsHome  Code = "source_holds_home"  // a home, ledger or key lies in the source

	CodeParent    Code = "source_parent"    // the snapshot's parent isn't private
	CodeDelimiter Code = "source_delimiter" // the snapshot's path can't be named in a mount
	CodeExists    Code = "source_exists"    // the snapshot's path is taken
)

// RefusedError says that a source may not be run on, and why.
type RefusedError struct {
	Code   Code
	Path   string // inside the source, or empty
	Detail string // what, why and the likely fix
}

func (e *RefusedError) Error() string {
	if e.Path == "" {
		return e.Detail
	}
	return fmt.Sprintf("%q: %s", e.Path, e.Detail)
}

func refuse(code Code, path, format string, args ...any) error {
	return &RefusedError{Code: code, Path: path, Detail: fmt.Sprintf(format, args...)}
}

// linkRefusals has one code and one explanation for each fault of a link.
var linkRefusals = map[evidence.LinkFault]struct {
	code Code
	why  string
}{
	evidence.LinkAbsolute: {CodeLinkAbsolute, "an absolute link points outside the source; make it relative"},
	evidence.LinkEscapes:  {CodeLinkEscapes, "the link leaves the source; keep its target inside"},
	evidence.LinkDangling: {CodeLinkDangling, "the link points at nothing in the source (empty directories don't count)"},
	evidence.LinkCycle:    {CodeLinkCycle, "the link leads to itself or through too many links"},
	evidence.LinkReserved: {CodeLinkReserved, "the link points into .git or .baildock*, which never enter a snapshot"},
}

// checkLinks refuses a tree with a link that may not be there.
func checkLinks(m evidence.Manifest) error { return RefuseLink(m.CheckLinks()) }

// RefuseLink turns what is wrong with a link into a refusal; any other error stays what it is.
func RefuseLink(err error) error {
	var link *evidence.LinkError
	if !errors.As(err, &link) {
		return err
	}
	r := linkRefusals[link.Fault]
	return refuse(r.code, link.Path, "link to %q: %s", link.Target, r.why)
}
