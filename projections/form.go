package projections

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"

	"github.com/baildock/baildock/evidence"
)

//go:embed schema.sql
var schema string

// The code that makes rows is part of the form: a change of it rebuilds every file.
var (
	//go:embed fold.go
	foldSource string
	//go:embed row.go
	rowSource string
	//go:embed facts.go
	factsSource string
)

// form names what the rows are made by: schema, code, and the vocabulary's own tables.
var form = func() string {
	h := sha256.New()
	for _, part := range []string{schema, foldSource, rowSource, factsSource} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	for _, t := range evidence.EventTypes() {
		fmt.Fprintf(h, "event %s %d\n", t, evidence.SchemaVersion)
	}
	for _, c := range evidence.Causes() {
		fmt.Fprintf(h, "cause %s %s %d\n", c.Detail, c.Outcome, c.Exit)
	}
	if p, err := evidence.ProfileByName(evidence.ProfileCommand); err == nil {
		fmt.Fprintf(h, "profile %s\n", p.Digest())
	}
	return hex.EncodeToString(h.Sum(nil))
}()
