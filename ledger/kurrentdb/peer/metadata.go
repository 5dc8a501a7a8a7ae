package peer

import (
	"encoding/json"
	"math"
	"time"
)

// streamMetadata is what a stream's metadata says that changes what is read.
type streamMetadata struct {
	maxCount       *int64
	maxAge         *time.Duration
	truncateBefore *int64
}

// softDeleted is the revision before which a soft delete hides events: all that can be.
const softDeleted = math.MaxInt64

func parseMetadata(data []byte) streamMetadata {
	var wire struct {
		MaxCount       *int64 `json:"$maxCount"`
		MaxAge         *int64 `json:"$maxAge"`
		TruncateBefore *int64 `json:"$tb"`
	}
	if json.Unmarshal(data, &wire) != nil {
		return streamMetadata{} // the server ignores what it can't read
	}
	m := streamMetadata{maxCount: wire.MaxCount, truncateBefore: wire.TruncateBefore}
	if wire.MaxAge != nil {
		age := time.Duration(*wire.MaxAge) * time.Second
		m.maxAge = &age
	}
	return m
}

func (m streamMetadata) softDeleted() bool {
	return m.truncateBefore != nil && *m.truncateBefore == softDeleted
}

// truncate returns the stream's metadata as JSON with another $tb, keeping all else.
func (l *log) truncate(name string, before int64) []byte {
	all := map[string]any{}
	if s := l.streams["$$"+name]; s != nil && len(s.records) > 0 {
		if json.Unmarshal(s.records[len(s.records)-1].data, &all) != nil {
			all = map[string]any{}
		}
	}
	all["$tb"] = before
	out, err := json.Marshal(all)
	if err != nil {
		panic(err) // it came from JSON
	}
	return out
}
