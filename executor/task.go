package executor

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic in the middle of a run, its driver or its recorder. Cleanup ran.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// outcome of a task.
type outcome[T any] struct {
	value T
	err   error
}

// launch runs f beside the caller. Its outcome comes once, then the channel is closed; a panic
// becomes an error, so that it ends the run through cleanup.
func launch[T any](f func() (T, error)) <-chan outcome[T] {
	c := make(chan outcome[T], 1)
	go func() {
		v, err := guarded(f)
		c <- outcome[T]{v, err}
		close(c)
	}()
	return c
}

// guarded calls f and turns a panic into an error.
func guarded[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}
