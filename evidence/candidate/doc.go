// Package candidate reads what a contained agent proposes: exactly one JSON document on stdout,
// `baildock.candidate/v1`.
//
//	{"version":1,"changes":[{"path":"dir/a.txt","hex":"68690a"},{"path":"old.txt","hex":null}]}
//
// Each change writes a file's bytes, as lower-case hexadecimal, or with null deletes the file.
// JSON's own white space (RFC 8259 section 2) may stand around and between tokens; nothing else may
// come before or after. The agent is untrusted, so the parser is strict: whatever is ambiguous,
// unknown or reserved refuses the whole document, with a code, the byte it was found at and the
// reason. A candidate is proposed source; it is no evidence that it is right.
//
// Parse needs nothing but the document. Apply holds it against the files of the subject: what a
// link, a directory or an absent file makes impossible.
package candidate
