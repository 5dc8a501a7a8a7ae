package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor"
)

func frame(stream byte, data string) string {
	h := []byte{stream, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(h[4:], uint32(len(data)))
	return string(h) + data
}

// drain reads an output to its end.
func drain(o executor.Output) (stdout, stderr string, err error) {
	var out, errs strings.Builder
	for {
		c, err := o.Next()
		if err != nil {
			return out.String(), errs.String(), err
		}
		if c.Stderr {
			errs.Write(c.Bytes)
		} else {
			out.Write(c.Bytes)
		}
	}
}

func newOutput(data string) *output {
	client, server := net.Pipe()
	server.Close()
	return &output{conn: client, r: bufio.NewReader(strings.NewReader(data)), buf: make([]byte, 7)}
}

// req D1: the end of both streams is the end of the connection between two frames, and nothing else.
func TestFrames(t *testing.T) {
	big := strings.Repeat("x", maxFrame)
	for name, c := range map[string]struct {
		data, stdout, stderr, err string // "" = io.EOF
	}{
		"nothing":            {data: ""},
		"both":               {data: frame(1, "one") + frame(2, "two") + frame(1, "\x00\xff"), stdout: "one\x00\xff", stderr: "two"},
		"empty frame":        {data: frame(1, "") + frame(2, "e"), stderr: "e"},
		"largest frame":      {data: frame(1, big), stdout: big},
		"frame too large":    {data: frame(1, big+"x"), err: "exceeds its bound"},
		"largest number":     {data: "\x01\x00\x00\x00\xff\xff\xff\xff", err: "exceeds its bound"},
		"cut in a header":    {data: frame(1, "one") + "\x01\x00", stdout: "one", err: "inside a frame header"},
		"cut after a header": {data: frame(1, "one")[:8], err: "inside a frame"},
		"cut in a frame":     {data: frame(1, "one")[:10], stdout: "on", err: "inside a frame"},
		"stdin":              {data: frame(0, "x"), err: "unknown stream 0"},
		"system error":       {data: frame(1, "a") + frame(3, "boom"), stdout: "a", err: "reported an error"},
		"unknown stream":     {data: frame(9, "x"), err: "unknown stream 9"},
		"a terminal":         {data: "hello, this is no frame", err: "malformed"},
		"padding":            {data: "\x01\x00\x01\x00\x00\x00\x00\x01x", err: "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutput(c.data)
			stdout, stderr, err := drain(o)
			require.Equal(t, c.stdout, stdout)
			require.Equal(t, c.stderr, stderr)
			if c.err == "" {
				require.Equal(t, io.EOF, err)
			} else {
				require.ErrorContains(t, err, c.err)
				require.NotEqual(t, io.EOF, err)
			}
			_, again := o.Next()
			require.Equal(t, err, again, "an end is final")
		})
	}
}

// Whatever arrives, what is handed on was in the data, and only a clean end is io.EOF.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{"", frame(1, "one") + frame(2, "two"), frame(1, "one")[:10], frame(3, "x"), "\x01\x00\x00\x00\xff\xff\xff\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := newOutput(string(data))
		var again bytes.Buffer
		for {
			c, err := o.Next()
			if err != nil {
				if err == io.EOF {
					require.LessOrEqual(t, again.Len(), len(data))
				}
				return
			}
			require.NotEmpty(t, c.Bytes)
			require.True(t, bytes.Contains(data, c.Bytes))
			again.Write(c.Bytes)
		}
	})
}

func TestAttachReplies(t *testing.T) {
	id := goldenID(t)
	path := "POST /containers/" + id.Hex() + "/attach"
	upgraded := "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	for name, c := range map[string]struct {
		handler  http.HandlerFunc
		absent   bool
		answered bool
		text     string
	}{
		"absent":          {handler: raw("HTTP/1.1 404 Not Found\r\nContent-Type: "+rawStream+"\r\n\r\nNo such container: "+id.Hex()+"\r\n", false), absent: true},
		"refused":         {handler: replyJSON(409, `{"message":"container is paused"}`), answered: true, text: "is paused"},
		"not upgraded":    {handler: replyJSON(200, ""), text: "instead of an open stream"},
		"silence":         {handler: raw("", true), text: "within 300ms"},
		"header too long": {handler: raw("HTTP/1.1 101 UPGRADED\r\nX: "+strings.Repeat("a", 2*maxReplyHeader), false), text: "unexpected EOF"},
		"closed":          {handler: raw("", false), text: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDaemon(t)
			s.answer(path, c.handler)
			_, err := s.open(t).Attach(t.Context(), id)
			require.Equal(t, c.absent, errors.Is(err, executor.ErrAbsent), "%v", err)
			if !c.absent {
				var f *executor.Fault
				require.ErrorAs(t, err, &f)
				require.Equal(t, c.answered, f.Answered, "%v", err)
				require.ErrorContains(t, err, c.text)
			}
		})
	}
	t.Run("bytes with the header, and past the deadline", func(t *testing.T) {
		s := newDaemon(t)
		more := make(chan struct{})
		s.answer(path, func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			rw.WriteString(upgraded + frame(1, "early"))
			rw.Flush()
			<-more
			rw.WriteString(frame(2, "late"))
			rw.Flush()
		})
		d := s.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		o, err := d.Attach(ctx, id)
		require.NoError(t, err)
		cancel()
		time.AfterFunc(2*d.by.control, func() { close(more) })
		stdout, stderr, err := drain(o)
		require.Equal(t, io.EOF, err)
		require.Equal(t, "early", stdout)
		require.Equal(t, "late", stderr)
		require.NoError(t, o.Close())
	})
	t.Run("close ends a waiting read", func(t *testing.T) {
		s := newDaemon(t)
		s.answer(path, raw(upgraded, true))
		o, err := s.open(t).Attach(t.Context(), id)
		require.NoError(t, err)
		time.AfterFunc(50*time.Millisecond, func() { o.Close() })
		_, _, err = drain(o)
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF)
	})
}

func TestWaitReplies(t *testing.T) {
	id := goldenID(t)
	path := "POST /containers/" + id.Hex() + "/wait"
	s := newDaemon(t)
	d := s.open(t)

	s.answer(path, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("condition") != "next-exit" {
			w.WriteHeader(400)
			return
		}
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		time.Sleep(2 * d.by.control) // a wait outlasts the deadline of its registration
		fmt.Fprint(w, `{"StatusCode":7,"Error":null}`)
	})
	done, err := d.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, executor.Exit{Code: 7}, <-done)
	_, more := <-done
	require.False(t, more)

	for name, c := range map[string]struct {
		handler http.HandlerFunc
		text    string
	}{
		"cut":       {raw("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{", false), "unexpected EOF"},
		"not JSON":  {replyJSON(200, "proxy error"), "proxy error"},
		"oversized": {replyJSON(200, `{"StatusCode":0,"x":"`+strings.Repeat("a", maxWaitReply)+`"}`), "exceeds its bound"},
		"error":     {replyJSON(200, `{"StatusCode":0,"Error":{"Message":"lost"}}`), "lost"},
	} {
		s.answer(path, c.handler)
		done, err := d.Wait(t.Context(), id)
		require.NoError(t, err, name)
		x := <-done
		require.ErrorContains(t, x.Err, c.text, name)
	}
	s.answer(path, raw("", true))
	_, err = d.Wait(t.Context(), id)
	require.ErrorContains(t, err, "no answer in time")
	s.answer(path, replyJSON(404, `{"message":"No such container: `+id.Hex()+`"}`))
	_, err = d.Wait(t.Context(), id)
	require.ErrorIs(t, err, executor.ErrAbsent)

	ctx, cancel := context.WithCancel(t.Context())
	s.answer(path, raw("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", true))
	done, err = d.Wait(ctx, id)
	require.NoError(t, err)
	cancel()
	require.Error(t, (<-done).Err)
}

// req F5: a subscription that breaks says why; one that its reader ended doesn't.
func TestEventsReplies(t *testing.T) {
	const start = `{"Type":"container","Action":"start","Actor":{"ID":"ab","Attributes":{"name":"x"}},"timeNano":5}` + "\n"
	const connect = `{"Type":"network","Action":"connect","Actor":{"ID":"cd","Attributes":{"container":"ab","name":"none"}},"timeNano":6}` + "\n"
	head := "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		events  int
		text    string
	}{
		"ended by the daemon": {replyJSON(200, start+connect), 2, "ended the event stream"},
		"cut":                 {raw(head+start+connect[:20], false), 1, "malformed event"},
		"not JSON":            {replyJSON(200, start+"hello\n"), 1, "malformed event"},
		"without action":      {replyJSON(200, `{"Type":"container","Actor":{"ID":"ab"}}`+"\n"), 0, "without type"},
		"line too long":       {replyJSON(200, start+`{"Type":"`+strings.Repeat("a", maxEvent)), 1, "token too long"},
		"slow reader":         {replyJSON(200, strings.Repeat(start, eventQueue+1)), eventQueue, "wait to be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDaemon(t)
			s.answer("GET /events", c.handler)
			e, err := s.open(t).Events(t.Context())
			require.NoError(t, err)
			if name == "slow reader" {
				require.Eventually(t, func() bool { return e.Err() != nil }, 10*time.Second, time.Millisecond)
			}
			var got []executor.Event
			for ev := range e.C {
				got = append(got, ev)
			}
			require.Len(t, got, c.events)
			require.ErrorContains(t, e.Err(), c.text)
			if c.events == 2 {
				require.Equal(t, executor.Event{Type: "container", Action: "start", Actor: "ab", TimeNano: 5}, got[0])
				require.Equal(t, executor.Event{Type: "network", Action: "connect", Actor: "cd", Container: "ab", Network: "none", TimeNano: 6}, got[1])
			}
		})
	}
	s := newDaemon(t)
	d := s.open(t)
	s.answer("GET /events", raw("", true))
	_, err := d.Events(t.Context())
	require.ErrorContains(t, err, "no answer in time")
	s.answer("GET /events", replyJSON(403, `{"message":"denied by plugin"}`))
	_, err = d.Events(t.Context())
	var f *executor.Fault
	require.ErrorAs(t, err, &f)
	require.True(t, f.Answered)

	ctx, cancel := context.WithCancel(t.Context())
	s.answer("GET /events", raw(head+start, true))
	e, err := d.Events(ctx)
	require.NoError(t, err)
	require.Equal(t, "start", (<-e.C).Action)
	cancel()
	for range e.C {
	}
	require.NoError(t, e.Err())
}

func TestImageLoadReplies(t *testing.T) {
	const inspect = `{"Id":"sha256:abababababababababababababababababababababababababababababababab","RepoTags":["a/b:1","<none>:<none>"],"Os":"linux","Architecture":"amd64","Size":5,` +
		`"Config":{"Env":["A=b"],"Labels":{"k":"v"},"Volumes":{"/z":{},"/d":{}},"User":"1:1","Healthcheck":{"Test":["CMD","x"]}}}`
	for name, c := range map[string]struct{ reply, text string }{
		"good":          {"{\"stream\":\"Loaded image: a/b:1\\n\"}\r\n", ""},
		"error inside":  {"{\"stream\":\"…\"}\n{\"errorDetail\":{\"message\":\"no space left\"},\"error\":\"no space left\"}\n", "no space left"},
		"another image": {"{\"stream\":\"Loaded image: a/b:2\\n\"}\n", "did not say"},
		"nothing":       {"", "did not say"},
		"not JSON":      {"hello\n", "malformed progress"},
		"oversized":     {strings.Repeat("{\"stream\":\"x\"}\n", maxLoadReply/10), "exceeds its bound"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDaemon(t)
			var sent []byte
			s.answer("POST /images/load", func(w http.ResponseWriter, r *http.Request) {
				var err error
				if sent, err = io.ReadAll(r.Body); err != nil {
					panic(err)
				}
				replyJSON(200, c.reply)(w, r)
			})
			s.answer("GET /images/a/b:1/json", replyJSON(200, inspect))
			d := s.open(t)
			id, err := d.ImageLoad(t.Context(), strings.NewReader("archive"), "a/b:1")
			require.Equal(t, "archive", string(sent))
			if c.text != "" {
				require.ErrorContains(t, err, c.text)
				return
			}
			require.NoError(t, err)
			require.Equal(t, strings.Repeat("ab", 32), id.Hex())
			img, err := d.ImageInspect(t.Context(), "a/b:1")
			require.NoError(t, err)
			require.Equal(t, executor.Image{ID: id, Names: []string{"a/b:1"}, OS: "linux", Arch: "amd64", Size: 5, Env: []string{"A=b"},
				Labels: map[string]string{"k": "v"}, Volumes: []string{"/d", "/z"}, User: "1:1", Healthcheck: true}, img)
		})
	}
	s := newDaemon(t)
	d := s.open(t)
	for _, bad := range []string{"", "../containers/x", "a b", "a?b", "a#b", "/abs", strings.Repeat("a", 300)} {
		_, err := d.ImageInspect(t.Context(), bad)
		require.ErrorContains(t, err, "is not a name", bad)
		_, err = d.ImageLoad(t.Context(), strings.NewReader(""), bad)
		require.ErrorContains(t, err, "is not name:tag", bad)
	}
	s.answer("GET /images/a:1/json", replyJSON(200, `{"Id":"abab"}`))
	_, err := d.ImageInspect(t.Context(), "a:1")
	require.ErrorContains(t, err, "image ID")
	s.answer("GET /images/a:1/json", replyJSON(404, `{"message":"No such image: a:1"}`))
	_, err = d.ImageInspect(t.Context(), "a:1")
	require.ErrorIs(t, err, executor.ErrAbsent)
}
