package docker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// req C1: only a local Unix socket is taken.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	regular := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(regular, nil, 0o600))
	for in, want := range map[string]string{
		"tcp://127.0.0.1:2375":         "never tcp",
		"ssh://host":                   "never ssh",
		"npipe:////./pipe/docker":      "never npipe",
		"http://localhost":             "never http",
		"fd://":                        "never fd",
		"docker.sock":                  "not an absolute path",
		"./docker.sock":                "not an absolute path",
		"unix://docker.sock":           "not an absolute path",
		"unix://":                      "not an absolute path",
		"":                             "not an absolute path",
		"/run/a\x00b":                  "not an absolute path",
		regular:                        "regular file, not a Unix socket",
		dir:                            "directory, not a Unix socket",
		"/dev/null":                    "special file, not a Unix socket",
		filepath.Join(regular, "sock"): "not a directory",
	} {
		_, err := Open(in)
		require.ErrorContains(t, err, want, in)
	}
	for _, in := range []string{filepath.Join(dir, "missing"), "unix://" + filepath.Join(dir, "missing")} {
		d, err := Open(in)
		require.NoError(t, err)
		_, err = d.Probe(context.Background())
		var f *executor.Fault
		require.ErrorAs(t, err, &f)
		require.False(t, f.Answered)
	}
}

// req C1: the environment decides nothing.
func TestOpenIgnoresEnvironment(t *testing.T) {
	for k, v := range map[string]string{"DOCKER_HOST": "tcp://192.0.2.1:1", "DOCKER_CONTEXT": "remote", "DOCKER_CONFIG": "/nonexistent",
		"DOCKER_API_VERSION": "1.24", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/nonexistent",
		"HTTP_PROXY": "http://192.0.2.1:1", "http_proxy": "http://192.0.2.1:1"} {
		t.Setenv(k, v)
	}
	s := newDaemon(t)
	s.answer("GET /containers/json", replyJSON(200, "[]"))
	d := s.open(t)
	_, err := d.FindOwned(t.Context(), evidence.RequestDigest{}, evidence.HandleKey{})
	require.NoError(t, err)
	require.Equal(t, "1.41", d.pinned)
}

// The version is negotiated once, however many calls begin at once, and kept.
func TestVersionPinned(t *testing.T) {
	s := newDaemon(t)
	var pings atomic.Int64
	version := "1.43"
	s.answer("HEAD /_ping", func(w http.ResponseWriter, _ *http.Request) {
		pings.Add(1)
		w.Header().Set("Api-Version", version)
	})
	var mu sync.Mutex
	seen := map[string]int{}
	s.answer("GET /containers/json", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path]++
		replyJSON(200, "[]")(w, r)
	})
	d := s.open(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := d.FindOwned(t.Context(), evidence.RequestDigest{}, evidence.HandleKey{})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, pings.Load())
	require.Equal(t, map[string]int{"/v1.43/containers/json": 8}, seen)
}

func TestVersionRefused(t *testing.T) {
	for version, want := range map[string]string{"": "names no API version", "banana": "names no API version", "1.40": "at least 1.41"} {
		s := newDaemon(t)
		s.answer("HEAD /_ping", func(w http.ResponseWriter, _ *http.Request) {
			if version != "" {
				w.Header().Set("Api-Version", version)
			}
		})
		_, err := s.open(t).Probe(t.Context())
		require.ErrorContains(t, err, want)
	}
	// A newer engine is spoken to in the newest version both know.
	s := newDaemon(t)
	s.answer("HEAD /_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.99") })
	s.answer("GET /containers/json", replyJSON(200, "[]"))
	d := s.open(t)
	_, err := d.FindOwned(t.Context(), evidence.RequestDigest{}, evidence.HandleKey{})
	require.NoError(t, err)
	require.Equal(t, "1.51", d.pinned)
}

// req C7, req E3: what each kind of bad reply means. Only a whole reply with an error status is an
// answer, and only the daemon's own words about this container are its absence.
func TestReplies(t *testing.T) {
	id := goldenID(t)
	path := "GET /containers/" + id.Hex() + "/json"
	good := string(testdata(t, "inspect_created.json"))
	other := strings.Replace(id.Hex(), "e", "f", 1)
	for name, c := range map[string]struct {
		handler  http.HandlerFunc
		absent   bool
		answered bool
		status   int
		text     string
	}{
		"good":                   {handler: replyJSON(200, good)},
		"absent":                 {handler: replyJSON(404, `{"message":"No such container: `+id.Hex()+`"}`), absent: true},
		"another is absent":      {handler: replyJSON(404, `{"message":"No such container: `+other+`"}`), answered: true, status: 404, text: "No such container"},
		"page not found":         {handler: replyJSON(404, `{"message":"page not found"}`), answered: true, status: 404, text: "page not found"},
		"404 in HTML":            {handler: reply(404, "text/html", "<h1>No such container: "+id.Hex()+"</h1>"), answered: true, status: 404},
		"404 without body":       {handler: reply(404, "application/json", ""), answered: true, status: 404},
		"404 truncated":          {handler: raw("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"+`{"message":"No such container: `+id.Hex()+`"}`, false), text: "unexpected EOF"},
		"404 oversized":          {handler: replyJSON(404, `{"message":"No such container: `+id.Hex()+`"}`+strings.Repeat(" ", maxReply)), text: "exceeds its bound"},
		"server error":           {handler: replyJSON(500, `{"message":"broken\u001b[31m"}`), answered: true, status: 500, text: "broken [31m"},
		"oversized":              {handler: replyJSON(200, good+strings.Repeat(" ", maxReply)), text: "exceeds its bound of 262144 bytes"},
		"truncated":              {handler: raw("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"+good[:100], false), text: "unexpected EOF"},
		"no reply":               {handler: raw("", false), text: "EOF"},
		"silence":                {handler: raw("", true), text: "no complete answer within 300ms"},
		"header, then silence":   {handler: raw("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n{", true), text: "no complete answer within 300ms"},
		"not HTTP":               {handler: raw("SSH-2.0-OpenSSH_9.2\r\n", false), text: "malformed HTTP"},
		"endless header":         {handler: raw("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("a", 64<<10)+"\r\n\r\n", false), text: "exceeded"},
		"not JSON":               {handler: replyJSON(200, "hello"), text: "unreadable reply"},
		"repeated key":           {handler: replyJSON(200, strings.Replace(good, `"RestartCount": 0`, `"RestartCount": 0, "RestartCount": 0`, 1)), text: "repeated key"},
		"another container":      {handler: replyJSON(200, strings.Replace(good, id.Hex(), other, 1)), text: "asked for container"},
		"redirect":               {handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, text: ""},
		"state without status":   {handler: replyJSON(200, strings.Replace(good, `"Status": "created"`, `"Status": 5`, 1)), text: "unreadable reply"},
		"time that is no time":   {handler: replyJSON(200, strings.Replace(good, `"StartedAt": "0001-01-01T00:00:00Z"`, `"StartedAt": "yesterday"`, 1)), text: "a time"},
		"labels that are a text": {handler: replyJSON(200, strings.Replace(good, `"Labels": {`, `"Labels": "x", "Other": {`, 1)), text: "unreadable reply"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDaemon(t)
			s.answer(path, c.handler)
			in, err := s.open(t).Inspect(t.Context(), id)
			if name == "good" {
				require.NoError(t, err)
				require.Equal(t, id, in.ID)
				return
			}
			require.Error(t, err)
			require.Equal(t, c.absent, errors.Is(err, executor.ErrAbsent), "%v", err)
			if c.absent {
				return
			}
			var f *executor.Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, "inspect", f.Call)
			require.Equal(t, c.answered, f.Answered, "%v", err)
			require.Equal(t, c.status, f.Status, "%v", err)
			require.ErrorContains(t, err, c.text)
		})
	}
}

// req E1: a create whose reply is lost, late or unreadable is unanswered; a refusal is an answer,
// and a missing image is never an absent container.
func TestCreateReplies(t *testing.T) {
	id := goldenID(t).Hex()
	for name, c := range map[string]struct {
		handler  http.HandlerFunc
		answered bool
		status   int
		text     string
	}{
		"good":          {handler: replyJSON(201, `{"Id":"`+id+`","Warnings":["Limitation discarded.\n"]}`)},
		"missing image": {handler: replyJSON(404, `{"message":"No such image: sha256:ab"}`), answered: true, status: 404, text: "No such image"},
		"name taken":    {handler: replyJSON(409, `{"message":"Conflict. The container name is in use"}`), answered: true, status: 409, text: "Conflict"},
		"reply lost":    {handler: raw("", false)}, // an end of file or a broken pipe
		"late":          {handler: raw("", true), text: "within 600ms"},
		"no ID":         {handler: replyJSON(201, `{}`), text: "is not 64"},
		"short ID":      {handler: replyJSON(201, `{"Id":"abc"}`), text: "is not 64"},
		"prefixed ID":   {handler: replyJSON(201, `{"Id":"sha256:`+id+`"}`), text: "is not 64"},
		"half a reply":  {handler: replyJSON(201, `{"Id":"`+id+`"`), text: "unreadable reply"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDaemon(t)
			s.answer("POST /containers/create", c.handler)
			made, err := s.open(t).Create(t.Context(), goldenPlan(evidence.SeccompReported))
			if name == "good" {
				require.NoError(t, err)
				require.Equal(t, id, made.ID.Hex())
				require.Equal(t, []string{"Limitation discarded. "}, made.Warnings)
				return
			}
			var f *executor.Fault
			require.ErrorAs(t, err, &f)
			require.NotErrorIs(t, err, executor.ErrAbsent)
			require.Equal(t, c.answered, f.Answered, "%v", err)
			require.Equal(t, c.status, f.Status)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestKillReplies(t *testing.T) {
	id := goldenID(t)
	for _, c := range []struct {
		status int
		text   string
		want   bool
	}{
		{204, ``, true},
		{409, `{"message":"Cannot kill container: x: Container x is not running"}`, true},
		{409, `{"message":"removal is already in progress"}`, false},
		{500, `{"message":"Container x is not running"}`, false},
	} {
		s := newDaemon(t)
		s.answer("POST /containers/"+id.Hex()+"/kill", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("signal") != "SIGKILL" {
				w.WriteHeader(400)
				return
			}
			replyJSON(c.status, c.text)(w, r)
		})
		err := s.open(t).Kill(t.Context(), id)
		require.Equal(t, c.want, err == nil, "%d %s: %v", c.status, c.text, err)
	}
}

// req E7: what the daemon lists is checked again; a filter that was ignored finds nothing.
func TestFindOwnedChecksLabels(t *testing.T) {
	id := goldenID(t)
	p := goldenPlan(evidence.SeccompReported)
	one := func(request, handle string) string {
		return `[{"Id":"` + id.Hex() + `","Labels":{"dev.baildock.request":"` + request + `","dev.baildock.handle":"` + handle + `"}}]`
	}
	for name, c := range map[string]struct {
		list string
		ok   bool
	}{
		"owned":        {one(p.Request.String(), p.Handle.String()), true},
		"other handle": {one(p.Request.String(), "00"), false},
		"no labels":    {`[{"Id":"` + id.Hex() + `"}]`, false},
		"short ID":     {`[{"Id":"ab","Labels":{"dev.baildock.request":"` + p.Request.String() + `","dev.baildock.handle":"` + p.Handle.String() + `"}}]`, false},
	} {
		s := newDaemon(t)
		s.answer("GET /containers/json", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("all") != "1" || !strings.Contains(r.URL.Query().Get("filters"), p.Handle.String()) {
				w.WriteHeader(400)
				return
			}
			replyJSON(200, c.list)(w, r)
		})
		ids, err := s.open(t).FindOwned(t.Context(), p.Request, p.Handle)
		require.Equal(t, c.ok, err == nil, "%s: %v", name, err)
		if c.ok {
			require.Equal(t, []evidence.ContainerID{id}, ids)
		}
	}
}

// req C3: the peer's UID and the socket's inode come from the socket itself, and a replaced socket
// is another one.
func TestSocketFacts(t *testing.T) {
	s := newDaemon(t)
	d := s.open(t)
	a, err := d.lookAtSocket(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, os.Getuid(), a.peer)
	require.NotZero(t, a.ino)
	b, err := d.lookAtSocket(t.Context())
	require.NoError(t, err)
	require.Equal(t, a, b)

	moved := d.path + ".old"
	require.NoError(t, os.Rename(d.path, moved))
	l, err := net.Listen("unix", d.path)
	require.NoError(t, err)
	defer l.Close()
	c, err := d.lookAtSocket(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, a, c)
}

// A call whose context ends returns at once and says so.
func TestCancelledCall(t *testing.T) {
	s := newDaemon(t)
	s.answer("GET /containers/json", raw("", true))
	d := s.open(t)
	d.by.control = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := d.FindOwned(ctx, evidence.RequestDigest{}, evidence.HandleKey{})
	require.ErrorIs(t, err, context.Canceled)
	var f *executor.Fault
	require.ErrorAs(t, err, &f)
	require.False(t, f.Answered)
}
