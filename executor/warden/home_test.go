package warden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// req C8: a machine has no ID where its file is missing or holds something else; a file that can't be read
// says nothing.
func TestMachineID(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]bool{
		"": false, "uninitialized\n": false, strings.Repeat("x", 32) + "\n": false,
		"01" + strings.Repeat("00", 15) + "\n": true,
	} {
		path := filepath.Join(dir, "machine-id")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		got, err := machineID(path)
		require.NoError(t, err)
		require.Equal(t, want, got != nil, "%q", text)
	}
	got, err := machineID(filepath.Join(dir, "none"))
	require.NoError(t, err)
	require.Nil(t, got)
	_, err = machineID(dir)
	require.ErrorContains(t, err, "read this machine's ID")
}
