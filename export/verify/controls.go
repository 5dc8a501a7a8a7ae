package verify

import (
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/schemas"
)

// controlValues opens the salted values of every control observed, in any stream of the bundle.
func (v *verification) controlValues() {
	for _, s := range v.payload.Streams {
		for _, e := range v.streams[s.Name] {
			controls, ref, ok := evidence.ControlsOf(e.Payload)
			if !ok {
				continue
			}
			_, held, err := v.valuesOf(controls, ref)
			if err != nil {
				v.report.fail(CheckControls, "stream %s, version %s: %v", s.Name, e.Version, err)
				return
			}
			if !held {
				v.lacks(CheckControls, bundle.ClassControls)
				return
			}
		}
	}
	v.report.pass(CheckControls, "the values found open the salted ones")
}

// valuesOf opens a list of controls: as many values, in the same order, each opening its control.
func (v *verification) valuesOf(controls []evidence.Control, ref evidence.BlobRef) (values []evidence.ControlValue, held bool, err error) {
	w, held, err := v.opened(ref)
	if err != nil || !held {
		return nil, false, err
	}
	values, err = evidence.OpenControls(controls, w.Bytes)
	return values, err == nil, err
}

// schemas compares the schema texts the bundle was written under with this program's. Another text
// is no fault of the evidence: the checks above don't depend on it.
func (v *verification) schemas() {
	own := schemas.CDDL()
	same := slices.EqualFunc(v.payload.Schemas, own, func(a bundle.Schema, b schemas.Schema) bool {
		return a.Name == b.Name && a.Digest == b.Digest()
	})
	if !same {
		v.report.excuse(CheckSchemas, "the bundle was written under other schema texts than this program's")
		return
	}
	v.report.pass(CheckSchemas, "the schema texts are those of this program")
}
