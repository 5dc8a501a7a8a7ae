//go:build live

package fakedaemon_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// side is one daemon.
type side struct {
	t       *testing.T
	name    string
	socket  string
	vars    map[string]string
	last    answer
	output  net.Conn
	written string
	done    chan struct{}
}

type answer struct {
	status int
	media  string
	body   []byte
}

func (s *side) put(name, value string) {
	if s.vars == nil {
		s.vars = map[string]string{}
	}
	s.vars[name] = value
}

func (s *side) fill(text string) string {
	for k, v := range s.vars {
		text = strings.ReplaceAll(text, "{"+k+"}", v)
	}
	return text
}

func (s *side) do(method, path string, body any) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var payload io.Reader
	media := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		payload, media = bytes.NewReader(b), "application/x-tar"
	default:
		text, err := json.Marshal(b)
		require.NoError(s.t, err)
		payload = strings.NewReader(s.fill(string(text)))
	}
	target, query, _ := strings.Cut(s.fill(path), "?")
	u := url.URL{Scheme: "http", Host: "docker", Path: "/v1.41" + target, RawQuery: strings.NewReplacer("{", "%7B", "}", "%7D", `"`, "%22").Replace(query)}
	if target == "/_ping" {
		u.Path = target
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), payload)
	require.NoError(s.t, err)
	if payload != nil {
		req.Header.Set("Content-Type", media)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	}}}
	resp, err := client.Do(req)
	require.NoError(s.t, err, s.name)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	s.last = answer{resp.StatusCode, resp.Header.Get("Content-Type"), text}
	return s.last
}

// attach reads the container's output from now on.
func (s *side) attach() {
	conn, err := net.Dial("unix", s.socket)
	require.NoError(s.t, err)
	_, err = fmt.Fprintf(conn, "POST /v1.41/containers/%s/attach?stream=1&stdout=1&stderr=1 HTTP/1.1\r\nHost: d\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n", s.vars["id"])
	require.NoError(s.t, err)
	// The event of the attachment must come before that of the start.
	one := make([]byte, 1)
	_, err = io.ReadFull(conn, one)
	require.NoError(s.t, err)
	s.output, s.done = conn, make(chan struct{})
	go func() {
		defer close(s.done)
		rest, _ := io.ReadAll(conn) // an error only when the test itself closed it
		s.written = string(one) + string(rest)
	}()
}

func (s *side) ended() {
	select {
	case <-s.done:
	case <-time.After(30 * time.Second):
		require.Fail(s.t, "output of "+s.name+" doesn't end")
	}
}

// streams is the reply's head and what came on each stream: their order to each other is the
// kernel's.
func (s *side) streams() [3]string {
	head, frames, _ := strings.Cut(s.written, "\r\n\r\n")
	all := [3]string{head}
	for frames != "" {
		require.GreaterOrEqual(s.t, len(frames), 8)
		end := 8 + int(binary.BigEndian.Uint32([]byte(frames[4:8])))
		require.GreaterOrEqual(s.t, len(frames), end)
		all[frames[0]] += frames[8:end]
		frames = frames[end:]
	}
	return all
}

var alike = []struct {
	rule *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{64}`), "<id>"},
	{regexp.MustCompile(`netns/[0-9a-f]{12}`), "netns/<id>"},
	{regexp.MustCompile(`"[0-9a-f]{12}"`), `"<id>"`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`"(time|timeNano|Created)": \d{6,}`), `"$1": <number>`},
	{regexp.MustCompile(`"Pid": [1-9]\d*`), `"Pid": <number>`},
	{regexp.MustCompile(`172\.17\.0\.[1-9]\d*`), "<address>"},
	{regexp.MustCompile(`02:42:ac:11:00:[0-9a-f]{2}`), "<address>"},
	{regexp.MustCompile(`Up .*?"`), `Up"`},
	{regexp.MustCompile(`"(Virtual)?Size": \d+`), `"${1}Size": <number>`},
}

// plain writes an answer with what must differ made alike, and keys in order.
func (s *side) plain(a answer) string {
	text := a.body
	var tree any
	if json.Unmarshal(a.body, &tree) == nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "\t") // a difference shows as one line
		require.NoError(s.t, enc.Encode(tree))
		text = b.Bytes()
	}
	for _, r := range alike {
		text = r.rule.ReplaceAll(text, []byte(r.with))
	}
	return fmt.Sprintf("%d %s %s", a.status, a.media, text)
}
