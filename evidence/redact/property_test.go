package redact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// alternatives is a second, slow reading of a form: for every character of a secret the ways to
// write it. Strict: what an encoder may write. Otherwise an escape's first character may stand for
// itself too.
func alternatives(secret, form string, strict bool) *regexp.Regexp {
	escape := map[string]rune{"percent": '%', "json": '\\', "single": '\\'}[form]
	var b strings.Builder
	for _, r := range secret {
		var ways []string
		if !strict || r != escape {
			ways = append(ways, regexp.QuoteMeta(string(r)))
		}
		bytewise := func(format string) {
			var p strings.Builder
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&p, format, c)
			}
			ways = append(ways, p.String())
		}
		switch {
		case form == "percent":
			bytewise("%%(?i:%02x)")
		case form == "json" || r >= 0x100:
			var u strings.Builder
			for _, c := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&u, `\\u(?i:%04x)`, c)
			}
			ways = append(ways, u.String())
			bytewise(`\\x(?i:%02x)`)
		default:
			bytewise(`(?:\\x|\\u00)(?i:%02x)`)
		}
		if form != "percent" && strings.ContainsRune(`"\/'`, r) {
			ways = append(ways, regexp.QuoteMeta(`\`+string(r)))
		}
		b.WriteString("(?:" + strings.Join(ways, "|") + ")")
	}
	re := regexp.MustCompile("^(?:" + b.String() + ")")
	re.Longest()
	return re
}

// reference marks what a redactor must take out.
func reference(secrets []string, text string, strict bool) []bool {
	marks := make([]bool, len(text))
	mark := func(from, to int) {
		for i := from; i < to; i++ {
			marks[i] = true
		}
	}
	for _, s := range secrets {
		patterns := []*regexp.Regexp{
			alternatives(s, "percent", strict), alternatives(strings.ReplaceAll(s, " ", "+"), "percent", strict),
			alternatives(s, "json", strict), alternatives(s, "single", strict),
		}
		for at := range text {
			if strings.HasPrefix(text[at:], s) {
				mark(at, at+len(s))
			}
			for _, re := range patterns {
				if m := re.FindStringIndex(text[at:]); m != nil {
					mark(at, at+m[1])
				}
			}
		}
	}
	return marks
}

func shown(text string, marks []bool) string {
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !marks[i]:
			b.WriteByte(text[i])
		case i == 0 || !marks[i-1]:
			b.WriteString(Marker)
		}
	}
	return b.String()
}

// Secrets and texts of few letters, so that everything overlaps everything.
func generate(rng *rand.Rand) (secrets []string, text string) {
	letters := []string{"a", "b", "0", "%", `\`, "u", "n", "\"", " ", "é", "𝄞"}
	letters = letters[:2+rng.IntN(len(letters)-1)]
	word := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(letters[rng.IntN(len(letters))])
		}
		return b.String()
	}
	for range 1 + rng.IntN(3) {
		s := word(8 + rng.IntN(6))
		secrets = append(secrets, s)
		if rng.IntN(3) == 0 {
			secrets = append(secrets, s+word(1+rng.IntN(8)))
		}
	}
	var b strings.Builder
	for range rng.IntN(12) {
		s := secrets[rng.IntN(len(secrets))]
		all := spellings(s)
		piece := all[rng.IntN(len(all))].text
		switch rng.IntN(4) {
		case 0: // a part of it
			from := rng.IntN(len(piece))
			piece = strings.ToValidUTF8(piece[from:from+rng.IntN(len(piece)-from+1)], "")
		case 1:
			piece = word(rng.IntN(6))
		}
		b.WriteString(piece)
	}
	return secrets, b.String()
}

// Any cutting gives what one push gives; nothing is missed and nothing else goes; no more
// is held back than the longest form less one byte.
func TestAnyChunking(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	compared, redacted := 0, 0
	for i := range 600 {
		secrets, text := generate(rng)
		r := must(t, secrets...)
		whole := r.Stream()
		want := string(whole.Push([]byte(text)))
		want += string(whole.Close())
		if whole.Redacted() {
			redacted++
		}
		require.Equal(t, strings.Contains(want, Marker), whole.Redacted())

		s := r.Stream()
		var got []byte
		for rest := []byte(text); len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(1+rng.IntN(40)))
			got = append(got, s.Push(bytes.Clone(rest[:n]))...)
			rest = rest[n:]
			require.Less(t, s.Held(), r.Longest())
		}
		got = append(got, s.Close()...)
		require.Equal(t, want, string(got), "case %d: %q in %q", i, secrets, text)
		require.Equal(t, whole.Redacted(), s.Redacted())
		for _, secret := range secrets {
			for _, form := range spellings(secret) {
				require.NotContains(t, want, form.text, "case %d: %s of %q in %q", i, form.name, secret, text)
			}
		}
		if strict := reference(secrets, text, true); printedFree(secrets, text) && utf8.ValidString(text) {
			if shown(text, strict) == shown(text, reference(secrets, text, false)) {
				require.Equal(t, shown(text, strict), want, "case %d: %q in %q", i, secrets, text)
				compared++
			}
		}
	}
	require.Greater(t, redacted, 300)
	require.Greater(t, compared, 80)
	t.Logf("count: %d texts with secrets, %d compared with the slow reading", redacted, compared)
}

// printedFree reports whether no base64 or hexadecimal form is in the text.
func printedFree(secrets []string, text string) bool {
	for _, s := range secrets {
		sc := newScanner(formsOf([][]byte{[]byte(s)})[1])
		sc.scan([]byte(text), 0, true)
		if len(sc.found) > 0 {
			return false
		}
	}
	return true
}

// Texts that can't hold a secret come out as they went in.
func TestOthersUnchanged(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	r := must(t, samples...)
	for range 300 {
		text := make([]byte, rng.IntN(5000))
		for i := range text {
			text[i] = byte(rng.Uint32())
		}
		s := r.Stream()
		out := bytes.Clone(s.Push(text))
		out = append(out, s.Close()...)
		require.Equal(t, text, out)
		require.False(t, s.Redacted())
	}
}

// Secrets that overlap themselves, and readings that begin in every escape, don't make it slow: the
// number of steps is bounded by what was pushed.
func TestSelfOverlap(t *testing.T) {
	r := must(t, strings.Repeat("a", 4096), "aaaaaaaa", strings.Repeat("ab", 2000))
	text := strings.Repeat("a", 1<<20)
	require.Equal(t, Marker, r.String(text))
	s := r.Stream()
	for range 64 {
		s.Push([]byte(text[:1<<14]))
		for _, sc := range s.scanners {
			require.LessOrEqual(t, len(sc.chains), 1)
		}
	}
	require.Less(t, s.Held(), r.Longest())
}

// A secret that repeats what its encoding ends with could be followed from every escape of a text. It
// isn't, and still goes.
func TestManyAlignments(t *testing.T) {
	secret := "0" + strings.Repeat(" ", 1000)
	r := must(t, secret)
	text := strings.Repeat("%20", 20_000)
	s := r.Stream()
	out := bytes.Clone(s.Push([]byte(text)))
	for _, sc := range s.scanners {
		require.LessOrEqual(t, len(sc.chains), maxChains)
	}
	out = append(out, s.Close()...)
	require.Equal(t, string(out), string(push(r, []byte(text), 7)))
	for _, form := range spellings(secret) {
		require.NotContains(t, r.String(text+form.text+text), form.text, form.name)
	}
}

func FuzzChunks(f *testing.F) {
	for _, s := range samples {
		for _, form := range spellings(s) {
			f.Add(s, "hunter2-hunter2", "x"+form.text+"y", uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, a, b, text string, size uint8) {
		r, err := New([]byte(a), []byte(b))
		if err != nil {
			return // refused secrets have no texts
		}
		whole := r.Stream()
		out := bytes.Clone(whole.Push([]byte(text)))
		out = append(out, whole.Close()...)
		require.Equal(t, out, push(r, []byte(text), 1+int(size)))
		if !whole.Redacted() {
			require.Equal(t, text, string(out))
		}
		for _, s := range []string{a, b} {
			if !overlapsMarker(s) {
				require.NotContains(t, string(out), s)
			}
		}
	})
}

// overlapsMarker reports whether the marker's own bytes could complete a secret.
func overlapsMarker(s string) bool {
	for i := 1; i < len(Marker); i++ {
		if strings.HasPrefix(s, Marker[i:]) || strings.HasSuffix(s, Marker[:i]) {
			return true
		}
	}
	return false
}
