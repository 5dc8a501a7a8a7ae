package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func must(t testing.TB, secrets ...string) *Redactor {
	t.Helper()
	raw := make([][]byte, len(secrets))
	for i, s := range secrets {
		raw[i] = []byte(s)
	}
	r, err := New(raw...)
	require.NoError(t, err)
	return r
}

// spelling is one named way to write a secret.
type spelling struct{ name, text string }

// spellings writes a secret with encoders that aren't ours, and with every escape spelled out.
func spellings(secret string) []spelling {
	var all []spelling
	add := func(name, text string) { all = append(all, spelling{name, text}) }
	add("plain", secret)
	for i, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			for after := range 3 {
				add(fmt.Sprintf("base64 %d +%d-%d", i, before, after),
					enc.EncodeToString([]byte("xyz"[:before]+secret+"\xff\x00"[:after])))
			}
		}
	}
	lower := hex.EncodeToString([]byte(secret))
	add("hex", lower)
	add("HEX", strings.ToUpper(lower))
	add("hex lines", wrap(lower, 12, "\n"))
	add("base64 lines", wrap(base64.StdEncoding.EncodeToString([]byte("a"+secret)), 7, "\r\n"))
	add("query", url.QueryEscape(secret))
	add("path", url.PathEscape(secret))
	add("percent", each(secret, "%%%02x"))
	add("PERCENT", each(secret, "%%%02X"))
	add("json", quoted(secret, true))
	add("json html", quoted(secret, false))
	add("slashes", strings.ReplaceAll(quoted(secret, false), "/", `\/`))
	add(`\u`, each(secret, `\u%04x`))
	add(`\U`, each(secret, `\u%04X`))
	add(`\x`, each(secret, `\x%02x`))
	ascii := fmt.Sprintf("%+q", secret)
	add("ascii", ascii[1:len(ascii)-1])
	var alternate strings.Builder
	for i, b := range []byte(secret) {
		if i%2 == 0 || b >= 0x80 {
			fmt.Fprintf(&alternate, `\u00%02X`, b)
			continue
		}
		alternate.WriteString(quoted(string(b), false))
	}
	add("every other", alternate.String())
	return all
}

func each(s, format string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func quoted(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

func wrap(s string, n int, end string) string {
	var b strings.Builder
	for len(s) > n {
		b.WriteString(s[:n] + end)
		s = s[n:]
	}
	return b.String() + s
}

var samples = []string{
	"hunter2-hunter2", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", `pa"ss\wo/rd <&> 100%`, "ünïcödé-€-𝄞-key",
	"aaaaaaaa", "abababab", `\\\\\\\\`, "%41%41%41", "00 00 00 00", `nnnn\nnn`, "/+/+/+/+", "12345678",
}

// A secret is found in every form, wherever it stands and however the text is cut.
func TestEveryFormGoes(t *testing.T) {
	count := 0
	for _, secret := range samples {
		r := must(t, secret)
		for _, s := range spellings(secret) {
			for _, around := range []string{"", " ", "a", "0", "=", "%", `\`, "\n", "%4", `\u00`, "[redacted"} {
				text := around + s.text + "\x00" + around
				got := r.String(text)
				require.NotContains(t, got, s.text, "%s of %q in %q", s.name, secret, text)
				require.Contains(t, got, Marker)
				require.Equal(t, []byte(got), push(r, []byte(text), 1), "%s of %q in %q, byte by byte", s.name, secret, text)
				count++
			}
		}
	}
	require.Greater(t, count, 5000)
	t.Logf("count: %d placed forms", count)
}

func push(r *Redactor, text []byte, size int) []byte {
	s := r.Stream()
	var out []byte
	for len(text) > 0 {
		n := min(size, len(text))
		out = append(out, s.Push(text[:n])...)
		text = text[n:]
	}
	return append(out, s.Close()...)
}

// What goes is exactly the form: what stands beside it stays.
func TestExactly(t *testing.T) {
	for _, c := range []struct {
		secrets    []string
		text, want string
	}{
		{[]string{"hunter2-hunter2"}, "a hunter2-hunter2 b", "a [redacted] b"},
		{[]string{"hunter2-hunter2"}, "hunter2-hunter", "hunter2-hunter"},
		{[]string{"hunter2-hunter2"}, "hunter2-hunter2-hunter2-hunter", "[redacted]-hunter"},
		{[]string{"hunter2-hunter2"}, "hunter2-hunter2hunter2-hunter2", "[redacted]"},
		{[]string{"password", "password-and-more"}, "password-and-more password-and-mor", "[redacted] [redacted]-and-mor"},
		{[]string{"abcdefgh", "efghijkl"}, "-abcdefghijkl-", "-[redacted]-"},
		{[]string{"abcdefgh", "cdefghij", "bcdefghi"}, "xabcdefghx cdefghij", "x[redacted]x [redacted]"},
		{[]string{"a b c d e f"}, "q=a+b+c+d+e+f&x=a%20b+c", "q=[redacted]&x=a%20b+c"},
		{[]string{"bcd efgh"}, "%abcd%20efgh%", "%a[redacted]%"},
		{[]string{"0123 4567"}, `\u00%u0123\u00204567`, `\u00%u[redacted]`},
		{[]string{"hunter2!hunter2!"}, "aHVudGVyMiFodW50ZXIyIQ==.", "[redacted]."},
		{[]string{"hunter2!hunter2!"}, "eGh1bnRlcjIhaHVudGVyMiF4", "e[redacted]4"},
		{[]string{"hunter2!hunter2!"}, "68756e7465723221\n68756e7465723221\n", "[redacted]\n"},
		{[]string{"hunter2!hunter2!"}, "68756e7465723221\n\n68756e7465723221", "68756e7465723221\n\n68756e7465723221"},
		{[]string{"hunter2!hunter2!"}, "68756E7465723221" + "68756e7465723221", "68756E7465723221" + "68756e7465723221"},
		{[]string{"key-€-key-€"}, `"key-\u20ac-key-€"`, `"[redacted]"`},
		{[]string{"key-𝄞-key"}, `"key-\ud834\udd1e-key" \ud834`, `"[redacted]" \ud834`},
	} {
		r := must(t, c.secrets...)
		require.Equal(t, c.want, r.String(c.text), "%q", c.text)
		for size := range len(c.text) {
			require.Equal(t, c.want, string(push(r, []byte(c.text), size+1)), "%q in chunks of %d", c.text, size+1)
		}
	}
}

func TestRefused(t *testing.T) {
	many := make([][]byte, MaxSecrets+1)
	for i := range many {
		many[i] = fmt.Appendf(nil, "secret-%04d", i)
	}
	for want, secrets := range map[string][][]byte{
		"sensitive value 2 has fewer than 8 bytes": {[]byte("12345678"), []byte("Xq3#!7z")},
		"sensitive value 1 has fewer":              {nil},
		"holds":                                    {[]byte("a[redacted]b")},
		"257 sensitive values":                     many,
		"65544 bytes together":                     {bytes.Repeat([]byte("a"), MaxBytes), []byte("bbbbbbbb")},
	} {
		r, err := New(secrets...)
		require.ErrorContains(t, err, want)
		require.Nil(t, r)
		require.NotContains(t, err.Error(), "Xq3#!7z")
	}
	r, err := New(bytes.Repeat([]byte("a"), MaxBytes))
	require.NoError(t, err)
	require.Equal(t, 6*MaxBytes+6, r.Longest())
}

func TestNoSecrets(t *testing.T) {
	r, err := New()
	require.NoError(t, err)
	require.Nil(t, r)
	s := r.Stream()
	require.Equal(t, "anything", string(s.Push([]byte("anything"))))
	require.Empty(t, s.Close())
	require.False(t, s.Redacted())
	require.Equal(t, "text", r.String("text"))
	require.Equal(t, []byte("text"), r.Bytes([]byte("text")))
	require.Zero(t, r.Longest())
	require.Equal(t, io.EOF, r.Error(io.EOF))
}

func TestErrors(t *testing.T) {
	r := must(t, "hunter2-hunter2")
	require.NoError(t, r.Error(nil))
	require.Equal(t, io.EOF, r.Error(io.EOF), "an error without secrets keeps its kind")
	err := r.Error(fmt.Errorf("login with hunter2-hunter2: %w", io.EOF))
	require.EqualError(t, err, "login with [redacted]: EOF")
	require.False(t, errors.Is(err, io.EOF), "what is wrapped would still show the text")
}

// A stream must not be pushed to after its end: that would be a text nobody looked at as a whole.
func TestPushAfterClose(t *testing.T) {
	s := must(t, "hunter2-hunter2").Stream()
	require.Equal(t, "", string(s.Push([]byte("hunter2"))))
	require.Equal(t, 7, s.Held())
	require.Equal(t, "hunter2", string(s.Close()))
	require.Empty(t, s.Close())
	require.Panics(t, func() { s.Push([]byte("x")) })
}
