package schemas_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/executor/warden"
)

// req E8: a custody file is what its text says, and what it holds are an attempt's custody events.
func TestCustodyFile(t *testing.T) {
	g, dir := parse(t), filepath.Join(t.TempDir(), "custody")
	files, err := warden.OpenCustodyFiles(dir, nil)
	require.NoError(t, err)
	rec, h := files.Recorder(nil), evidencetest.Handle
	id := evidencetest.Container
	require.NoError(t, rec.Record(t.Context(),
		*evidencetest.Success().Custody,
		evidence.ContainerCreated{Handle: h, Container: id, Warnings: 1, Detail: &evidence.BlobRef{}},
		evidence.RemovalOrdered{Handle: h, Container: id},
		evidence.CleanupUnconfirmed{Handle: h, State: evidence.CleanupIncomplete, Code: "still_present"}))
	require.NoError(t, rec.Close())
	b, err := os.ReadFile(filepath.Join(dir, h.String()+".custody"))
	require.NoError(t, err)
	require.NoError(t, g.check(t, "custody-file", b))
	var d struct {
		Version uint `cbor:"1,keyasint"`
		Events  []struct {
			Type string `cbor:"1,keyasint"`
			Data []byte `cbor:"2,keyasint"`
		} `cbor:"2,keyasint"`
	}
	require.NoError(t, evidence.Unmarshal(b, &d))
	require.Len(t, d.Events, 4)
	for _, e := range d.Events {
		require.NoError(t, g.check(t, rule(e.Type), e.Data), e.Type)
	}
}
