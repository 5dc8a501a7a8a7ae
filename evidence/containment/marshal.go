package containment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/baildock/baildock/evidence"
)

// Marshal returns the canonical JSON: members in the order of the schema, no white space, nothing
// escaped that JSON doesn't need to have escaped. It fails for an object outside its bounds or enums.
func (e Evidence) Marshal() ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	return e.JSON(), nil
}

// JSON is the canonical JSON, unchecked: of what Of made it is within its bounds.
func (e Evidence) JSON() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		panic(err) // plain structs into memory
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Parse reads the canonical JSON of one object and nothing else.
func Parse(b []byte) (Evidence, error) {
	if len(b) > MaxBytes {
		return Evidence{}, fmt.Errorf("containment evidence of %d bytes exceeds %d", len(b), MaxBytes)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var e Evidence
	if err := d.Decode(&e); err != nil {
		return Evidence{}, fmt.Errorf("containment evidence: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Evidence{}, errors.New("containment evidence: something follows the object")
	}
	if err := e.Check(); err != nil {
		return Evidence{}, err
	}
	if !bytes.Equal(e.JSON(), b) {
		return Evidence{}, errors.New("containment evidence is not in its canonical form")
	}
	return e, nil
}

// enums are the closed lists, by type. States are by section.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[Applies]():                  {string(Applicable), string(NotApplicable)},
	reflect.TypeFor[ControlState]():             {"held", "accepted", "probed", "not_run", "unequal", "unavailable"},
	reflect.TypeFor[PolicyState]():              {"none", "kept", "broken", "unchecked"},
	reflect.TypeFor[CopyState]():                {"none", "held", "removed", "left"},
	reflect.TypeFor[Stage]():                    {"registered", "claimed", "preflight", "source", "runtime", "create", "isolation", "start", "run", "exit", "mutations", "policy", "finished"},
	reflect.TypeFor[evidence.Claim]():           {"none", "full", "reduced"},
	reflect.TypeFor[evidence.Outcome]():         texts(evidence.Outcomes()),
	reflect.TypeFor[evidence.Reduction]():       append(texts(evidence.Reductions()), Unreadable),
	reflect.TypeFor[evidence.ProfileName]():     {string(evidence.ProfileCommand), string(evidence.ProfileContained), Unreadable},
	reflect.TypeFor[evidence.Platform]():        {string(evidence.PlatformEngine), string(evidence.PlatformDesktop)},
	reflect.TypeFor[evidence.Network]():         {string(evidence.NetworkNone), string(evidence.NetworkBridge)},
	reflect.TypeFor[evidence.EvidenceKind]():    {"requested", "accepted", "observed", "kernel", "probed", "unavailable", Unreadable},
	reflect.TypeFor[evidence.PreflightResult](): {"supported", "experimental", "unavailable", "unsafe", Unreadable},
	reflect.TypeFor[evidence.CleanupState]():    {"", "not_created", "removed", "terminated", "force_killed", "already_absent", "incomplete", "unverifiable", Unreadable},
}

// known is a word of its closed list, or Unreadable: a history of a newer version has its object too.
func known[T ~string](t T) T {
	if slices.Contains(enums[reflect.TypeFor[T]()], string(t)) {
		return t
	}
	return Unreadable
}

func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = string(t)
	}
	return out
}

// Check refuses an object that isn't one of this version: another name, an enum's unknown word, a
// state that the section doesn't have, a text, list or whole that is too large, or a null list.
func (e Evidence) Check() error {
	if e.Schema != Schema || e.Version != Version {
		return fmt.Errorf("containment evidence: %q version %d is not %s version %d", e.Schema, e.Version, Schema, Version)
	}
	for _, s := range []struct {
		section string
		state   State
		allowed []State
	}{
		{"requested", e.Requested.State, []State{StateKnown, StateWithheld}},
		{"preflight", e.Preflight.State, []State{StateNotApplicable, StateNotReached, "supported", "experimental", "unavailable", "unsafe"}},
		{"image", e.Image.State, []State{StateNotReached, StateBound, StateMismatched, StateUnobserved}},
		{"controls", e.Controls.State, []State{StateNotReached, StateHeld, StateNotHeld}},
		{"environment", e.Environment.State, []State{StateKnown, StateWithheld}},
		{"workspace", e.Workspace.State, []State{StateNotApplicable, StateNotReached, StateUnchanged, StateChanged, StateUnknown}},
		{"cleanup", e.Cleanup.State, []State{StateNone, StateComplete, StateIncomplete}},
	} {
		if !slices.Contains(s.allowed, s.state) {
			return fmt.Errorf("containment evidence: section %s has no state %q", s.section, s.state)
		}
	}
	if err := bounded(reflect.ValueOf(e), "", 1); err != nil {
		return fmt.Errorf("containment evidence: %w", err)
	}
	if n := len(e.JSON()); n > MaxBytes {
		return fmt.Errorf("containment evidence of %d bytes exceeds %d", n, MaxBytes)
	}
	return nil
}

// bounded walks every text, enum and list.
func bounded(v reflect.Value, at string, depth int) error {
	if depth > MaxNesting {
		return fmt.Errorf("%s is nested deeper than %d", at, MaxNesting)
	}
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if allowed, closed := enums[v.Type()]; closed && !slices.Contains(allowed, s) {
			return fmt.Errorf("%s is %q, which is none of its words", at, s)
		}
		if utf8.RuneCountInString(s) > MaxText || !utf8.ValidString(s) {
			return fmt.Errorf("%s has more than %d characters or is not UTF-8", at, MaxText)
		}
	case reflect.Slice:
		if v.IsNil() || v.Len() > MaxItems {
			return fmt.Errorf("%s is null or has more than %d entries", at, MaxItems)
		}
		for i := range v.Len() {
			if err := bounded(v.Index(i), fmt.Sprintf("%s[%d]", at, i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := bounded(v.Field(i), at+"."+v.Type().Field(i).Tag.Get("json"), depth+1); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return bounded(v.Elem(), at, depth)
		}
	}
	return nil
}

// fit brings lists that events may make longer within the bounds, and counts what it leaves out.
func (e *Evidence) fit() {
	e.Requested.Writable = e.Requested.Writable[:min(len(e.Requested.Writable), MaxItems)]
	e.Environment.Configured = e.Environment.Configured[:min(len(e.Environment.Configured), MaxItems)]
	e.Workspace.Policy.Checks = e.Workspace.Policy.Checks[:min(len(e.Workspace.Policy.Checks), MaxItems)]
	checks, controls, containers := len(e.Preflight.Checks), len(e.Controls.List), len(e.Cleanup.Containers)
	for most := MaxItems; ; most /= 2 {
		cut(&e.Preflight.Checks, &e.Preflight.Omitted, checks, most)
		cut(&e.Controls.List, &e.Controls.Omitted, controls, most)
		cut(&e.Cleanup.Containers, &e.Cleanup.Omitted, containers, most)
		if most == 0 || len(e.JSON()) <= MaxBytes {
			return
		}
	}
}

func cut[T any](list *[]T, omitted *int, all, most int) {
	*list = (*list)[:min(len(*list), most)]
	*omitted = all - len(*list)
}
