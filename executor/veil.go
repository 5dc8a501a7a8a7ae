package executor

import (
	"errors"

	"github.com/baildock/baildock/evidence/redact"
)

// veiledError is an error whose text held a sensitive value. It still tells a fenced attempt, and
// nothing else of what it wrapped.
type veiledError struct {
	text   string
	fenced bool
}

func (e *veiledError) Error() string { return e.text }

func (e *veiledError) Is(target error) bool { return e.fenced && target == ErrFenced }

// veil takes sensitive values out of an error's text.
func veil(r *redact.Redactor, err error) error {
	if err == nil || r == nil {
		return err
	}
	text := r.String(err.Error())
	if text == err.Error() {
		return err
	}
	return &veiledError{text: text, fenced: errors.Is(err, ErrFenced)}
}
