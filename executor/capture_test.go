package executor

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// tape is an output of given chunks and end.
type tape struct {
	chunks []Chunk
	end    error
}

func (t *tape) Next() (Chunk, error) {
	if len(t.chunks) == 0 {
		return Chunk{}, t.end
	}
	c := t.chunks[0]
	t.chunks = t.chunks[1:]
	return c, nil
}

func (t *tape) Close() error { return nil }

// pieces cuts text into chunks of at most n bytes, alternating the streams when both.
func pieces(text []byte, n int, both bool) []Chunk {
	var out []Chunk
	for i := 0; len(text) > 0; i++ {
		k := min(n, len(text))
		out = append(out, Chunk{Stderr: both && i%2 == 1, Bytes: text[:k]})
		text = text[k:]
	}
	return out
}

// req D2: exactly the bound with both ends is complete; one byte more is not, and all of it is
// still counted and hashed.
func TestCaptureBounds(t *testing.T) {
	const bound = 256
	for _, size := range []int{0, 1, bound - 1, bound, bound + 1, 5 * bound} {
		for _, piece := range []int{1, 7, bound, 10 * bound} {
			for _, both := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d bytes in %d, both %v", size, piece, both), func(t *testing.T) {
					text := make([]byte, size)
					for i := range text {
						text[i] = byte(rand.IntN(256)) // arbitrary bytes: no encoding is assumed
					}
					stdout, stderr := evidence.Salt{1}, evidence.Salt{2}
					c := newCapture(bound, stdout, stderr, nil, newTee(nil, nil))
					chunks := pieces(text, piece, both)
					c.read(&tape{chunks: chunks, end: io.EOF})
					e, kept := c.result(evidence.HandleKey{})
					require.Equal(t, size > bound, c.over())
					require.Equal(t, size > bound, e.Incomplete)
					require.Equal(t, uint64(min(size, bound)), e.Stdout.Stored+e.Stderr.Stored)
					require.Equal(t, uint64(size), e.Stdout.Received+e.Stderr.Received)
					require.True(t, e.Stdout.EndOfStream && e.Stderr.EndOfStream)
					var all [2][]byte
					for _, c := range chunks {
						i := 0
						if c.Stderr {
							i = 1
						}
						all[i] = append(all[i], c.Bytes...)
					}
					for i, s := range []evidence.Stream{e.Stdout, e.Stderr} {
						d := kept[i].Descriptor
						require.Equal(t, evidence.SaltedSum(d.Salt, all[i]), s.ReceivedHash)
						require.True(t, bytes.HasPrefix(all[i], kept[i].Bytes))
						require.Equal(t, s.Stored < s.Received, s.Truncated)
						require.Equal(t, s.Truncated, d.Truncated)
						require.Equal(t, evidence.PlainDigest(sha256.Sum256(kept[i].Bytes)), d.Stored)
						require.Equal(t, evidence.PlainDigest(sha256.Sum256(all[i])), d.Received)
						require.Equal(t, kept[i].Ref, s.Bytes)
						require.Equal(t, evidence.SaltedSum(d.Salt, kept[i].Bytes), s.Bytes.Salted)
					}
				})
			}
		}
	}
}

// req D1: only the end of both streams makes a capture complete.
func TestCaptureEnds(t *testing.T) {
	torn := errors.New("torn")
	for name, c := range map[string]struct {
		end  error
		code string
	}{
		"end":     {io.EOF, ""},
		"torn":    {torn, "stream_error"},
		"cut off": {io.ErrUnexpectedEOF, "stream_error"},
	} {
		t.Run(name, func(t *testing.T) {
			cap := newCapture(256, evidence.Salt{}, evidence.Salt{}, nil, newTee(nil, nil))
			cap.read(&tape{chunks: pieces([]byte("text"), 2, false), end: c.end})
			e, _ := cap.result(evidence.HandleKey{})
			require.Equal(t, c.code, e.Code)
			require.Equal(t, c.code == "", e.Stdout.EndOfStream)
			require.Equal(t, uint64(4), e.Stdout.Stored)
			require.Equal(t, c.code != "", cap.failure() != nil)
		})
	}
	t.Run("not ended", func(t *testing.T) {
		cap := newCapture(256, evidence.Salt{}, evidence.Salt{}, nil, newTee(nil, nil))
		cap.take(Chunk{Bytes: []byte("text")})
		e, _ := cap.result(evidence.HandleKey{})
		require.Equal(t, "no_end_of_stream", e.Code)
		cap.take(Chunk{Bytes: []byte("late")})
		again, _ := cap.result(evidence.HandleKey{})
		require.Equal(t, e, again, "what comes later is not part of it")
	})
}

func TestTee(t *testing.T) {
	var out, errs strings.Builder
	tee := newTee(&out, &errs)
	c := newCapture(10, evidence.Salt{}, evidence.Salt{}, nil, tee)
	c.read(&tape{chunks: []Chunk{{Bytes: []byte("one\n")}, {Stderr: true, Bytes: []byte("two\n")}, {Bytes: []byte("three\n")}}, end: io.EOF})
	require.NoError(t, tee.close())
	require.Equal(t, "one\nth", out.String(), "only what is kept")
	require.Equal(t, "two\n", errs.String())

	failing := newTee(io.Discard, brokenWriter{})
	failing.push(true, []byte("x"))
	failing.push(false, []byte("x"))
	var p *PanicError
	require.ErrorAs(t, failing.close(), &p)
}
