package projections

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"

	"github.com/baildock/baildock/evidence"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexed string

// The code that makes rows is part of the form: a change of it rebuilds every file.
//
//go:embed fold.go row.go facts.go changes.go runtimes.go custody.go
var rowCode embed.FS

// form names what the rows are made by: schema, code, and the vocabulary's own tables.
var form = func() string {
	h := sha256.New()
	parts := []string{schema, indexed}
	files, err := rowCode.ReadDir(".")
	if err != nil {
		panic(err) // it was built in
	}
	for _, f := range files {
		code, err := rowCode.ReadFile(f.Name())
		if err != nil {
			panic(err)
		}
		parts = append(parts, string(code))
	}
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	for _, t := range evidence.EventTypes() {
		fmt.Fprintf(h, "event %s %d\n", t, evidence.SchemaVersion)
	}
	for _, c := range evidence.Causes() {
		fmt.Fprintf(h, "cause %s %s %d\n", c.Detail, c.Outcome, c.Exit)
	}
	for _, p := range evidence.Profiles() {
		fmt.Fprintf(h, "profile %s\n", p.Digest())
	}
	return hex.EncodeToString(h.Sum(nil))
}()
