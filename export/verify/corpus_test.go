package verify_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
)

// corpusDir is where the corpus is written for other verifiers: each attack as a file, and index.tsv.
var corpusDir = flag.String("corpus", "", "also write the hostile corpus into this `directory`")

var unchecked = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.NilContainers = cbor.NilContainerAsEmpty
	m, err := o.EncMode()
	if err != nil {
		panic(err)
	}
	return m
}()

// attack is one hostile bundle.
type attack struct {
	name   string
	file   []byte
	checks []string         // one of which must fail
	trust  *bundle.Identity // nil: the fixture's
	kept   []byte
}

// corpus collects attacks under one fixture's trust.
type corpus struct {
	t       testing.TB
	f       *exporttest.Fixture // two attempts of one change, one of which failed, and an ad hoc one
	file    []byte              // its bundle, good
	env     bundle.Envelope
	attacks []attack
}

func (c *corpus) add(name string, file []byte, checks ...string) {
	c.attacks = append(c.attacks, attack{name: name, file: file, checks: checks})
}

func newCorpus(t testing.TB) *corpus {
	t.Helper()
	f := exporttest.New(t)
	h := evidencetest.Success()
	b := f.Change(t, "fix", h)
	failed := evidencetest.Success()
	failed.Registered.Attempt = "failed"
	failed.Exited.ExitCode = 1
	f.Bind(t, b, failed)
	f.Run(t, failed)
	f.Run(t, h)
	alone := evidencetest.Success()
	alone.Registered.Attempt = "alone"
	alone.Custody.Request = alone.Request()
	f.Run(t, alone)
	c := &corpus{t: t, f: f, file: f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one", "failed", "alone"}})}
	env, err := bundle.UnmarshalEnvelope(c.file)
	require.NoError(t, err)
	c.env = env
	return c
}

// maxTime and maxMemory bound what refusing one attack may cost: far above what it does, far below what
// a bomb would.
const (
	maxTime   = 5 * time.Second
	maxMemory = 256 << 20
)

// req T3, req T2, admission apart: no attack of the corpus passes, each fails at the check that is there for it, and refusing
// it costs bounded time and memory.
func TestHostileCorpus(t *testing.T) {
	c := newCorpus(t)
	good := verify.Policy{Trust: verify.TrustLedger(c.f.Identity)}
	require.Equal(t, verify.Valid, verify.Verify(c.file, good).Verdict, "%v", verify.Verify(c.file, good).Checks)
	require.Equal(t, verify.Valid, verify.Verify(newOwner(t, c.f).bundle(c.file), good).Verdict, "the owner's own tree is right")
	for _, group := range []func(*corpus){
		envelopeAttacks, headerAttacks, signatureAttacks, payloadAttacks, checkpointAttacks, streamAttacks,
		blobAttacks, spellingAttacks, ownerAttacks, cutAttacks, epochAttacks, probeAttacks, admissionAttacks, keyAttacks, boundAttacks,
	} {
		group(c)
	}
	names := map[string]bool{}
	for _, a := range c.attacks {
		require.False(t, names[a.name], "%s is there twice", a.name)
		names[a.name] = true
		policy := good
		if a.trust != nil {
			policy.Trust = verify.TrustLedger(*a.trust)
		}
		policy.Kept = a.kept
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		r := verify.Verify(a.file, policy)
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		require.Less(t, took, maxTime, a.name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxMemory), a.name)
		if r.Verdict != verify.Invalid {
			t.Errorf("%s: %s: %v", a.name, r.Verdict, r.Checks)
			continue
		}
		var failed []string
		for _, check := range r.Checks {
			if check.Result == verify.Fail {
				failed = append(failed, check.Name)
			}
		}
		if !slices.ContainsFunc(a.checks, func(n string) bool { return slices.Contains(failed, n) }) {
			t.Errorf("%s: %v failed, expected one of %v: %s", a.name, failed, a.checks, r.Check(failed[0]).Detail)
		}
	}
	t.Logf("count: %d attacks refused", len(c.attacks))
	require.GreaterOrEqual(t, len(c.attacks), 150)
	if *corpusDir != "" {
		c.write(*corpusDir)
	}
}

// write stores the corpus: index.tsv has a line of file, checks, trust and kept checkpoint each.
func (c *corpus) write(dir string) {
	c.t.Helper()
	require.NoError(c.t, os.MkdirAll(dir, 0o755))
	save := func(name string, b []byte) {
		require.NoError(c.t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	identity := func(name string, i bundle.Identity) {
		text, err := bundle.FormatIdentity(i)
		require.NoError(c.t, err)
		save(name, []byte(text))
	}
	identity("ledger.pub", c.f.Identity)
	save("good.bundle", c.file)
	_, approved := c.approved()
	save("approved.bundle", approved)
	var index strings.Builder
	for i, a := range c.attacks {
		name, trust, kept := fmt.Sprintf("%03d.bundle", i), "ledger.pub", "-"
		save(name, a.file)
		if a.trust != nil {
			trust = fmt.Sprintf("%03d.pub", i)
			identity(trust, *a.trust)
		}
		if a.kept != nil {
			kept = fmt.Sprintf("%03d.checkpoint", i)
			save(kept, a.kept)
		}
		fmt.Fprintf(&index, "%s\t%s\t%s\t%s\t%s\n", name, strings.Join(a.checks, ","), trust, kept, a.name)
	}
	save("index.tsv", []byte(index.String()))
}
