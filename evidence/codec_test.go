package evidence_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
)

// Every other spelling of a valid StopOrdered {2: "timeout", 3: 5} is refused (law 7).
//
// req A2
func TestOneSpelling(t *testing.T) {
	good := "a2" + "02" + "67" + hex.EncodeToString([]byte("timeout")) + "03" + "05"
	var e evidence.StopOrdered
	require.NoError(t, evidence.Unmarshal(unhex(t, good), &e))
	for name, bad := range map[string]string{
		"wide integer value":        strings.TrimSuffix(good, "05") + "1805",
		"wide integer key":          strings.Replace(good, "a202", "a21802", 1),
		"wide text length":          strings.Replace(good, "67", "7807", 1),
		"wide map length":           "b802" + good[2:],
		"indefinite map":            "bf" + good[2:] + "ff",
		"indefinite text":           strings.Replace(good, "67", "7f67", 1)[:22] + "ff0305",
		"unsorted keys":             "a2" + "0305" + "02" + "67" + hex.EncodeToString([]byte("timeout")),
		"duplicate key":             "a3" + good[2:] + "0305",
		"unknown key":               "a3" + good[2:] + "0900",
		"null into an optional":     "a3" + "01f6" + good[2:],
		"float for an integer":      strings.TrimSuffix(good, "05") + "f94500",
		"a tag":                     "c1" + good,
		"trailing byte":             good + "00",
		"truncated":                 good[:len(good)-2],
		"bad UTF-8":                 strings.Replace(good, "6f7574", "6fff74", 1),
		"array instead of map":      "82" + "67" + hex.EncodeToString([]byte("timeout")) + "05",
		"bytes instead of text":     strings.Replace(good, "67", "47", 1),
		"text key":                  "a2" + "6132" + "67" + hex.EncodeToString([]byte("timeout")) + "0305",
		"handle of 15 bytes":        "a3" + "014f" + strings.Repeat("00", 15) + good[2:],
		"handle of 17 bytes":        "a3" + "0151" + strings.Repeat("00", 17) + good[2:],
		"handle as a list":          "a3" + "0190" + strings.Repeat("00", 16) + good[2:],
		"negative for an unsigned":  strings.TrimSuffix(good, "05") + "24",
		"integer beyond 64 bits":    strings.TrimSuffix(good, "05") + "c249" + "010000000000000000",
		"empty":                     "",
		"deep nesting":              strings.Repeat("81", 40) + "00",
		"huge announced map":        "bbffffffffffffffff",
		"huge announced byte array": "a1015bffffffffffffffff",
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, good, bad)
			require.Error(t, evidence.Unmarshal(unhex(t, bad), &e))
		})
	}
	// False of an omitted field spelled out.
	require.Error(t, evidence.Unmarshal(unhex(t, "a301"+"50"+strings.Repeat("00", 16)+"02"+"01"+"03f4"), &evidence.ContainerCreated{}))
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// Every event type decodes what it encodes, refuses data of a later schema, and its name is known.
//
// req R7
func TestEveryEventType(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range everyPayload(t) {
		meta, data := evidence.Encode(p, evidence.Meta{Schema: evidence.SchemaVersion, Actor: "runner", Nonce: evidence.Nonce{1}})
		got, m, err := evidence.Decode(p.EventType(), meta, data)
		require.NoError(t, err, p.EventType())
		require.Equal(t, data, evidence.Marshal(got))
		require.Equal(t, "runner", m.Actor)
		later, _ := evidence.Encode(p, evidence.Meta{Schema: 2, Actor: "runner"})
		_, _, err = evidence.Decode(p.EventType(), later, data)
		var unknown *evidence.UnknownEventError
		require.ErrorAs(t, err, &unknown)
		_, _, err = evidence.Decode("SomethingNew", meta, data)
		require.ErrorAs(t, err, &unknown)
		seen[p.EventType()] = true
	}
	for _, name := range evidence.EventTypes() {
		require.True(t, seen[name], "%s has no example here", name)
	}
}

func grounds() evidence.Grounds {
	at := evidence.EventIndex(7)
	return evidence.Grounds{Rules: 1, Grounds: []evidence.Ground{{Rule: evidence.RuleBasis}, {Rule: evidence.RuleSuccess, Index: &at, Attempt: "one"}}}
}

func canary(h *evidencetest.History) evidence.CanaryObserved {
	e := evidencetest.Observe(h, evidencetest.Corpus(), "filesystem.root")
	e.Record, e.Table, e.Verdict, e.Code = evidence.RecordDigest{1}, evidence.ProfileDigest{2}, evidence.CanaryFailed, "allowed" // the true ones change with the table
	return e
}

func everyPayload(t *testing.T) []evidence.Payload {
	h := evidencetest.Success()
	h.Stop = &evidence.StopOrdered{Cause: evidence.StopCancelled, After: 7}
	handle := evidencetest.Handle
	ref := h.Keep("detail", []byte("words"))
	out := append(h.Finished(),
		evidence.LedgerOpened{Ledger: evidence.LedgerID{1}, Origin: "baildock/x", Bundle: []byte{1}, Checkpoint: []byte{2}},
		evidence.KeyAdded{Role: evidence.RoleBundle, Key: []byte{1}, Endorser: []byte{2}, Signature: []byte{3}},
		evidence.KeyRetired{Role: evidence.RoleCheckpoint, Key: []byte{1}, Endorser: []byte{2}, Signature: []byte{3}},
		evidence.EpochAdvanced{Epoch: 1},
		evidence.ChangeOpened{Change: "c", Repository: evidence.RepositoryID{5}},
		evidence.VersionAdded{Version: 1, Revision: strings.Repeat("a", 40)},
		evidence.ContextSet{Version: 1, Context: evidence.Context{Version: 1, Revision: strings.Repeat("a", 40), Policy: evidence.DefaultPolicy, Epoch: 1}},
		evidence.AttemptOpened{Attempt: "one", Registration: evidence.Marshal(*h.Registered)},
		evidence.ClaimVoided{Breaking: evidence.Basis{Stream: "policy-main", Version: 1}},
		evidence.PreflightObserved{Result: evidence.PreflightUnsafe, Checks: []evidence.PreflightCheck{
			{Name: "daemon", Result: evidence.PreflightSupported}, {Name: "user", Result: evidence.PreflightUnsafe, Code: "uid_mismatched"}}, Detail: &ref},
		evidence.SourceRefused{Code: "source_submodule", Detail: &ref},
		evidence.CreateRuledOut{Handle: handle, Proof: evidence.ProofRefused, Status: 404},
		evidence.CreateRuledOut{Handle: handle, Proof: evidence.ProofEnded, Daemon: &evidence.DaemonIdentity{
			Engine: "ENGINE", Boot: evidence.Nonce{1}, Process: &evidence.DaemonProcess{PID: 2, Start: 3, Namespace: 4}}},
		evidence.StartFailed{Handle: handle, Code: "start_error"},
		evidence.CleanupUnconfirmed{Handle: handle, State: evidence.CleanupUnverifiable, Code: "inspect_unanswered"},
		evidence.WorkspaceMutated{Modified: 1, Added: 2, Deleted: 3, Renamed: 4, Mutations: &ref, Diff: &ref},
		evidence.WorkspaceMutated{Code: "git_made", Detail: &ref},
		evidence.PolicyChecked{Policy: evidence.WorkspacePolicyDigest{1}, Checks: []evidence.CheckedRule{{Name: "max_files"}, {Name: "new_links", Held: true}}, Detail: &ref},
		evidence.SnapshotLeft{Code: "busy"},
		evidence.AttemptFenced{Generation: 2, By: evidence.FencedByRecover, Reason: &ref},
		evidence.CustodyAbandoned{Handle: handle},
		evidence.RuntimeProbed{Attempt: "probe", Controls: h.Kernel.Controls, Values: h.Kernel.Values},
		canary(h),
		evidence.StreamSealed{},
		evidence.PathsChecked{Parent: strings.Repeat("b", 40), Revision: strings.Repeat("a", 40), Globs: []string{"src/**"}, Paths: ref, Touched: 3, Outside: 1},
		evidence.ContextApproved{Version: 1, Context: evidence.ContextDigest{1}, Attempts: []evidence.AttemptRelied{{Attempt: "one", Record: evidence.RecordDigest{2}}},
			Basis: []evidence.Basis{{Stream: "change-c", Version: 3, Leaf: evidence.LeafDigest{4}}}, Grounds: grounds()},
		evidence.ChangeIntegrated{Version: 1, Context: evidence.ContextDigest{1}, Revision: strings.Repeat("a", 40),
			Approval: evidence.Basis{Stream: "change-c", Version: 4}, Basis: []evidence.Basis{{Stream: "change-c", Version: 4}}, Grounds: grounds()},
		evidence.CandidateDerived{Revision: strings.Repeat("d", 40)},
	)
	require.Greater(t, len(out), 30)
	return out
}

// Golden bytes of events, recipe, environment, request and record. Old lines are kept for ever;
// BAILDOCK_UPDATE=1 rewrites the file while nothing has been released.
//
// req A2 req A3 req F1
func TestGoldenVectors(t *testing.T) {
	h := evidencetest.Success()
	a, err := evidence.Fold(h.Events()...)
	require.NoError(t, err)
	var b strings.Builder
	line := func(name string, v []byte) { b.WriteString(name + " " + hex.EncodeToString(v) + "\n") }
	text := func(name, v string) { b.WriteString(name + " " + v + "\n") }
	b.WriteString("# name, then hex of the canonical bytes or the digest's text. 2026-11-29.\n")
	line("environment", evidence.Marshal(h.Environment))
	text("environment-digest", h.Environment.Digest().String())
	line("recipe", evidence.Marshal(h.Recipe))
	text("recipe-digest", h.Recipe.Digest().String())
	h.Registered.Table = evidence.ProfileDigest{1} // the built-in table has a vector of its own
	text("request-digest", h.Request().String())
	line("meta", evidence.Marshal(evidence.Meta{Schema: 1, Actor: "runner", Cause: []byte{9}, Nonce: evidence.Nonce{1}}))
	for _, p := range everyPayload(t) {
		switch p.(type) {
		case evidence.IsolationObserved, evidence.KernelObserved, evidence.AttemptRegistered, evidence.AttemptFinished, evidence.CustodyTaken, evidence.RuntimeProbed:
			continue // they change with the profile's table
		case evidence.AttemptOpened:
			p = evidence.AttemptOpened{Attempt: "one", Registration: evidence.Marshal(*h.Registered)}
		}
		line(p.EventType(), evidence.Marshal(p))
	}
	contained := evidencetest.Contained()
	line("contained-environment", evidence.Marshal(contained.Environment))
	line("contained-recipe", evidence.Marshal(contained.Recipe))
	b2, err := evidence.Fold(contained.Events()...)
	require.NoError(t, err)
	containedRecord := evidence.RecordOf(&b2)
	contained.Registered.Table = evidence.ProfileDigest{1}
	line("contained-registered", evidence.Marshal(contained.Registered))
	containedRecord.Table, containedRecord.Request, containedRecord.Controls = evidence.ProfileDigest{}, nil, evidence.ControlCount{}
	line("contained-record", evidence.Marshal(containedRecord))
	record := evidence.RecordOf(&a)
	record.Table, record.Request, record.Controls = evidence.ProfileDigest{}, nil, evidence.ControlCount{}
	line("record", evidence.Marshal(record))
	path := filepath.Join("testdata", "vectors.txt")
	if os.Getenv("BAILDOCK_UPDATE") == "1" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(want), "\n"), 30)
	require.Equal(t, string(want), b.String())
}

// Flipping any bit of a valid encoding never decodes to the same value, and mostly not at all.
func TestFlippedBitsNeverDecodeToTheSameValue(t *testing.T) {
	flips := 0
	for _, p := range everyPayload(t) {
		meta, data := evidence.Encode(p, evidence.Meta{Schema: 1, Actor: "runner"})
		for i := range data {
			for bit := range 8 {
				bad := append([]byte(nil), data...)
				bad[i] ^= 1 << bit
				got, _, err := evidence.Decode(p.EventType(), meta, bad)
				if err == nil {
					require.Equal(t, bad, evidence.Marshal(got), "hashed bytes are the bytes received")
				}
				flips++
			}
		}
	}
	require.Greater(t, flips, 10_000)
}

func FuzzDecode(f *testing.F) {
	h := evidencetest.Success()
	seeds := 0
	for _, p := range h.Finished() {
		f.Add(p.EventType(), evidence.Marshal(p))
		seeds++
	}
	if seeds < 15 {
		f.Fatalf("%d seeds", seeds)
	}
	meta := evidence.Marshal(evidence.Meta{Schema: 1, Actor: "runner"})
	f.Fuzz(func(t *testing.T, typ string, data []byte) {
		p, _, err := evidence.Decode(typ, meta, data)
		if err == nil {
			require.Equal(t, data, evidence.Marshal(p))
		}
		var cs evidence.Custodies
		_ = cs.ApplyEncoded(typ, data) // any bytes: an error or a fold, never a panic
	})
}
