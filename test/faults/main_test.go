package faults

import (
	"fmt"
	"os"
	"testing"
)

// What the test binary is as a child of itself, by its first argument.
const childRunner = "runner" // the one that is killed

var children = map[string]func(args []string) error{childRunner: runner}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		if err := children[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
