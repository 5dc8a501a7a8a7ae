package config

import (
	"fmt"
	"strings"
)

// Error is one reason why a file is refused: the field's path, as in
// `contained_execution.environment[2].name`, and what is wrong with it. Neither ever holds a value of
// the environment. The path is empty when the file as a whole is refused.
type Error struct {
	Path   string
	Reason string
	Line   int // in the file, from 1; 0 where no line is to blame
}

func (e *Error) Error() string {
	s := e.Reason
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	if e.Line > 0 {
		s += fmt.Sprintf(" (line %d)", e.Line)
	}
	return s
}

// Errors is everything found wrong with one file, in the file's order, at most MaxErrors.
type Errors struct {
	Name string // of the file
	All  []*Error
}

func (e *Errors) Error() string {
	lines := make([]string, len(e.All))
	for i, one := range e.All {
		lines[i] = one.Error()
	}
	return e.Name + ": " + strings.Join(lines, "\n"+e.Name+": ")
}

// Unwrap lets errors.As find the first *Error.
func (e *Errors) Unwrap() []error {
	all := make([]error, len(e.All))
	for i, one := range e.All {
		all[i] = one
	}
	return all
}
