package bundle_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
)

// FuzzUnmarshalEnvelope: what is accepted is written again as it was.
func FuzzUnmarshalEnvelope(f *testing.F) {
	file, err := os.ReadFile(filepath.Join("..", "testdata", "one.bundle"))
	require.NoError(f, err)
	_, err = bundle.UnmarshalEnvelope(file)
	require.NoError(f, err)
	for _, s := range [][]byte{file, file[1:], file[:len(file)-1], file[:400], {}, {0xd2, 0x84}, {0xd2, 0x84, 0x40, 0xa0, 0x40, 0x40}} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := bundle.UnmarshalEnvelope(b)
		if err == nil {
			require.Equal(t, b, e.Marshal())
		}
	})
}

// FuzzParseKey: a bare key has one text.
func FuzzParseKey(f *testing.F) {
	i := exporttest.New(f).Identity
	good := bundle.FormatKey(i.Bundle)
	for _, s := range [][]byte{good, bundle.FormatKey(i.Checkpoint), good[1:], append(good, '\n'), {}} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		spki, err := bundle.ParseKey(text)
		if err == nil {
			require.Equal(t, string(text), string(bundle.FormatKey(spki)))
		}
	})
}
