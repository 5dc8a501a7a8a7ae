package executor

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/evidence/redact"
)

// contain makes the scene one of an agent in a workspace, which holds one sensitive value.
func (s *scene) contain(t *testing.T) {
	h := evidencetest.Contained()
	table, err := h.Recipe.Table()
	require.NoError(t, err)
	s.book = newBook(h)
	s.job.Profile, s.job.Recipe, s.job.Environment, s.job.Request = table, h.Recipe, h.Environment, h.Request()
	s.job.Source = "/home/execution/one/1/x/workspace"
	s.job.Redact, err = redact.New([]byte(evidencetest.Secret))
	require.NoError(t, err)
}

// req N10: a workspace that outgrew its bound stops the command, and one that can't be looked at
// does too; a look that finds nothing stops nothing.
func TestWorkspaceUsage(t *testing.T) {
	play(t, "outgrown", func(t *testing.T, s *scene) {
		s.contain(t)
		looks := 0
		s.job.Usage = func() (string, error) {
			if looks++; looks == 3 {
				return "workspace_bytes", nil
			}
			return "", nil
		}
		s.script.command = (*box).sleep
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "workspace_limit", v.Detail, v.Causes)
		require.Equal(t, evidence.OutcomeOutputLimit, v.Outcome)
		require.Equal(t, evidence.CleanupForceKilled, cleanup(t, s))
		require.Equal(t, 3, looks)
	})
	play(t, "unreadable", func(t *testing.T, s *scene) {
		s.contain(t)
		s.job.Usage = func() (string, error) { return "", errors.New("disk gone") }
		s.script.command = (*box).sleep
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "transport_fault", v.Detail, v.Causes)
		require.Equal(t, []string{"workspace_unreadable"}, s.book.fold.Run.Exited.Faults)
	})
	play(t, "panics", func(t *testing.T, s *scene) {
		s.contain(t)
		s.job.Usage = func() (string, error) { panic("odd") }
		s.script.command = (*box).sleep
		v, err := s.perform()
		var p *PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, "transport_fault", v.Detail, v.Causes)
	})
	play(t, "the first cause wins", func(t *testing.T, s *scene) {
		s.contain(t)
		s.job.Recipe.Limits.Wall = time.Second
		s.job.Usage = func() (string, error) {
			time.Sleep(2 * time.Second)
			return "workspace_bytes", nil
		}
		s.script.command = (*box).sleep
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "timeout", v.Detail, v.Causes)
	})
	play(t, "a slow look is followed by a long pause", func(t *testing.T, s *scene) {
		s.contain(t)
		looks := 0
		s.job.Usage = func() (string, error) { looks++; time.Sleep(time.Second); return "", nil }
		s.script.command = func(b *box) { time.Sleep(25 * time.Second); b.exit(0) }
		_, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, 3, looks)
	})
}

// req L5, req D2: a sensitive value leaves nothing behind, in whatever chunks and form it arrives: no
// blob, no copy, no error, no progress; bound, totals and digests are of what is kept.
func TestSensitiveValuesAreRedactedAtCapture(t *testing.T) {
	forms := []string{evidencetest.Secret, base64.StdEncoding.EncodeToString([]byte("x" + evidencetest.Secret)), fmt.Sprintf("%x", evidencetest.Secret)}
	for i, form := range forms {
		play(t, fmt.Sprint("form ", i), func(t *testing.T, s *scene) {
			s.contain(t)
			var copied bytes.Buffer
			s.job.Stdout = &copied
			s.script.command = func(b *box) {
				for _, c := range []byte("before " + form + " after\n") {
					b.print(string(c))
				}
				b.printErr("nothing here\n")
				b.exit(0)
			}
			_, err := s.perform()
			require.NoError(t, err)
			o := s.book.fold.Run.Output
			kept := string(s.book.blobs[o.Stdout.Bytes.Salted])
			require.Contains(t, kept, redact.Marker)
			require.NotContains(t, kept, form)
			require.True(t, strings.HasPrefix(kept, "before ") && strings.HasSuffix(kept, " after\n"), kept)
			require.Equal(t, kept, copied.String())
			require.True(t, o.Stdout.Redacted)
			require.False(t, o.Stderr.Redacted)
			require.True(t, o.Stdout.EndOfStream)
			require.Equal(t, uint64(len(kept)), o.Stdout.Received)
			require.Equal(t, o.Stdout.Bytes.Salted, o.Stdout.ReceivedHash)
		})
	}
	play(t, "held back until the end, then too much", func(t *testing.T, s *scene) {
		s.contain(t)
		s.job.Recipe.Limits.Output = 256
		half := evidencetest.Secret[:len(evidencetest.Secret)-1]
		s.script.command = func(b *box) { b.print(strings.Repeat("x", 250) + half); b.exit(0) }
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "output_limit", v.Detail, v.Causes)
		require.EqualValues(t, 256, s.book.fold.Run.Output.Stdout.Stored)
		require.EqualValues(t, 250+len(half), s.book.fold.Run.Output.Stdout.Received)
	})
	play(t, "errors", func(t *testing.T, s *scene) {
		s.contain(t)
		leak := errors.New("invalid environment variable: " + evidencetest.Secret)
		s.script.before["start"] = func() error { return &Fault{Call: "start", Answered: true, Status: 500, Err: leak} }
		s.script.before["remove"] = func() error { return leak }
		s.script.before["kill"] = func() error { return leak }
		s.book.fail["RemovalOrdered"] = errors.Join(ErrFenced, leak)
		said := ""
		_, err := s.performSaying(&said)
		require.Error(t, err)
		require.ErrorIs(t, err, ErrFenced)
		require.NotContains(t, err.Error()+said, evidencetest.Secret)
		require.Contains(t, err.Error(), redact.Marker)
		blobs := 0
		for _, b := range s.book.blobs {
			require.NotContains(t, string(b), evidencetest.Secret)
			blobs++
		}
		require.Greater(t, blobs, 2)
	})
}

// performSaying is perform with everything that was said to whoever watches.
func (s *scene) performSaying(said *string) (evidence.Verdict, error) {
	defer s.cancel()
	err := Run(s.ctx, Config{
		Driver: s.script, Recorder: s.book, Watchdog: s.dogs, Progress: func(stage, text string) { *said += stage + text },
	}, s.job)
	return evidence.VerdictOf(&s.book.fold), err
}
