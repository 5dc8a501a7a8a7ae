package redact

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Marker stands where something was taken out.
const Marker = "[redacted]"

// Redactor takes a fixed set of secrets out of texts. It is safe for concurrent use. A nil
// *Redactor knows no secret and passes everything through.
type Redactor struct {
	forms   []*form
	longest int
}

// New builds the redactor of some secrets; without any it returns nil. It refuses a secret shorter
// than MinSecret bytes or holding the marker, more than MaxSecrets and more than MaxBytes in all.
// No error names a secret or says more of it than its place in the list.
func New(secrets ...[]byte) (*Redactor, error) {
	if len(secrets) > MaxSecrets {
		return nil, fmt.Errorf("%d sensitive values; at most %d can be redacted", len(secrets), MaxSecrets)
	}
	total, longest := 0, 0
	var unique [][]byte
	for i, s := range secrets {
		switch {
		case len(s) < MinSecret:
			return nil, fmt.Errorf("sensitive value %d has fewer than %d bytes: so short a value would be found everywhere; use a longer one", i+1, MinSecret)
		case bytes.Contains(s, []byte(Marker)):
			return nil, fmt.Errorf("sensitive value %d holds %q, which stands for values that were taken out", i+1, Marker)
		}
		total += len(s)
		longest = max(longest, len(s))
		if !slices.ContainsFunc(unique, func(u []byte) bool { return bytes.Equal(u, s) }) {
			unique = append(unique, bytes.Clone(s))
		}
	}
	if total > MaxBytes {
		return nil, fmt.Errorf("sensitive values of %d bytes together; at most %d can be redacted", total, MaxBytes)
	}
	if len(unique) == 0 {
		return nil, nil
	}
	// No form has more than six bytes for a byte (`\u00XX`); the last one may be part of a
	// surrogate pair, which goes whole.
	return &Redactor{forms: formsOf(unique), longest: 6*longest + 6}, nil
}

// Longest is how many bytes the longest form may have; zero without secrets.
func (r *Redactor) Longest() int {
	if r == nil {
		return 0
	}
	return r.longest
}

// Stream begins a text.
func (r *Redactor) Stream() *Stream {
	s := &Stream{covered: -1}
	if r != nil {
		for _, f := range r.forms {
			s.scanners = append(s.scanners, newScanner(f))
		}
	}
	return s
}

// Bytes redacts a whole text. The result may be b itself when nothing was taken out.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil {
		return b
	}
	s := r.Stream()
	out := bytes.Clone(s.Push(b))
	out = append(out, s.Close()...)
	if !s.Redacted() {
		return b
	}
	return out
}

// String redacts a whole text.
func (r *Redactor) String(text string) string {
	if r == nil {
		return text
	}
	return string(r.Bytes([]byte(text)))
}

// Error redacts an error's text. An error without secrets in it is returned as it is; otherwise
// what it wraps is lost with its text.
func (r *Redactor) Error(err error) error {
	if err == nil || r == nil {
		return err
	}
	if text := r.String(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}
