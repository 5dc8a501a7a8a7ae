package fakedaemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// edit sets or drops what a pointer names in a good reply's document. A pointer into nothing
// changes nothing, but a last key is added.
func (rep *reply) edit(pointer string, value any, drop bool) {
	if rep.status >= http.StatusBadRequest || rep.flow != nil {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(rep.body))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return // an effect before this one has spoilt it
	}
	tree = setAt(tree, strings.Split(pointer, "/")[1:], value, drop)
	rep.body = jsonReply(rep.status, tree).body
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

func setAt(node any, path []string, value any, drop bool) any {
	if len(path) == 0 {
		return value
	}
	key, rest := unescape.Replace(path[0]), path[1:]
	switch n := node.(type) {
	case map[string]any:
		keys := []string{key}
		if key == "*" {
			keys = keys[:0]
			for k := range n {
				keys = append(keys, k)
			}
		}
		for _, k := range keys {
			switch {
			case len(rest) == 0 && drop:
				delete(n, k)
			case len(rest) == 0 || n[k] != nil:
				n[k] = setAt(n[k], rest, value, drop)
			}
		}
	case []any:
		for i := range n {
			if key == "*" || key == strconv.Itoa(i) {
				n[i] = setAt(n[i], rest, value, drop)
			}
		}
	}
	return node
}

// checkPointer panics for a pointer that is none: a mistake in a test.
func checkPointer(p string) {
	if !strings.HasPrefix(p, "/") {
		panic(fmt.Sprintf("fake daemon: %q is no JSON pointer", p))
	}
}
