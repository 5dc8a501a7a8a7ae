package evidence

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Custody is the state of one daemon object that exists, existed or may exist.
type Custody struct {
	Handle      HandleKey      `json:"handle"`
	Kind        CustodyKind    `json:"kind"`
	Name        string         `json:"name"`
	Request     RequestDigest  `json:"request"`
	Daemon      DaemonIdentity `json:"daemon"`
	Container   *ContainerID   `json:"container,omitempty"` // known since ContainerCreated
	Discovered  bool           `json:"discovered,omitempty"`
	Warnings    uint64         `json:"warnings,omitempty"`
	Ordered     bool           `json:"ordered,omitempty"` // our own removal order was recorded
	Closed      bool           `json:"closed"`            // ruled out, or absence confirmed
	Abandoned   bool           `json:"abandoned,omitempty"`
	State       CleanupState   `json:"state,omitempty"`       // the last one observed; empty while nothing was tried
	Unconfirmed string         `json:"unconfirmed,omitempty"` // why the last attempt to close it failed
	Proof       CreateProof    `json:"proof,omitempty"`       // of a create that was ruled out
}

// Open reports whether the object may still exist and nobody gave it up.
func (c Custody) Open() bool { return !c.Closed && !c.Abandoned }

// Custodies is the fold of an attempt's custody events, in the order they were taken. These
// event types are frozen at v1, and the fold ignores every other type and any later field, so
// that a program which doesn't understand a newer attempt can still remove what it names.
type Custodies []Custody

// custodyMode reads frozen events of newer writers: unknown fields are passed over.
var custodyMode = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:       cbor.DupMapKeyEnforcedAPF,
		IndefLength:     cbor.IndefLengthForbidden,
		UTF8:            cbor.UTF8RejectInvalid,
		MaxNestedLevels: MaxNesting,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return m
}()

// ApplyEncoded folds one event as stored. Types outside the frozen set change nothing.
func (cs *Custodies) ApplyEncoded(typ string, data []byte) error {
	var p Payload
	var err error
	switch typ {
	case "CustodyTaken":
		p, err = tolerant[CustodyTaken](data)
	case "CreateRuledOut":
		p, err = tolerant[CreateRuledOut](data)
	case "ContainerCreated":
		p, err = tolerant[ContainerCreated](data)
	case "RemovalOrdered":
		p, err = tolerant[RemovalOrdered](data)
	case "RemovalObserved":
		p, err = tolerant[RemovalObserved](data)
	case "CleanupUnconfirmed":
		p, err = tolerant[CleanupUnconfirmed](data)
	case "CustodyAbandoned":
		p, err = tolerant[CustodyAbandoned](data)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", typ, err)
	}
	return cs.Apply(p)
}

// FencedGeneration reads the generation that an AttemptFenced as stored makes, passing over any later
// field.
func FencedGeneration(data []byte) (uint64, error) {
	p, err := tolerant[AttemptFenced](data)
	if err != nil {
		return 0, fmt.Errorf("AttemptFenced: %w", err)
	}
	return p.(AttemptFenced).Generation, nil
}

// UnconfirmedHandle reads whose custody a CleanupUnconfirmed as stored speaks of, passing over any later
// field.
func UnconfirmedHandle(data []byte) (HandleKey, error) {
	p, err := tolerant[CleanupUnconfirmed](data)
	if err != nil {
		return HandleKey{}, fmt.Errorf("CleanupUnconfirmed: %w", err)
	}
	return p.(CleanupUnconfirmed).Handle, nil
}

func tolerant[P Payload](data []byte) (Payload, error) {
	var p P
	err := custodyMode.Unmarshal(data, &p)
	return p, err
}

// Apply folds one custody event; other payloads change nothing. It fails when the event names a
// custody that isn't there or can't take it.
func (cs *Custodies) Apply(p Payload) error {
	switch e := p.(type) {
	case CustodyTaken:
		if cs.find(e.Handle) != nil {
			return fmt.Errorf("custody %s is taken twice", e.Handle)
		}
		*cs = append(*cs, Custody{Handle: e.Handle, Kind: e.Kind, Name: e.Name, Request: e.Request, Daemon: e.Daemon})
		return nil
	case CreateRuledOut:
		return cs.change(e.Handle, func(c *Custody) error {
			if c.Container != nil {
				return fmt.Errorf("custody %s has a container; its create can't be ruled out", e.Handle)
			}
			if err := e.proves(c.Daemon); err != nil {
				return fmt.Errorf("custody %s: %w", e.Handle, err)
			}
			c.Closed, c.State, c.Unconfirmed, c.Proof = true, CleanupNotCreated, "", e.Proof
			return nil
		})
	case ContainerCreated:
		return cs.change(e.Handle, func(c *Custody) error {
			if c.Container != nil {
				return fmt.Errorf("custody %s already has container %s", e.Handle, c.Container.Hex())
			}
			id := e.Container
			c.Container, c.Discovered, c.Warnings = &id, e.Discovered, e.Warnings
			return nil
		})
	case RemovalOrdered:
		return cs.change(e.Handle, func(c *Custody) error {
			if c.Container == nil || *c.Container != e.Container {
				return fmt.Errorf("removal ordered for container %s, which custody %s doesn't hold", e.Container.Hex(), e.Handle)
			}
			c.Ordered = true
			return nil
		})
	case RemovalObserved:
		return cs.change(e.Handle, func(c *Custody) error {
			if !c.Ordered {
				return fmt.Errorf("removal of custody %s observed before it was ordered", e.Handle)
			}
			if !e.State.confirmed() {
				return fmt.Errorf("cleanup state %q doesn't confirm a removal", e.State)
			}
			c.Closed, c.State, c.Unconfirmed = true, e.State, ""
			return nil
		})
	case CleanupUnconfirmed:
		return cs.change(e.Handle, func(c *Custody) error {
			if e.State != CleanupIncomplete && e.State != CleanupUnverifiable {
				return fmt.Errorf("cleanup state %q is not one of an unconfirmed cleanup", e.State)
			}
			c.State, c.Unconfirmed = e.State, e.Code
			return nil
		})
	case CustodyAbandoned:
		return cs.change(e.Handle, func(c *Custody) error {
			if c.Unconfirmed == "" {
				return fmt.Errorf("custody %s is abandoned without an unconfirmed cleanup", e.Handle)
			}
			c.Abandoned = true
			return nil
		})
	}
	return nil
}

// proves holds a proof that rests on another life of the daemon against the daemon that was asked to
// create (req E5). Proofs of the create call itself rest on nothing else.
func (e CreateRuledOut) proves(asked DaemonIdentity) error {
	if e.Proof != ProofRebooted && e.Proof != ProofEnded {
		return nil
	}
	if e.Daemon == nil || e.Daemon.Machine == nil || !e.Daemon.SameHost(asked) {
		return fmt.Errorf("proof %s names no daemon on the same engine and machine", e.Proof)
	}
	if !OutlivedBy(e.Proof, asked, *e.Daemon) {
		return fmt.Errorf("proof %s names the same life of the daemon", e.Proof)
	}
	return nil
}

// OutlivedBy reports whether the daemon observed now is a later life of the one asked to create, in
// the way a proof says: another boot, or another process in the same boot. That the former process
// ended must be seen apart.
func OutlivedBy(p CreateProof, asked, now DaemonIdentity) bool {
	switch p {
	case ProofRebooted:
		return asked.Boot != now.Boot
	case ProofEnded:
		return asked.Boot == now.Boot && asked.Process != nil && now.Process != nil && *asked.Process != *now.Process
	}
	return false
}

func (s CleanupState) confirmed() bool {
	return s == CleanupRemoved || s == CleanupTerminated || s == CleanupForceKilled || s == CleanupAbsent
}

func (cs Custodies) find(h HandleKey) *Custody {
	for i := range cs {
		if cs[i].Handle == h {
			return &cs[i]
		}
	}
	return nil
}

func (cs Custodies) change(h HandleKey, f func(*Custody) error) error {
	c := cs.find(h)
	if c == nil {
		return fmt.Errorf("custody %s was never taken", h)
	}
	if !c.Open() {
		return fmt.Errorf("custody %s is closed", h)
	}
	return f(c)
}

// Open lists what may still exist.
func (cs Custodies) Open() []Custody {
	var open []Custody
	for _, c := range cs {
		if c.Open() {
			open = append(open, c)
		}
	}
	return open
}

// Container returns the attempt's own container: the first custody of that kind.
func (cs Custodies) MainContainer() (Custody, bool) {
	for _, c := range cs {
		if c.Kind == CustodyContainer {
			return c, true
		}
	}
	return Custody{}, false
}
