// Package report writes what a verification found for people.
//
//	err := report.Text(os.Stdout, verify.Verify(file, policy))
//
// A report shows only what package export/verify took from the bundle. It opens with a stamp:
// VERIFIED, NOT VERIFIED or INVALID. Evidence is named by its kind, so that what was only requested
// never reads as observed, and what is missing is said to be missing.
//
// Everything that a command, a recipe or an operator could have written is hostile. Escape turns
// it into one line of printable text: control characters, terminal escapes, bidirectional and
// other invisible characters, and bytes that are no UTF-8 become backslash escapes.
package report
