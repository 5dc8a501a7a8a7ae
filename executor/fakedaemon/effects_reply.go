package fakedaemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Stalled sends half of the reply and the rest after a while.
type Stalled struct {
	Delay time.Duration // 0 = Options.Slow
}

// Kind is KindStalled.
func (Stalled) Kind() FaultKind { return KindStalled }

func (f Stalled) send(x *exchange, rep *reply) bool {
	x.half(rep)
	if x.d.sleep(f.Delay) {
		x.w.Write(rep.body[len(rep.body)/2:])
	}
	return true
}

// Truncated sends half of the reply and closes the connection.
type Truncated struct{}

// Kind is KindTruncated.
func (Truncated) Kind() FaultKind { return KindTruncated }

func (Truncated) send(x *exchange, rep *reply) bool {
	x.half(rep)
	x.abort()
	return true
}

// half sends the header with the whole length, and half the body.
func (x *exchange) half(rep *reply) {
	x.w.Header().Set("Content-Length", strconv.Itoa(len(rep.body)))
	x.head(*rep)
	x.w.Write(rep.body[:len(rep.body)/2])
	http.NewResponseController(x.w).Flush() // a client that has left is no concern
}

// Malformed sends what is not JSON, or in a stream what is not a frame or an event.
type Malformed struct{}

// Kind is KindMalformed.
func (Malformed) Kind() FaultKind { return KindMalformed }

func (Malformed) leave(_ *exchange, rep *reply) {
	if rep.flow == nil {
		rep.body = append([]byte(`{"Id": not json `), rep.body...)
	}
}

func (Malformed) stream(s *stream) {
	if s.x.framed() {
		s.instead = []byte("\x07\x01\x02\x03\x00\x00\x00\x02hi")
		return
	}
	s.instead = []byte("{\"Type\": not json\n")
}

// RepeatedKey writes a key of the reply's object a second time, with another value: two readers
// may see two things.
type RepeatedKey struct {
	Key   string // "" = the first one
	Value any
}

// Kind is KindRepeatedKey.
func (RepeatedKey) Kind() FaultKind { return KindRepeatedKey }

func (f RepeatedKey) leave(_ *exchange, rep *reply) {
	open := bytes.IndexByte(rep.body, '{')
	if open < 0 || rep.flow != nil {
		return
	}
	key := f.Key
	if key == "" {
		rest := rep.body[open+2:]
		key = string(rest[:bytes.IndexByte(rest, '"')])
	}
	again, err := json.Marshal(map[string]any{key: f.Value})
	if err != nil {
		panic(fmt.Sprintf("fake daemon: repeated key: %v", err))
	}
	// The repetition comes first, so that a reader that takes the last one sees nothing amiss.
	again[len(again)-1] = ','
	rep.body = append(rep.body[:open:open], append(again, rep.body[open+1:]...)...)
}

// Oversized makes the reply, a line or a frame of a stream longer than any bound.
type Oversized struct {
	Size int // bytes added; 0 = 2 MiB
}

// Kind is KindOversized.
func (Oversized) Kind() FaultKind { return KindOversized }

func (f Oversized) size() int {
	if f.Size == 0 {
		return 2 << 20
	}
	return f.Size
}

func (f Oversized) leave(_ *exchange, rep *reply) {
	if rep.flow == nil {
		rep.body = append(bytes.Repeat([]byte(" "), f.size()), rep.body...)
	}
}

func (f Oversized) stream(s *stream) {
	if s.x.framed() {
		n := f.size()
		s.instead = append([]byte{1, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, bytes.Repeat([]byte("x"), n)...)
		return
	}
	s.before = bytes.Repeat([]byte(" "), f.size())
}

// FailedDone does what was asked and answers with an error.
type FailedDone struct {
	Status int // 0 = 500
}

// Kind is KindFailedDone, and KindDeniedDone with a status below 500.
func (f FailedDone) Kind() FaultKind {
	if f.Status != 0 && f.Status < http.StatusInternalServerError {
		return KindDeniedDone
	}
	return KindFailedDone
}

func (f FailedDone) leave(x *exchange, rep *reply) {
	status := f.Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	*rep = refusal(status, "the fake daemon was told to fail after %s", x.route.call)
}

// Override gives a field of the reply another value.
type Override struct {
	Pointer string // RFC 6901, such as /HostConfig/Memory; * stands for every element
	Value   any
}

// Kind is KindOverride.
func (Override) Kind() FaultKind { return KindOverride }

func (f Override) pointer() string { return f.Pointer }

func (f Override) leave(_ *exchange, rep *reply) { rep.edit(f.Pointer, f.Value, false) }

// Missing leaves a field of the reply out.
type Missing struct {
	Pointer string // as Override's
}

// Kind is KindMissing.
func (Missing) Kind() FaultKind { return KindMissing }

func (f Missing) pointer() string { return f.Pointer }

func (f Missing) leave(_ *exchange, rep *reply) { rep.edit(f.Pointer, nil, true) }

// WrongLabel gives a container's label another value, in inspect and list replies. The container
// itself keeps its label.
type WrongLabel struct {
	Name  string // "" = every label
	Value string // "" = "wrong"
}

// Kind is KindWrongLabel.
func (WrongLabel) Kind() FaultKind { return KindWrongLabel }

func (f WrongLabel) leave(x *exchange, rep *reply) {
	value := f.Value
	if value == "" {
		value = "wrong"
	}
	rep.edit(labelPointer(x.route.call, f.Name), value, false)
}

// NoLabel leaves a container's label out of inspect and list replies.
type NoLabel struct {
	Name string // "" = every label
}

// Kind is KindNoLabel.
func (NoLabel) Kind() FaultKind { return KindNoLabel }

func (f NoLabel) leave(x *exchange, rep *reply) {
	rep.edit(labelPointer(x.route.call, f.Name), nil, true)
}

func labelPointer(c Call, name string) string {
	if name == "" {
		name = "*"
	}
	if c == CallList || c == CallImageList {
		return "/*/Labels/" + name
	}
	return "/Config/Labels/" + name
}

// Flip is an Override that Default sets on every second answer.
type Flip struct{ Override }

// Kind is KindFlip.
func (Flip) Kind() FaultKind { return KindFlip }

// Warned answers a create with warnings.
type Warned struct {
	Warnings []string // none = one about swap
}

// Kind is KindWarned.
func (Warned) Kind() FaultKind { return KindWarned }

func (f Warned) leave(_ *exchange, rep *reply) {
	if len(f.Warnings) == 0 {
		f.Warnings = []string{warnSwap}
	}
	rep.edit("/Warnings", f.Warnings, false)
}
