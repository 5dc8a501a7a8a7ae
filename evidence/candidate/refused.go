package candidate

import "fmt"

// Code is the stable name of a refusal.
type Code string

const (
	CodeTooLarge    Code = "candidate_too_large"   // the document or what it holds
	CodeSyntax      Code = "candidate_syntax"      // no JSON, or not in the one shape
	CodeTrailing    Code = "candidate_trailing"    // something follows the document
	CodeUnknown     Code = "candidate_unknown"     // a field or version nobody knows
	CodeDuplicate   Code = "candidate_duplicate"   // a field or path given twice
	CodeMissing     Code = "candidate_missing"     // a field left out
	CodeEmpty       Code = "candidate_empty"       // no changes
	CodeHex         Code = "candidate_hex"         // upper-case, odd or no hexadecimal
	CodePath        Code = "candidate_path"        // no clean relative path
	CodeReserved    Code = "candidate_reserved"    // a name that some filesystem takes for a reserved one
	CodeConflict    Code = "candidate_conflict"    // a file where a directory is, or the other way round
	CodeLink        Code = "candidate_link"        // a component is a link in the subject
	CodeAbsent      Code = "candidate_absent"      // deletes what isn't there
	CodeUnchanged   Code = "candidate_unchanged"   // the tree stays as it is
	CodeUnderivable Code = "candidate_underivable" // the attempt's record carries no candidate
)

// RefusedError says why a candidate is refused.
type RefusedError struct {
	Code   Code
	At     int64  // byte of the document; -1 where it isn't about one
	Path   string // of a change, or empty
	Detail string
}

func (e *RefusedError) Error() string {
	s := e.Detail
	if e.Path != "" {
		s = fmt.Sprintf("%q: %s", e.Path, s)
	}
	if e.At >= 0 {
		s += fmt.Sprintf(" (byte %d)", e.At)
	}
	return "candidate: " + s
}

// Refuse makes a refusal that is about no byte of the document.
func Refuse(code Code, path, format string, args ...any) error {
	return &RefusedError{Code: code, At: -1, Path: path, Detail: fmt.Sprintf(format, args...)}
}
