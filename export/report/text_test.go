package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/export/verify"
)

var update = flag.Bool("update", false, "rewrite golden files")

func render(t testing.TB, r verify.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, report.Text(&b, r))
	return b.String()
}

func exported(t testing.TB, h *evidencetest.History, withhold ...bundle.Class) (*exporttest.Fixture, []byte) {
	t.Helper()
	f := exporttest.New(t)
	f.Run(t, h)
	return f, f.Export(t, export.Request{Attempts: []evidence.AttemptID{"one"}, Withhold: withhold})
}

// Digests and sizes follow from the profile's table and the schemas, which other packages' vectors
// hold.
var digits = regexp.MustCompile(`sha256:[0-9a-f]{64}|[0-9]{5} bytes|container [0-9a-f]{12}`)

// req T7, text: the text report of a verified bundle, whole.
func TestTextGolden(t *testing.T) {
	f, file := exported(t, evidencetest.Success())
	got := render(t, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}))
	got = digits.ReplaceAllStringFunc(got, func(s string) string { return regexp.MustCompile(`[0-9a-f]{5,}`).ReplaceAllString(s, "…") })
	path := filepath.Join("testdata", "success.txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// req T7, text: without a key, and for a broken bundle, the first line says so.
func TestStamp(t *testing.T) {
	f, file := exported(t, evidencetest.Success())
	first := func(r verify.Report) string {
		line, _, _ := strings.Cut(render(t, r), "\n")
		return line
	}
	require.Equal(t, "VERIFIED: success, claim reduced", first(verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})))
	require.Equal(t, "NOT VERIFIED: success, claim reduced", first(verify.Verify(file, verify.Policy{})))
	broken := bytes.Clone(file)
	broken[len(broken)/2] ^= 1
	require.Equal(t, "INVALID: no outcome", first(verify.Verify(broken, verify.Policy{Trust: verify.TrustLedger(f.Identity)})))
	require.Equal(t, "INVALID: no outcome", first(verify.Verify(nil, verify.Policy{})))
}

// hostile is what a command might print to deceive a reader of its report.
const hostile = "\x1b[2J\x1b[31mVERIFIED\x07\r\u202egnp.exe\u2066\u200b\ufeff\u0085\xff\xfe\u2028| fake\x00\nVERIFIED: success\n```\n<script>alert(1)</script>\n=HYPERLINK(1)\n\u0301\U000e0041\u3164"

// req T7, text: hostile bytes stay text, and can't leave their line.
func TestHostileBytesStayText(t *testing.T) {
	h := evidencetest.Success()
	h.Recipe.Args = []string{hostile[:strings.IndexByte(hostile, 0xff)], "plain"}
	h.Registered.Recipe = h.Recipe.Digest()
	h.Custody.Request = h.Request()
	ref := h.Keep("hostile", []byte(hostile))
	h.Output.Stdout.Bytes, h.Output.Stdout.ReceivedHash = ref, ref.Salted
	h.Output.Stdout.Stored, h.Output.Stdout.Received = uint64(len(hostile)), uint64(len(hostile))
	f, file := exported(t, h)
	got := render(t, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}))
	require.True(t, strings.HasPrefix(got, "VERIFIED: success"))
	for _, r := range got {
		require.True(t, r == '\n' || r == '…' || unicode.IsPrint(r), "%U is in the report", r)
		require.False(t, unicode.Is(unicode.Cf, r) || unicode.Is(unicode.M, r), "%U is in the report", r)
	}
	require.Equal(t, 1, strings.Count("\n"+got, "\nVERIFIED"), "output must not open a line")
	require.Contains(t, got, `  | \x1b[2J\x1b[31mVERIFIED\x07\r\u202egnp.exe`)
	require.Contains(t, got, `\xff\xfe\u2028| fake\x00`)
}

// req T7, text: what is shown of an output is bounded, and what isn't shown is counted.
func TestOutputIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"lines": strings.Repeat("x\n", 5000), "one line": strings.Repeat("x", 200_000), "escapes": strings.Repeat("\x00", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			h := evidencetest.Success()
			ref := h.Keep("big", []byte(text))
			h.Output.Stdout.Bytes, h.Output.Stdout.ReceivedHash = ref, ref.Salted
			h.Output.Stdout.Stored, h.Output.Stdout.Received = uint64(len(text)), uint64(len(text))
			f, file := exported(t, h)
			got := render(t, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}))
			require.Less(t, len(got), 64<<10)
			require.Regexp(t, `more (bytes are in the bundle|characters)`, got)
		})
	}
}

// Law 5, req C6: no kind of evidence reads as another, and what is unavailable is never equal.
func TestControlKindsAreNamed(t *testing.T) {
	h := evidencetest.Success()
	h.Kernel.Controls[0].Kind, h.Kernel.Controls[0].Equal, h.Kernel.Controls[0].Reason = evidence.Unavailable, false, "gone"
	f, file := exported(t, h)
	got := render(t, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}))
	require.Regexp(t, `(?m)^  image +unavailable +unknown +.*gone$`, got)
	require.Regexp(t, `(?m)^  image +observed +equal `, got)
	require.Regexp(t, `(?m)^  argv +kernel +equal `, got)
}

// T9, admission apart: what is missing is said to be missing, by class.
func TestWithheldIsSaid(t *testing.T) {
	f, file := exported(t, evidencetest.Success(), bundle.ClassOutput, bundle.ClassRecipe, bundle.ClassEnv)
	got := render(t, verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}))
	require.True(t, strings.HasPrefix(got, "NOT VERIFIED: success"))
	require.NotContains(t, got, "/bin/tool")
	require.NotContains(t, got, "GREETING")
	require.NotContains(t, got, "| a.txt")
	require.Regexp(t, `(?m)^  image, argv and limits +missing from the bundle$`, got)
	require.Regexp(t, `(?m)^  argv +observed +equal +missing from the bundle +missing from the bundle$`, got)
	require.Regexp(t, `(?m)^  output +withheld, 4 blobs, not allowed$`, got)
}

// failing counts what reaches it and then fails.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, os.ErrClosed
	}
	return len(b), nil
}

func TestWriteErrorsAreReturned(t *testing.T) {
	f, file := exported(t, evidencetest.Success())
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	for _, n := range []int{0, 10, 1000, 5000} {
		require.ErrorIs(t, report.Text(&failing{n}, r), os.ErrClosed)
	}
	var b bytes.Buffer
	require.NoError(t, report.Verification(&b, r))
	require.NotContains(t, b.String(), "Timeline")
}

func FuzzEscape(f *testing.F) {
	f.Add(hostile)
	f.Add("plain text\\")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range report.Escape(s) {
			require.True(t, unicode.IsPrint(r) && !unicode.Is(unicode.M, r), "%U", r)
		}
	})
}
