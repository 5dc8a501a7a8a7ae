package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

type number = json.Number

// errRepeated marks a JSON object that names a key twice: two readers may see two values.
var errRepeated = errors.New("repeated key")

// parseTree reads exactly one JSON document (RFC 8259) into maps, lists, numbers as written, texts,
// booleans and nil. Repeated keys, invalid UTF-8, trailing bytes and deep nesting are refused.
func parseTree(raw []byte) (any, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := parseValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("bytes after the document")
	}
	return v, nil
}

func parseValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxReplyDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxReplyDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		m := map[string]any{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			k := key.(string) // Token itself refuses any other key
			if _, ok := m[k]; ok {
				return nil, fmt.Errorf("%w %q", errRepeated, clip(k, maxFact))
			}
			if m[k], err = parseValue(dec, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := dec.Token()
		return m, err
	case json.Delim('['):
		l := []any{}
		for dec.More() {
			v, err := parseValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		_, err := dec.Token()
		return l, err
	}
	return tok, nil
}

// compact writes a tree as JSON without white space, keys sorted.
func compact(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("unprintable %T", v)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
