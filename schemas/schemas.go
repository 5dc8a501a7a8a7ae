package schemas

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"strings"
)

//go:embed *.cddl
var files embed.FS

// Schema is one schema's text.
type Schema struct {
	Name string // without the file's extension
	Text string
}

// Digest is the SHA-256 of the text.
func (s Schema) Digest() [sha256.Size]byte { return sha256.Sum256([]byte(s.Text)) }

// CDDL returns the CDDL texts, sorted by name. Each may use rules of any other.
func CDDL() []Schema {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded
	}
	out := make([]Schema, len(entries))
	for i, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err) // embedded
		}
		out[i] = Schema{Name: strings.TrimSuffix(e.Name(), ".cddl"), Text: string(text)}
	}
	return out
}

// Find returns the schema of that name.
func Find(name string) (Schema, error) {
	var names []string
	for _, s := range CDDL() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Schema{}, fmt.Errorf("schema %q is none of %s", name, strings.Join(names, ", "))
}
