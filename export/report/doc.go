// Package report writes what a verification found for people.
//
//	view := report.Of(verify.Verify(file, policy))
//	err := report.Write(os.Stdout, report.FormatHTML, view)
//
// A report shows only what package export/verify took from the bundle. It is made once, as a View: a
// stamp (VERIFIED, NOT VERIFIED or INVALID), then parts of sections of facts, tables and excerpts. Text,
// Markdown, HTML and JSON write that value and add nothing. Evidence is named by its kind, so that
// what was only requested never reads as observed, and what is missing is said to be missing.
//
// Everything that a command, a recipe or an operator could have written is hostile. Escape turns
// it into one line of printable text: control characters, terminal escapes, bidirectional and
// other invisible characters, and bytes that are no UTF-8 become backslash escapes. Markdown shows
// whatever could be more than prose as code; the HTML page has no script and a policy under which a
// browser loads nothing.
package report
