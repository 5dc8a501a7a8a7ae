package evidence

import "fmt"

// RuntimeOf reads the name of a runtime's stream.
func RuntimeOf(stream string) (RuntimeDigest, error) {
	if len(stream) != len(RuntimePrefix)+64 || stream[:len(RuntimePrefix)] != RuntimePrefix {
		return RuntimeDigest{}, fmt.Errorf("stream %s is no runtime's", stream)
	}
	return ParseDigest[runtimeMeaning](stream[len(RuntimePrefix):])
}

// RuntimeTrail folds a runtime's stream: observations, which never exclude each other. It must be told
// whose stream it is.
type RuntimeTrail struct {
	Runtime  RuntimeDigest
	Canaries []CanarySeen
}

// CanarySeen is a canary's observation at its place.
type CanarySeen struct {
	At       EventIndex
	Version  uint64 // of the stream
	Observed CanaryObserved
}

// Follow folds the next event, whose version in the stream is given. It fails with *IllegalEventError,
// leaving the trail unchanged, when the event doesn't belong there.
func (t *RuntimeTrail) Follow(at EventIndex, version uint64, p Payload) error {
	switch e := p.(type) {
	case RuntimeProbed, StreamSealed:
		return nil
	case CanaryObserved:
		if err := e.Check(); err != nil {
			return &IllegalEventError{Type: e.EventType(), Why: err.Error()}
		}
		if e.Runtime != t.Runtime {
			return &IllegalEventError{Type: e.EventType(), Why: fmt.Sprintf("it is of runtime %s, in the stream of %s", e.Runtime, t.Runtime)}
		}
		t.Canaries = append(t.Canaries, CanarySeen{At: at, Version: version, Observed: e})
		return nil
	}
	return &IllegalEventError{Type: p.EventType(), Why: "it does not belong in a runtime's stream"}
}

// UpTo returns what the stream held at one of its versions.
func (t *RuntimeTrail) UpTo(version uint64) []CanarySeen {
	n := 0
	for n < len(t.Canaries) && t.Canaries[n].Version <= version {
		n++
	}
	return t.Canaries[:n:n]
}
