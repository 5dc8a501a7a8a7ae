package bundle

import (
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
)

// Class says what a blob is about. Blobs are withheld by class.
type Class string

const (
	ClassOutput   Class = "output"   // what the command wrote, with its lengths and plain digests
	ClassRecipe   Class = "recipe"   // argv, limits, image
	ClassEnv      Class = "env"      // the declared environment
	ClassSource   Class = "source"   // paths, sizes and digests of the source's files
	ClassControls Class = "controls" // the values found for each control
	ClassDetail   Class = "detail"   // error texts, an operator's words
	ClassProfile  Class = "profile"  // a profile's table, or a workspace policy; public, never withheld
	ClassSalts    Class = "salts"    // what opens the values of an environment that is only committed to; shown only when named
	ClassChanges  Class = "changes"  // what changed in a workspace: paths, digests, the diff
)

// Withholdables returns the classes that may be withheld, in their documented order.
func Withholdables() []Class {
	return []Class{ClassOutput, ClassRecipe, ClassEnv, ClassSource, ClassControls, ClassDetail, ClassSalts, ClassChanges}
}

// ParseClass refuses anything outside the closed list. It accepts classes that can't be withheld.
func ParseClass(s string) (Class, error) {
	if c := Class(s); c == ClassProfile || slices.Contains(Withholdables(), c) {
		return c, nil
	}
	return "", fmt.Errorf("class %q is none of %v", s, Withholdables())
}

// ParseWithholdable refuses classes that can't be withheld.
func ParseWithholdable(s string) (Class, error) {
	if c := Class(s); slices.Contains(Withholdables(), c) {
		return c, nil
	}
	return "", fmt.Errorf("%q can't be withheld; what can is %v", s, Withholdables())
}

// WithThem returns the classes that are withheld when these are: values of controls and texts of errors
// repeat argv and environment, so they go where a recipe or an environment goes; texts also name paths of the
// source and of what changed, so they go where these go. Whoever accepts a class as missing accepts these with it.
func WithThem(classes []Class) []Class {
	out := slices.Clone(classes)
	for _, c := range classes {
		switch c {
		case ClassRecipe, ClassEnv:
			out = append(out, ClassControls, ClassDetail)
		case ClassSource, ClassChanges:
			out = append(out, ClassDetail)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Mention is how one event names a blob: by its plain digest, or by a reference of a salted digest
// and the digest of a descriptor, each of which is a blob.
type Mention struct {
	Class Class
	Plain BlobDigest        // set when Ref is nil
	Ref   *evidence.BlobRef // set when the blob has a descriptor
}

// Digests returns the digests the mention names: one, or the bytes' and the descriptor's.
func (m Mention) Digests() []BlobDigest {
	if m.Ref == nil {
		return []BlobDigest{m.Plain}
	}
	return []BlobDigest{BlobDigest(m.Ref.Salted), BlobDigest(m.Ref.Descriptor)}
}

// Mentions returns the blobs an event names, in the order of its fields.
func Mentions(p evidence.Payload) []Mention {
	var m mentions
	switch e := p.(type) {
	case evidence.AttemptRegistered:
		m.plain(ClassProfile, BlobDigest(e.Table))
		m.plain(ClassRecipe, BlobDigest(e.Recipe))
		m.plain(ClassEnv, BlobDigest(e.Environment))
		if e.Policy != nil {
			m.plain(ClassProfile, BlobDigest(*e.Policy))
		}
		m.ref(ClassSalts, e.Salts)
	case evidence.PreflightObserved:
		m.ref(ClassDetail, e.Detail)
	case evidence.WorkspaceMutated:
		m.ref(ClassChanges, e.Mutations)
		m.ref(ClassChanges, e.Diff)
		m.ref(ClassDetail, e.Detail)
	case evidence.PolicyChecked:
		m.ref(ClassChanges, e.Detail)
	case evidence.SourceMaterialized:
		m.ref(ClassSource, &e.Entries)
		m.ref(ClassSource, e.Detail)
	case evidence.PathsChecked:
		m.ref(ClassSource, &e.Paths)
	case evidence.SourceRefused:
		m.ref(ClassDetail, e.Detail)
	case evidence.RuntimeObserved:
		m.ref(ClassDetail, e.Detail)
	case evidence.CreateRuledOut:
		m.ref(ClassDetail, e.Detail)
	case evidence.ContainerCreated:
		m.ref(ClassDetail, e.Detail)
	case evidence.IsolationObserved:
		m.ref(ClassControls, &e.Values)
		m.ref(ClassDetail, e.Detail)
	case evidence.KernelObserved:
		m.ref(ClassControls, &e.Values)
	case evidence.RuntimeProbed:
		m.ref(ClassControls, &e.Values)
	case evidence.CanaryObserved:
		m.ref(ClassDetail, &e.Seen)
	case evidence.StartFailed:
		m.ref(ClassDetail, e.Detail)
	case evidence.ContainerExited:
		m.ref(ClassDetail, e.Detail)
	case evidence.OutputCaptured:
		m.ref(ClassOutput, &e.Stdout.Bytes)
		m.ref(ClassOutput, &e.Stderr.Bytes)
	case evidence.CleanupUnconfirmed:
		m.ref(ClassDetail, e.Detail)
	case evidence.SnapshotLeft:
		m.ref(ClassDetail, e.Detail)
	case evidence.AttemptFenced:
		m.ref(ClassDetail, e.Reason)
	}
	return m
}

type mentions []Mention

func (m *mentions) plain(c Class, d BlobDigest) { *m = append(*m, Mention{Class: c, Plain: d}) }

func (m *mentions) ref(c Class, r *evidence.BlobRef) {
	if r != nil {
		*m = append(*m, Mention{Class: c, Ref: r})
	}
}
