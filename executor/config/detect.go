package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
)

var blockText = regexp.MustCompile(`\b` + Block + `["']?\s*:`)

// Detect reports whether a file holds a contained_execution block, so that a verb which contains
// nothing in that way can refuse it (req N8). It takes any bytes: every document of a stream is
// looked at, aliases and merge keys are followed, and what is no YAML is searched as text. A file
// is rather refused once too often.
func Detect(b []byte) bool {
	if len(b) > MaxFile {
		return bytes.Contains(b, []byte(Block))
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	for {
		var document yaml.Node
		switch err := d.Decode(&document); {
		case errors.Is(err, io.EOF):
			return false
		case err != nil:
			return blockText.Match(b)
		}
		for _, root := range document.Content {
			if holdsBlock(root, map[*yaml.Node]bool{}) {
				return true
			}
		}
	}
}

// holdsBlock looks at each mapping once, however many merge keys lead to it.
func holdsBlock(n *yaml.Node, seen map[*yaml.Node]bool) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode || seen[n] {
		return false
	}
	seen[n] = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Value == Block {
			return true
		}
		if key.ShortTag() != "!!merge" {
			continue
		}
		merged := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			merged = value.Content
		}
		for _, m := range merged {
			if holdsBlock(m, seen) {
				return true
			}
		}
	}
	return false
}
