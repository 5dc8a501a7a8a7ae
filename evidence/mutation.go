package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MutationsDomain opens every encoded list of mutations.
const MutationsDomain = "baildock.mutations.v1"

// MutationKind says how one path of a workspace differs from its baseline.
type MutationKind uint8

const (
	MutationModified MutationKind = 1 // another type, mode, content or target
	MutationAdded    MutationKind = 2
	MutationDeleted  MutationKind = 3
	MutationRenamed  MutationKind = 4 // a file whose content had one path and now has one other
)

var mutationNames = map[MutationKind]string{
	MutationModified: "modified", MutationAdded: "added", MutationDeleted: "deleted", MutationRenamed: "renamed",
}

func (k MutationKind) String() string {
	if name, ok := mutationNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Mutation is one difference between a workspace and its baseline (req O5).
type Mutation struct {
	Path   string // where it is now; of a deletion, where it was
	Kind   MutationKind
	From   string      // of a rename: the path before; empty otherwise
	Before *EntryState // nil for what was added
	After  *EntryState // nil for what was deleted
}

// paths are the one or two paths a mutation touches.
func (m Mutation) paths() []string {
	if m.Kind == MutationRenamed {
		return []string{m.From, m.Path}
	}
	return []string{m.Path}
}

// Content reports whether bytes of a file or a link's target are new at this path.
func (m Mutation) Content() bool {
	if m.After == nil || m.After.Type == EntryDirectory || m.Kind == MutationRenamed {
		return false
	}
	b, a := m.Before, m.After
	return b == nil || b.Type != a.Type || b.SHA256 != a.SHA256 || b.Target != a.Target
}

// OnlyDirectories reports whether no file and no link is touched.
func (m Mutation) OnlyDirectories() bool {
	return (m.Before == nil || m.Before.Type == EntryDirectory) && (m.After == nil || m.After.Type == EntryDirectory)
}

func (m Mutation) validate() error {
	if err := checkWorkspacePath(m.Path); err != nil {
		return err
	}
	for _, s := range []*EntryState{m.Before, m.After} {
		if s == nil {
			continue
		}
		if err := s.validate(); err != nil {
			return err
		}
	}
	before, after := m.Before != nil, m.After != nil
	ok := false
	switch m.Kind {
	case MutationModified:
		ok = before && after && *m.Before != *m.After
	case MutationAdded:
		ok = !before && after
	case MutationDeleted:
		ok = before && !after
	case MutationRenamed:
		if err := checkWorkspacePath(m.From); err != nil {
			return err
		}
		ok = before && after && m.Before.Type == EntryFile && m.After.Type == EntryFile &&
			m.Before.SHA256 == m.After.SHA256 && m.Before.Size == m.After.Size && m.Before.Size > 0
	}
	if !ok || (m.From != "") != (m.Kind == MutationRenamed) {
		return fmt.Errorf("%s mutation with states that don't fit", m.Kind)
	}
	return nil
}

// Mutations is all that differs, sorted by path. Each path stands once, as a path or as an origin.
type Mutations []Mutation

// Validate checks the form and the bounds.
func (l Mutations) Validate() error {
	if len(l) > MaxMutations {
		return fmt.Errorf("%d changes exceed %d", len(l), MaxMutations)
	}
	if !sortedUnique(l, func(m Mutation) string { return m.Path }) {
		return errors.New("the changed paths are not sorted or repeat")
	}
	text := 0
	origins := map[string]bool{}
	for i, m := range l {
		if err := m.validate(); err != nil {
			return fmt.Errorf("change %d: %q: %w", i, m.Path, err)
		}
		if m.From != "" {
			if origins[m.From] || l.has(m.From) {
				return fmt.Errorf("change %d: origin %q stands twice", i, m.From)
			}
			origins[m.From] = true
		}
		text += len(m.Path) + len(m.From)
		for _, s := range []*EntryState{m.Before, m.After} {
			if s != nil {
				text += len(s.Target)
			}
		}
		if text > MaxMutationText {
			return fmt.Errorf("changed paths and link targets exceed %d bytes", MaxMutationText)
		}
	}
	return nil
}

func (l Mutations) has(path string) bool {
	_, found := slices.BinarySearchFunc(l, path, func(m Mutation, p string) int { return strings.Compare(m.Path, p) })
	return found
}

// wireMutations is CBOR [domain, mutations]; wireMutation is [path, kind, from, before, after], each state
// in a list of none or one, and from empty but for a rename.
type (
	wireMutations struct {
		_      struct{} `cbor:",toarray"`
		Domain string
		List   []wireMutation
	}
	wireMutation struct {
		_      struct{} `cbor:",toarray"`
		Path   []byte
		Kind   MutationKind
		From   []byte
		Before []wireState
		After  []wireState
	}
)

func wireOf(s *EntryState) []wireState {
	if s == nil {
		return nil
	}
	return []wireState{s.wire()}
}

func stateOf(w []wireState) (*EntryState, error) {
	switch len(w) {
	case 0:
		return nil, nil
	case 1:
		s, err := w[0].state()
		return &s, err
	}
	return nil, fmt.Errorf("%d states", len(w))
}

// Marshal returns the canonical encoding of a valid list.
func (l Mutations) Marshal() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	w := wireMutations{Domain: MutationsDomain, List: make([]wireMutation, len(l))}
	for i, m := range l {
		w.List[i] = wireMutation{Path: []byte(m.Path), Kind: m.Kind, From: []byte(m.From), Before: wireOf(m.Before), After: wireOf(m.After)}
	}
	b := Marshal(w)
	if len(b) > MaxValue {
		return nil, fmt.Errorf("the list of changes has %d bytes; at most %d", len(b), MaxValue)
	}
	return b, nil
}

// Digest is the SHA-256 of the canonical encoding.
func (l Mutations) Digest() (MutationsDigest, error) {
	b, err := l.Marshal()
	if err != nil {
		return MutationsDigest{}, err
	}
	return Sum[mutationsMeaning](b), nil
}

// ParseMutations reads the canonical encoding and checks the form.
func ParseMutations(b []byte) (Mutations, error) {
	var w wireMutations
	if err := Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("mutations: %w", err)
	}
	if w.Domain != MutationsDomain {
		return nil, fmt.Errorf("mutations: domain %q, expected %q", w.Domain, MutationsDomain)
	}
	l := make(Mutations, len(w.List))
	for i, m := range w.List {
		before, err := stateOf(m.Before)
		after, err2 := stateOf(m.After)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("change %d: %w", i, err)
		}
		l[i] = Mutation{Path: string(m.Path), Kind: m.Kind, From: string(m.From), Before: before, After: after}
	}
	return l, l.Validate()
}
