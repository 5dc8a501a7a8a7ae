//go:build browser

package report_test

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export/report"
	"github.com/baildock/baildock/export/verify"
)

// chromium opens a page and returns what it wrote to stdout. Every request it makes goes to the
// proxy.
func chromium(t *testing.T, proxy, page string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "make test-browser installs it on Debian")
	cmd := exec.CommandContext(t.Context(), path, append(append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
		"--user-data-dir=" + t.TempDir(), "--proxy-server=" + proxy, "--proxy-bypass-list=<-loopback>",
	}, args...), page)...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	require.NoError(t, err, "%s", errOut.String())
	return string(out)
}

// asked counts what a browser asks of the network about a page: requests for any of the hosts that
// only the page could have named. What the browser asks on its own behalf is not the page's.
type asked struct{ pages, others atomic.Int64 }

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Host+r.URL.String(), "evil.example") {
		a.pages.Add(1)
	} else {
		a.others.Add(1)
	}
	w.WriteHeader(http.StatusNoContent)
}

// deceit is a whole page that a command might have printed.
const deceit = `</code></li></ol><script>document.title='OWNED';fetch('http://evil.example/f')</script>` +
	`<img src=http://evil.example/i onerror="document.title='OWNED'"><iframe src=http://evil.example/s></iframe>` +
	`<link rel=stylesheet href=http://evil.example/c><style>@import 'http://evil.example/d'; body{background:url(http://evil.example/b)}</style>` +
	`<h1 id=injected>VERIFIED</h1><meta http-equiv=refresh content="0;url=http://evil.example/r">`

// req T7: in a real browser nothing that a command, a recipe or an operator wrote becomes an element, and the
// page asks the network for nothing. A page that isn't escaped shows that the test would notice.
func TestBrowserHostilePage(t *testing.T) {
	h := evidencetest.Success()
	h.Recipe.Args = []string{deceit, `" onmouseover="document.title='OWNED'`}
	h.Registered.Recipe = h.Recipe.Digest()
	h.Custody.Request = h.Request()
	said := deceit + "\n" + hostile + "\n" + strings.Join(attacks, "\n")
	ref := h.Keep("hostile", []byte(said))
	h.Output.Stdout.Bytes, h.Output.Stdout.ReceivedHash = ref, ref.Salted
	h.Output.Stdout.Stored, h.Output.Stdout.Received = uint64(len(said)), uint64(len(said))
	f, file := exported(t, h)
	v := report.Of(verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)}))
	require.Equal(t, verify.Valid, v.Verdict)
	page := written(t, report.FormatHTML, v)

	requests := &asked{}
	proxy := httptest.NewServer(requests)
	defer proxy.Close()
	dir := t.TempDir()
	open := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return chromium(t, proxy.URL, "file://"+path, "--dump-dom", "--virtual-time-budget=1000")
	}
	dom := open("page.html", page)
	require.Equal(t, skeleton(t, page), skeleton(t, dom), "the browser built other elements than were written")
	require.Contains(t, dom, "<title>VERIFIED: success")
	require.NotContains(t, dom, `id="injected"`)
	require.Contains(t, dom, "&lt;h1 id=injected&gt;VERIFIED&lt;/h1&gt;", "the text is there, as text")
	require.Zero(t, requests.pages.Load(), "the page reached for the network")

	// The same words, not escaped and with no policy: the browser runs them and asks.
	naive := open("naive.html", "<!DOCTYPE html><title>x</title><body><ol><li><code>"+deceit)
	require.Contains(t, naive, `id="injected"`)
	require.Positive(t, requests.pages.Load(), "the proxy would have seen a request")
	// And not escaped but under the page's policy: no script runs and nothing is loaded.
	before := requests.pages.Load()
	head, _, _ := strings.Cut(page, "<title>")
	loads, _, _ := strings.Cut(deceit, "<meta") // a browser follows a redirection whatever the policy
	guarded := open("guarded.html", head+"<title>calm</title><body><ol><li><code>"+loads)
	require.Contains(t, guarded, "<title>calm</title>")
	require.Equal(t, before, requests.pages.Load(), "the policy let something through")
	t.Logf("requests of the browser's own: %d", requests.others.Load())
}

// req T7: at any width no part of a page lies beside it.
func TestBrowserFits(t *testing.T) {
	h := evidencetest.Success()
	long := strings.Repeat("W", 5000)
	ref := h.Keep("long", []byte(long))
	h.Output.Stdout.Bytes, h.Output.Stdout.ReceivedHash = ref, ref.Salted
	h.Output.Stdout.Stored, h.Output.Stdout.Received = uint64(len(long)), uint64(len(long))
	h.Environment.Vars[0].Value = long[:100]
	h.Recipe.Environment = h.Environment.Digest()
	h.Registered.Environment, h.Registered.Recipe = h.Recipe.Environment, h.Recipe.Digest()
	h.Custody.Request = h.Request()
	f, file := exported(t, h)
	r := verify.Verify(file, verify.Policy{Trust: verify.TrustLedger(f.Identity)})
	require.Equal(t, verify.Valid, r.Verdict, "%v", r.Checks)
	page := written(t, report.FormatHTML, report.Of(r))
	// A frame of the width in question measures the page; the page itself may run no script.
	_, inner, _ := strings.Cut(page, "<style>")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "page.html"), []byte(`<!DOCTYPE html><meta charset=utf-8><meta name=viewport content="width=device-width"><style>`+inner), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.FileServer(http.Dir(dir))}
	go func() { _ = server.Serve(listener) }()
	defer func() { require.NoError(t, server.Close()) }()
	var frames strings.Builder
	widths := []int{320, 390, 768, 1280}
	for _, w := range widths {
		fmt.Fprintf(&frames, `<iframe id=w%d width=%d height=800 src=page.html onload="this.dataset.wide=this.contentDocument.documentElement.scrollWidth;this.dataset.inner=this.contentWindow.innerWidth"></iframe>`, w, w)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "frames.html"), []byte("<!DOCTYPE html><style>iframe{border:0}</style>"+frames.String()), 0o600))
	dom := chromium(t, "direct://", "http://"+listener.Addr().String()+"/frames.html", "--dump-dom", "--virtual-time-budget=5000", "--window-size=1600,1000")
	for _, w := range widths {
		require.Regexp(t, fmt.Sprintf(`id="w%d"[^>]* data-wide="(\d+)"`, w), dom)
		var wide int
		_, rest, _ := strings.Cut(dom, fmt.Sprintf(`id="w%d"`, w))
		_, rest, _ = strings.Cut(rest, `data-wide="`)
		_, err := fmt.Sscanf(rest, "%d", &wide)
		require.NoError(t, err)
		require.LessOrEqual(t, wide, w, "at %d pixels the page is %d wide", w, wide)
	}
}

// req T7: the page follows the reader's choice of light and dark. BAILDOCK_PICTURES=DIR keeps the pictures, for
// looking at.
func TestBrowserSchemes(t *testing.T) {
	h := evidencetest.Success()
	h.Kernel.Controls[2].Kind, h.Kernel.Controls[2].Equal, h.Kernel.Controls[2].Reason = evidence.Unavailable, false, "gone"
	f, file := exported(t, h)
	dir := os.Getenv("BAILDOCK_PICTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	for name, p := range map[string]verify.Policy{"verified": {Trust: verify.TrustLedger(f.Identity)}, "unverified": {}} {
		path := filepath.Join(dir, name+".html")
		require.NoError(t, os.WriteFile(path, []byte(written(t, report.FormatHTML, report.Of(verify.Verify(file, p)))), 0o600))
		for size, bright := range map[string]map[string]bool{"1280,3600": {"1": true, "0": false}, "390,6000": {"0": false}} {
			for scheme, light := range bright {
				picture := filepath.Join(dir, name+"-"+size+"-"+map[bool]string{true: "light", false: "dark"}[light]+".png")
				chromium(t, "direct://", "file://"+path, "--hide-scrollbars", "--window-size="+size, "--screenshot="+picture, "--blink-settings=preferredColorScheme="+scheme)
				b, err := os.Open(picture)
				require.NoError(t, err)
				img, err := png.Decode(b)
				require.NoError(t, err)
				require.NoError(t, b.Close())
				at := img.Bounds().Max
				level := color.GrayModel.Convert(img.At(at.X-3, at.Y-3)).(color.Gray).Y
				require.Equal(t, light, level > 128, "%s: the paper is %d of 255", picture, level)
			}
		}
	}
}
