package main

import (
	"github.com/ncruces/go-sqlite3"
	"github.com/rogpeppe/go-internal/testscript"
)

// sql changes a ledger's file behind the program's back: sql FILE STATEMENT…
func sql(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sql FILE STATEMENT…")
	}
	db, err := sqlite3.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, statement := range args[1:] {
		ts.Check(db.Exec(statement))
	}
	ts.Check(db.Close())
}
