package arch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The driver's requests travel elsewhere than to its socket in tests alone.
func TestDialedByTestsOnly(t *testing.T) {
	files(t, ".go", func(path string, content []byte) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "executor/docker/") || strings.HasPrefix(path, "test/") {
			return
		}
		require.NotContains(t, string(content), "OpenVia(", "%s dials past the socket", path)
	})
}
