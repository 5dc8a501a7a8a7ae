package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"baildock": main})
}

// scripts runs every script of a directory and fails when there are fewer than expected.
func scripts(t *testing.T, dir string, atLeast int, setup func(*testscript.Env) error) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(found), atLeast, "scripts in %s", dir)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			e.Setenv("IMAGE", "sha256:"+strings.Repeat("01", 32))
			if setup == nil {
				return nil
			}
			return setup(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"flip":  flip,
			"big":   big,
			"sql":   sql,
		},
	})
}

// TestScripts shows what each verb does and refuses without a daemon.
func TestScripts(t *testing.T) {
	scripts(t, "testdata", 12, nil)
}

// exits runs a command and compares its exit code: exits CODE PROGRAM ARG…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if code, ok := err.(interface{ ExitCode() int }); ok {
		got = code.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// flip inverts one bit of a file: flip FILE BIT, counted from the end when negative.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE BIT")
	}
	bit, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	if bit < 0 {
		bit += 8 * len(b)
	}
	if bit < 0 || bit >= 8*len(b) {
		ts.Fatalf("%s has no bit %d", args[0], bit)
	}
	b[bit/8] ^= 1 << (bit % 8)
	ts.Check(os.WriteFile(path, b, 0o644))
}

// big writes a file of zeros: big FILE BYTES.
func big(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: big FILE BYTES")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), make([]byte, n), 0o644))
}
