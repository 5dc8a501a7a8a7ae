package peer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// record is one event in the log.
type record struct {
	position uint64 // its offset: sparse, growing
	stream   string
	revision uint64
	id       uuid.UUID
	typ      string
	content  string // content type
	created  string // 100-ns ticks since the Unix epoch, as text
	at       time.Time
	data     []byte
	meta     []byte
	gone     bool // scavenged
}

// stream is what the index knows of a stream.
type stream struct {
	records    []*record      // every one, in order of revision
	meta       streamMetadata // of the newest event of its metadata stream
	tombstoned bool
}

func (s *stream) last() int64 {
	if n := len(s.records); n > 0 {
		return int64(s.records[n-1].revision)
	}
	return -1
}

// log is the one history that the nodes of a cluster replicate.
type log struct {
	mu      sync.Mutex
	records []*record
	streams map[string]*stream
	next    uint64        // the next record's offset
	grown   chan struct{} // closed and replaced whenever a node may see more
	now     func() time.Time

	scavenged bool // some records are gone
}

func newLog() *log {
	return &log{streams: map[string]*stream{}, next: 0, grown: make(chan struct{}), now: time.Now}
}

// tell wakes whoever waits for records. The caller holds the lock.
func (l *log) tell() {
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *log) stream(name string) *stream {
	s := l.streams[name]
	if s == nil {
		s = &stream{}
		l.streams[name] = s
	}
	return s
}

// put writes one record behind the stream's last. The caller holds the lock and has judged it.
func (l *log) put(name string, revision uint64, e proposed) *record {
	at := l.now()
	r := &record{
		position: l.next, stream: name, revision: revision, id: e.id, typ: e.typ, content: e.content,
		created: ticks(at), at: at, data: e.data, meta: e.meta,
	}
	// A record's size in the log isn't the size of its data; positions have gaps.
	l.next += uint64(90 + len(name) + len(e.typ) + len(e.data) + len(e.meta))
	l.records = append(l.records, r)
	s := l.stream(name)
	s.records = append(s.records, r)
	if owner, ok := strings.CutPrefix(name, "$$"); ok {
		l.stream(owner).meta = parseMetadata(e.data)
	}
	return r
}

// ticks is a time in units of 100 ns since the Unix epoch.
func ticks(t time.Time) string { return strconv.FormatInt(t.UnixNano()/100, 10) }

// visible are the stream's events that a read may return: those its metadata doesn't hide. The
// caller doesn't change them.
func (l *log) visible(s *stream, end uint64) []*record {
	i, _ := slices.BinarySearchFunc(s.records, end, func(r *record, p uint64) int { return cmp.Compare(r.position, p) })
	records := s.records[:i]
	if len(records) == 0 || s.meta == (streamMetadata{}) && !l.scavenged {
		return records
	}
	first := int64(0)
	if s.meta.truncateBefore != nil {
		first = max(first, *s.meta.truncateBefore)
	}
	if s.meta.maxCount != nil {
		first = max(first, int64(records[len(records)-1].revision)+1-*s.meta.maxCount)
	}
	var out []*record
	for _, r := range records {
		young := s.meta.maxAge == nil || r.at.After(l.now().Add(-*s.meta.maxAge))
		if int64(r.revision) >= first && young && !r.gone {
			out = append(out, r)
		}
	}
	return out
}

// after is the number of the first record at or behind a position.
func (l *log) after(position uint64) int {
	i, _ := slices.BinarySearchFunc(l.records, position, func(r *record, p uint64) int { return cmp.Compare(r.position, p) })
	return i
}

// rebuild makes the index of the records again, after they were changed from outside.
func (l *log) rebuild() {
	records := l.records
	l.records, l.streams = nil, map[string]*stream{}
	for _, r := range records {
		l.records = append(l.records, r)
		s := l.stream(r.stream)
		s.records = append(s.records, r)
		if r.typ == typeStreamDeleted {
			s.tombstoned = true
		}
		if owner, ok := strings.CutPrefix(r.stream, "$$"); ok {
			l.stream(owner).meta = parseMetadata(r.data)
		}
	}
	l.tell()
}
