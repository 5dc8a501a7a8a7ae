package fakedaemon_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

type madeArchive struct {
	id    string
	bytes []byte
}

// dockerArchive packs one file into an archive of one layer, in the format of docker save.
func dockerArchive(t *testing.T, name string, config map[string]any, program []byte) madeArchive {
	t.Helper()
	layer := tarball(t, entry{"prog", program})
	diff := sha256.Sum256(layer)
	doc, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "created": "1970-01-01T00:00:00Z", "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(diff[:])}},
	})
	require.NoError(t, err)
	sum := sha256.Sum256(doc)
	id := hex.EncodeToString(sum[:])
	manifest, err := json.Marshal([]map[string]any{{"Config": id + ".json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	require.NoError(t, err)
	return madeArchive{"sha256:" + id, tarball(t, entry{id + ".json", doc}, entry{"manifest.json", manifest}, entry{"layer.tar", layer})}
}

type entry struct {
	name string
	data []byte
}

func tarball(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.data))}))
		_, err := w.Write(e.data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}
