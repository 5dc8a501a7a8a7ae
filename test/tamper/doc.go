// Package tamper changes ledgers behind the program's back and holds the audit to finding each
// change at its place.
package tamper
