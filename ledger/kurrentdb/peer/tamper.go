package peer

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// What happens to a cluster outside the protocol.

// Truncate forgets the log's last n records, as a backup restored in its place does. Their
// positions are given again.
func (c *Cluster) Truncate(n int) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	keep := len(c.log.records) - n
	c.log.next = c.log.records[keep].position
	c.log.records = c.log.records[:keep:keep]
	c.log.rebuild()
}

// Len is the number of records in the log.
func (c *Cluster) Len() int {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	return len(c.log.records)
}

// Redact overwrites an event's data in place.
func (c *Cluster) Redact(stream string, revision uint64, data []byte) error {
	return c.change(stream, revision, func(r *record) { r.data = data })
}

// SpoilCreated gives an event a time that no client can parse.
func (c *Cluster) SpoilCreated(stream string, revision uint64, created string) error {
	return c.change(stream, revision, func(r *record) { r.created = created })
}

// Lose takes one record out of the log, as a scavenge does with what is deleted.
func (c *Cluster) Lose(stream string, revision uint64) error {
	return c.change(stream, revision, func(r *record) { r.gone = true; c.log.scavenged = true })
}

func (c *Cluster) change(stream string, revision uint64, f func(*record)) error {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	s := c.log.streams[stream]
	if s == nil {
		return fmt.Errorf("there is no stream %s", stream)
	}
	i := slices.IndexFunc(s.records, func(r *record) bool { return r.revision == revision })
	if i < 0 {
		return fmt.Errorf("stream %s has no revision %d", stream, revision)
	}
	changed := *s.records[i] // readers may hold the old one
	f(&changed)
	c.log.records[c.log.after(changed.position)] = &changed
	s.records[i] = &changed
	c.log.tell()
	return nil
}

// Inject writes an event behind a stream's last, as another program does.
func (c *Cluster) Inject(stream, typ string, data []byte) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	s := c.log.stream(stream)
	c.log.put(stream, uint64(s.last()+1), proposed{id: uuid.New(), typ: typ, content: "application/octet-stream", data: data})
	c.log.tell()
}

// Scavenge removes from the log what metadata hides.
func (c *Cluster) Scavenge() {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	for _, s := range c.log.streams {
		shown := c.log.visible(s, never)
		for _, r := range s.records {
			if r.typ != typeStreamDeleted && (s.tombstoned || !slices.Contains(shown, r)) {
				r.gone = true
			}
		}
	}
	c.log.scavenged = true
	c.log.tell()
}

// Streams lists the streams that hold events.
func (c *Cluster) Streams() []string {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	var out []string
	for name, s := range c.log.streams {
		if len(s.records) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
