package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/baildock/baildock/export/report"
)

// ui holds every rule of what is shown: results go to out, progress and errors to err.
type ui struct {
	out, err io.Writer
	outTerm  bool
	errTerm  bool
	json     bool
	quiet    bool

	mu          sync.Mutex // stages come from several goroutines
	staged      bool       // a line of stages is open on the terminal
	stagesPlain bool       // stages never share a line
}

func newUI(out, err io.Writer) *ui {
	return &ui{out: out, err: err, outTerm: isTerminal(out), errTerm: isTerminal(err)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printJSON writes one JSON document to stdout.
func (u *ui) printJSON(v any) error {
	b, err := encodeJSON(v, "  ")
	if err != nil {
		return err
	}
	_, err = u.out.Write(b)
	return err
}

func encodeJSON(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return b.Bytes(), nil
}

// stage tells that a stage of a run was reached: words on one line of a terminal, else a line each.
func (u *ui) stage(stage, text string) {
	if u.quiet {
		return
	}
	said := stage
	if text != "" {
		said += " " + text
	}
	said = visible(said)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.errTerm || u.stagesPlain {
		fmt.Fprintf(u.err, "baildock: %s\n", said)
		return
	}
	if u.staged {
		said = " … " + said
	}
	u.staged = true
	fmt.Fprint(u.err, said)
}

// plainStages makes every stage a line of its own, where something else shares the terminal.
func (u *ui) plainStages() { u.stagesPlain = true }

// say tells a person something that went wrong beside what was asked for.
func (u *ui) say(text string) { fmt.Fprintf(u.err, "baildock: %s\n", visible(text)) }

// progressDone ends a line of stages, if one is open.
func (u *ui) progressDone() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.staged {
		u.staged = false
		fmt.Fprintln(u.err)
	}
}

// bar shows a long job's progress on a terminal; elsewhere it says nothing. The returned function
// takes work done and work in all.
func (u *ui) bar(what string) func(done, total uint64) {
	if u.quiet || !u.errTerm {
		return func(uint64, uint64) {}
	}
	var b *progressbar.ProgressBar
	return func(done, total uint64) {
		if b == nil {
			b = progressbar.NewOptions64(int64(total), progressbar.OptionSetWriter(u.err),
				progressbar.OptionSetDescription(what), progressbar.OptionClearOnFinish(),
				progressbar.OptionThrottle(100*time.Millisecond))
		}
		if err := b.Set64(int64(min(done, total))); err != nil {
			b = nil
		}
	}
}

// strong sets the words a person looks for first; only a terminal gets colour.
func (u *ui) strong(s string, good bool) string {
	if !u.outTerm || os.Getenv("NO_COLOR") != "" {
		return s
	}
	colour := "31"
	if good {
		colour = "32"
	}
	return "\x1b[1;" + colour + "m" + s + "\x1b[0m"
}

// visible makes a message harmless on a terminal, on one line. Backslashes stay as they are:
// messages quote what others wrote.
func visible(s string) string { return escape(s, `\`) }

// visibleLines makes what others wrote harmless, line by line. A backslash is doubled, so that no
// text passes for an escape of another.
func visibleLines(s string) string { return escape(s, "\n\t") }

// escape escapes everything but the characters of keep, which are ASCII.
func escape(s, keep string) string {
	var b strings.Builder
	for {
		i := strings.IndexAny(s, keep)
		if i < 0 {
			b.WriteString(report.Escape(s))
			return b.String()
		}
		b.WriteString(report.Escape(s[:i]))
		b.WriteByte(s[i])
		s = s[i+1:]
	}
}

// tee shows a contained command's output as it arrives: escaped on a terminal, byte for byte
// elsewhere. A multi-byte character may be split between two writes.
type tee struct {
	to    io.Writer
	term  bool
	carry []byte
}

func (t *tee) Write(b []byte) (int, error) {
	if !t.term {
		return t.to.Write(b)
	}
	whole := append(t.carry, b...)
	keep := incomplete(whole)
	t.carry = append([]byte(nil), whole[len(whole)-keep:]...)
	if _, err := io.WriteString(t.to, visibleLines(string(whole[:len(whole)-keep]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close shows what is left of a character that never ended.
func (t *tee) Close() error {
	_, err := io.WriteString(t.to, visibleLines(string(t.carry)))
	t.carry = nil
	return err
}

// incomplete is the length of a character begun at the end of b.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			break
		}
	}
	return 0
}

// stamp is a time as every output writes it: RFC 3339, UTC, nanoseconds.
func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z") }

// note says something beside the data: to stderr, and never with --quiet or --json.
func (p *program) note(format string, args ...any) {
	if !p.ui.quiet && !p.ui.json {
		fmt.Fprintf(p.ui.err, format+"\n", args...)
	}
}
