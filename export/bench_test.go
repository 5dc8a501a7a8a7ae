package export_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/sqlite"
)

// filled is a ledger in SQLite of at least `size` events, one attempt among them.
func filled(b *testing.B, size int) *exporttest.Fixture {
	b.Helper()
	store, err := sqlite.Open(context.Background(), filepath.Join(b.TempDir(), "ledger.db"), sqlite.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	f := exporttest.On(b, store)
	f.Run(b, evidencetest.Success())
	f.Seal(b, "one")
	ctx := context.Background()
	batch := make([]ledger.Prepared, ledger.MaxBatch)
	for i := range batch {
		batch[i] = ledger.Prepared{Type: "NoteTaken", Media: "text/plain", Data: make([]byte, 200)}
	}
	for head := ledger.NoStream; int(head) < size; head += ledger.Version(len(batch)) {
		_, err := f.Ledger.Append(ctx, "notes", head, batch...)
		require.NoError(b, err)
	}
	return f
}

// events counts a bundle's events.
func events(b *testing.B, file []byte) (n int) {
	b.Helper()
	env, err := bundle.UnmarshalEnvelope(file)
	require.NoError(b, err)
	p, err := bundle.Unmarshal(env.Payload)
	require.NoError(b, err)
	for _, s := range p.Streams {
		n += len(s.Events)
	}
	return n
}

// BenchmarkExportVerify: exporting and verifying one attempt out of many events takes what its own
// events take; only the proofs grow, with the logarithm (req U5). The ratio is to a thousand events.
func BenchmarkExportVerify(b *testing.B) {
	base := map[string]float64{}
	for _, size := range []int{1_000, 100_000, 1_000_000} {
		f := filled(b, size)
		file := f.Export(b, export.Request{Attempts: oneAttempt})
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"export", func() {
				payload, _, err := export.Build(context.Background(), f.Ledger, export.Request{Attempts: []evidence.AttemptID{"one"}, Checkpoint: f.Signer})
				require.NoError(b, err)
				_, err = export.Sign(payload, f.Key)
				require.NoError(b, err)
			}},
			{"verify", func() {
				require.Equal(b, verify.Valid, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}).Verdict)
			}},
		} {
			b.Run(fmt.Sprintf("%s/%d", step.name, size), func(b *testing.B) {
				start := time.Now()
				for range b.N {
					step.do()
				}
				each := float64(time.Since(start).Microseconds()) / 1000 / float64(b.N)
				if size == 1_000 {
					base[step.name] = each
				}
				b.ReportMetric(each, "ms/op")
				b.ReportMetric(each/base[step.name], "of-1000-events")
				b.ReportMetric(float64(len(file)), "bytes")
				b.ReportMetric(float64(len(file))/float64(events(b, file)), "bytes/event") // everything counted: proofs, blobs, signatures
			})
		}
	}
}
