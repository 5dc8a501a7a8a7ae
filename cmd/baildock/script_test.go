package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms"
	"github.com/sigstore/sigstore/pkg/signature/kms/fake"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor/fakedaemon"
	"github.com/baildock/baildock/export/bundle"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"baildock": checkedMain, "baildock-kms": withFakeKMS})
}

// scripts runs every script of a directory and fails when there are fewer than expected, or when none of
// them printed a document of a named schema.
func scripts(t *testing.T, dir string, atLeast int, setup func(*testscript.Env) error, documents ...string) {
	t.Helper()
	held := holdDocuments(t, documents...)
	found, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(found), atLeast, "scripts in %s", dir)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			e.Setenv(documentsEnv, held)
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
			"keyid": keyid,
			"note":  noteOf,
			"says":  says,
			"peer":  peerOf,
		},
	})
}

// TestScripts shows what each verb does and refuses without a daemon.
func TestScripts(t *testing.T) {
	scripts(t, "testdata", 12, nil, "contained-run", "append", "attempt", "attempts", "audit", "canaries", "change", "checkpoint", "checkpoint-verify", "cosigner", "error",
		"event", "export", "init", "inspect", "key", "key-change", "key-public", "keys", "policy", "recipe-check", "recipe-file", "replay", "report",
		"request", "rows", "schemas", "source-digest", "supervise", "verify", "version", "why")
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

// daemonKey is where a script's fake daemon lies.
type daemonKey struct{}

// says changes what a program of the fake daemon prints from now on: says PROGRAM TEXT
func says(ts *testscript.TestScript, neg bool, args []string) {
	daemon, ok := ts.Value(daemonKey{}).(*fakedaemon.Daemon)
	if neg || len(args) != 2 || !ok {
		ts.Fatalf("usage: says PROGRAM TEXT, with a fake daemon")
	}
	daemon.Script(args[0], fakedaemon.Program{Steps: []fakedaemon.Step{fakedaemon.Stdout(args[1])}})
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

// withFakeKMS is the program with sigstore's fake key management built in, which always holds the same
// key.
func withFakeKMS() {
	seed := sha256.Sum256([]byte("fake key management"))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		panic(err)
	}
	kms.AddProvider(fake.ReferenceScheme, func(ctx context.Context, _ string, hash crypto.Hash, _ ...signature.RPCOption) (kms.SignerVerifier, error) {
		return fake.LoadSignerVerifier(context.WithValue(ctx, fake.KmsCtxKey{}, crypto.PrivateKey(key)), hash)
	})
	checkedMain()
}

// keyid sets a variable to the ID of a key in the JSON that the last command printed:
// keyid VARIABLE ROLE NUMBER
func keyid(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: keyid VARIABLE ROLE NUMBER")
	}
	var keys []keyView
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &keys))
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	for _, k := range keys {
		if string(k.Role) != args[1] {
			continue
		}
		if n--; n < 0 {
			ts.Setenv(args[0], k.Key.String())
			return
		}
	}
	ts.Fatalf("there is no %s key %s", args[1], args[2])
}

// noteOf writes the checkpoint of a bundle to a file, as somebody keeps one: note BUNDLE FILE
func noteOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: note BUNDLE FILE")
	}
	env, err := bundle.UnmarshalEnvelope([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	p, err := bundle.Unmarshal(env.Payload)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), p.Checkpoint, 0o644))
}
