package evidence

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseMachineID(t *testing.T) {
	a, err := ParseMachineID([]byte("0123456789abcdef0123456789abcdef\n"))
	require.NoError(t, err)
	b, err := ParseMachineID([]byte("0123456789ABCDEF0123456789abcdef"))
	require.NoError(t, err)
	require.Equal(t, a, b)
	require.Equal(t, "sha256:1ef973757c452ddc87c8b598cd9aa2d5098e54a2a0d1c3d97489b8257069482b", a.String())
	for _, bad := range []string{"", "uninitialized", "0123", "0123456789abcdef0123456789abcdef00",
		"00000000000000000000000000000000", "0123456789abcdeg0123456789abcdef"} {
		_, err := ParseMachineID([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestParseBootID(t *testing.T) {
	n, err := ParseBootID([]byte("01234567-89ab-cdef-0123-456789abcdef\n"))
	require.NoError(t, err)
	require.Equal(t, "0123456789abcdef0123456789abcdef", n.String())
	for _, bad := range []string{"", "x", "00000000-0000-0000-0000-000000000000", "01234567-89ab-cdef-0123-456789abcde"} {
		_, err := ParseBootID([]byte(bad))
		require.Error(t, err, bad)
	}
}
