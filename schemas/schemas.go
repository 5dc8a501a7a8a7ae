package schemas

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"strings"
)

//go:embed *.cddl *.json
var files embed.FS

// Kind is the language of a schema.
type Kind string

const (
	KindCDDL Kind = "cddl" // RFC 8610
	KindJSON Kind = "json" // JSON Schema 2020-12
)

// Schema is one schema's text.
type Schema struct {
	Name string // without the file's extension; no two schemas of any kind share one
	Kind Kind
	Text string
}

// Digest is the SHA-256 of the text.
func (s Schema) Digest() [sha256.Size]byte { return sha256.Sum256([]byte(s.Text)) }

// CDDL returns the CDDL texts, sorted by name. Each may use rules of any other.
func CDDL() []Schema { return of(KindCDDL) }

// JSON returns the JSON Schemas, sorted by name. Each stands alone.
func JSON() []Schema { return of(KindJSON) }

func of(kind Kind) []Schema {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded
	}
	var out []Schema
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), "."+string(kind))
		if !ok {
			continue
		}
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err) // embedded
		}
		out = append(out, Schema{Name: name, Kind: kind, Text: string(text)})
	}
	return out
}

// Find returns the schema of that name.
func Find(name string) (Schema, error) {
	var names []string
	for _, s := range append(CDDL(), JSON()...) {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Schema{}, fmt.Errorf("schema %q is none of %s", name, strings.Join(names, ", "))
}
