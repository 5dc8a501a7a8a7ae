package tamper_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// An event that its writer signed and that lies about the bytes it names is bad in an audit as in a bundle.
// Once the bytes are forgotten nobody can tell.
//
// req R5 req R6
func TestLyingEventsAreBadToAuditAndVerifierAlike(t *testing.T) {
	for _, c := range []struct {
		name  string
		check string // of the verifier
		event string // that lies
		bend  func(*evidencetest.History)
	}{
		{"a toolchain that isn't the recipe's", verify.CheckRecipe, "AttemptRegistered", func(h *evidencetest.History) {
			h.Registered.Toolchain = &evidence.ToolchainDigest{7}
			h.Custody.Request = h.Request()
		}},
		{"more output than there is", verify.CheckOutput, "OutputCaptured", func(h *evidencetest.History) {
			h.Output.Stdout.Stored += 5
			h.Output.Stdout.Received += 5
		}},
		{"fewer files than the manifest has", verify.CheckSource, "SourceMaterialized", func(h *evidencetest.History) {
			h.Materialized.Files--
		}},
		{"a control of another value", verify.CheckControls, "KernelObserved", func(h *evidencetest.History) {
			h.Kernel.Controls[0].Value[0] ^= 1
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			f := exporttest.On(t, s)
			h := evidencetest.Success()
			c.bend(h)
			var lies ledger.Event
			for _, e := range f.Run(t, h) {
				if e.Type == c.event {
					lies = e
				}
			}
			v := verify.Verify(f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}}), verify.Policy{Trust: verify.TrustLedger(f.Identity)})
			require.Equal(t, verify.Fail, v.Check(c.check).Result, v.Check(c.check).Detail)

			audit := journal.Audit{Exhibit: s, Mentions: mentions}
			r, err := audit.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, journal.AuditInvalid, r.Verdict)
			require.Equal(t, lies.Index, r.FirstBad.Index, r.FirstBad)
			require.Equal(t, "named blobs", r.FirstBad.Field)

			p, _, err := journal.Decode(lies)
			require.NoError(t, err)
			for _, m := range mentions(p) {
				keys := []ledger.BlobKey{m.Plain}
				if m.Ref != nil {
					keys = []ledger.BlobKey{ledger.BlobKey(m.Ref.Salted), ledger.BlobKey(m.Ref.Descriptor)}
				}
				for _, k := range keys {
					if _, err := s.Get(t.Context(), k); err != nil {
						var absent *ledger.BlobAbsentError
						require.ErrorAs(t, err, &absent) // no test stores a profile's table
						continue
					}
					require.NoError(t, s.Forget(t.Context(), k))
				}
			}
			r, err = audit.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, journal.AuditValid, r.Verdict, "%v", r.FirstBad)
			require.Positive(t, r.Blobs.Forgotten)
		})
	}
}

// Evidence that no path lies outside the allowed set, over a list that holds one, and an approval that
// rests on it.
//
// req R5
func TestAuditDecidesPathsAgain(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	f := exporttest.On(t, s)
	h := evidencetest.Success()
	revision, globs := h.Registered.Subject.Revision, []string{"docs/**"}
	checked, list, err := evidence.CheckPaths("", revision, globs, evidence.PathList{"docs/a", "src/b"})
	require.NoError(t, err)
	checked.Outside, checked.Paths = 0, h.Keep("paths", list)
	f.Keep(t, h)
	events := f.Append(t, "change-fix",
		evidence.ChangeOpened{Change: "fix", Repository: evidence.RepositoryID{1}},
		evidence.VersionAdded{Version: 1, Revision: revision},
		evidence.ContextSet{Version: 1, Context: evidence.Context{Version: 1, Revision: revision, Policy: "main", Epoch: 1, AllowPaths: globs,
			Required: []evidence.RequiredEvidence{{Kind: evidence.EvidencePaths, Digest: evidence.PathPolicyDigest(globs)}}}},
		checked)
	_, err = f.Journal().Approve(t.Context(), "fix", nil)
	require.NoError(t, err)
	r, err := journal.Audit{Exhibit: s, Mentions: mentions}.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, journal.AuditInvalid, r.Verdict)
	require.Equal(t, events[3].Index, r.FirstBad.Index, r.FirstBad)
	require.Equal(t, "named blobs", r.FirstBad.Field)
}
