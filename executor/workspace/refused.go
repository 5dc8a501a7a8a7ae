package workspace

import (
	"errors"
	"fmt"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// Codes of refusals beside those of a source.
const (
	CodeWritable source.Code = "workspace_writable" // the writable paths aren't normal or aren't there
	CodeNoSpace  source.Code = "workspace_no_space" // the disk would be too full
	CodeOwner    source.Code = "workspace_owner"    // the copy can't belong to the user who runs the agent
)

func refuse(code source.Code, path, format string, args ...any) error {
	return &source.RefusedError{Code: code, Path: path, Detail: fmt.Sprintf(format, args...)}
}

// checkLinks refuses a tree with a link that may not be there, in the words of a source.
func checkLinks(m evidence.WorkspaceManifest) error {
	err := source.RefuseLink(m.CheckLinks())
	var r *source.RefusedError
	if errors.As(err, &r) && r.Code == source.CodeLinkDangling {
		// A snapshot has no empty directories; a workspace does.
		return refuse(r.Code, r.Path, "the link points at nothing in the source")
	}
	return err
}

// CaptureCode is the stable name of what makes a capture fail closed (req O3, O5).
type CaptureCode string

const (
	CaptureReserved    CaptureCode = "workspace_reserved_path" // `.git` or `.baildock*` was made
	CaptureSpecial     CaptureCode = "workspace_special_file"  // fifo, socket or device
	CaptureHardLink    CaptureCode = "workspace_hard_link"     // a file has two names
	CaptureLink        CaptureCode = "workspace_link"          // absolute, escaping, dangling, cyclic or into a reserved tree
	CaptureSetID       CaptureCode = "workspace_set_id"        // a file with a set-user-ID or set-group-ID bit
	CapturePath        CaptureCode = "workspace_path"          // too long or too deep
	CaptureTooLarge    CaptureCode = "workspace_too_large"     // more entries or bytes than the limits
	CaptureUnreadable  CaptureCode = "workspace_unreadable"    // its permissions hide it
	CaptureChanged     CaptureCode = "workspace_changed"       // something still writes there
	CaptureOutside     CaptureCode = "workspace_not_writable"  // a change outside the writable paths
	CaptureTooMany     CaptureCode = "workspace_too_many"      // more changes than a list may hold
	CaptureBaseline    CaptureCode = "workspace_baseline"      // the stored baseline isn't the one that was stored
	CaptureHoldsHome   CaptureCode = "workspace_holds_home"    // what looks like a home
	CaptureUnspecified CaptureCode = "workspace_capture"       // anything else
)

// CaptureError says why what the agent changed can't be stated.
type CaptureError struct {
	Code   CaptureCode
	Path   string // in the workspace, any bytes; or empty
	Detail string // without the path
}

func (e *CaptureError) Error() string {
	if e.Path == "" {
		return "the workspace can't be captured: " + e.Detail
	}
	return fmt.Sprintf("the workspace can't be captured: %q: %s", e.Path, e.Detail)
}

var captureCodes = map[source.Code]CaptureCode{
	source.CodeReservedPath: CaptureReserved, source.CodeSpecialFile: CaptureSpecial, source.CodeHardLink: CaptureHardLink,
	source.CodePath: CapturePath, source.CodeTooManyFiles: CaptureTooLarge, source.CodeTooLarge: CaptureTooLarge,
	source.CodeFileTooLarge: CaptureTooLarge, source.CodeUnreadable: CaptureUnreadable, source.CodeChanged: CaptureChanged,
	source.CodeHoldsHome: CaptureHoldsHome, source.CodeLinkAbsolute: CaptureLink, source.CodeLinkEscapes: CaptureLink,
	source.CodeLinkDangling: CaptureLink, source.CodeLinkCycle: CaptureLink, source.CodeLinkReserved: CaptureLink,
}

// captureDetails say it of a workspace where a source's words would mislead.
var captureDetails = map[CaptureCode]string{
	CaptureReserved:  "the name is reserved; whoever made it may be posing as git or baildock",
	CaptureSpecial:   "a fifo, socket or device was left there",
	CaptureHardLink:  "the file has a second name, so that a change could come from outside",
	CaptureChanged:   "it changed while it was read, though nothing should be running there",
	CaptureHoldsHome: "it holds what looks like a baildock home",
}

// asCapture turns a refusal of a tree into one of a capture; other errors stay what they are.
func asCapture(err error) error {
	var r *source.RefusedError
	if !errors.As(err, &r) {
		return err
	}
	code, known := captureCodes[r.Code]
	if !known {
		code = CaptureUnspecified
	}
	detail, own := captureDetails[code]
	if !own {
		detail = strings.ReplaceAll(r.Detail, "the source", "the workspace")
	}
	return &CaptureError{Code: code, Path: r.Path, Detail: detail}
}
