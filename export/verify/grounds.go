package verify

import (
	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
)

// An admission is decided from events. Two of its rules are about what an event only names: that the recipe
// is the one registered, and that the paths touched lie inside the allowed set. Without those bytes the
// decision is the same, and wasn't made again (req T9).

// reliedRecipe holds what an attempt registered to its recipe, so that "the context's recipe, toolchain and
// environment" is true of the command and not only of what was said of it (req H1). Without the recipe that
// isn't decided.
func (v *verification) reliedRecipe(id evidence.AttemptID) (held bool, err error) {
	j, ok := v.counted[id]
	for _, other := range v.attempt {
		if other.fold.Registered.Attempt == id {
			j, ok = other, true
		}
	}
	if !ok {
		return true, nil // not in the bundle, which the decision says
	}
	g := j.fold.Registered
	b, held := v.payload.Blob(bundle.BlobDigest(g.Recipe))
	if !held {
		return false, nil
	}
	r, err := evidence.ParseRecipe(b)
	if err == nil {
		err = g.Fits(r)
	}
	return true, err
}

// paths holds evidence of source-paths/v1 to the list it names, where the bundle holds that
// (req H4). That it is missing CheckWithheld says.
func (v *verification) paths(e evidence.PathsChecked) error {
	w, held, err := v.opened(e.Paths)
	if err != nil || !held {
		return err
	}
	return e.Redecide(w.Bytes)
}

// pathsMissing reports whether the context asks for evidence of paths whose list the bundle lacks.
func (v *verification) pathsMissing(trail *evidence.ChangeTrail) bool {
	if _, asked := trail.Fold.Context.Requires(evidence.EvidencePaths); !asked || trail.Fold.Paths == nil {
		return false
	}
	_, held, err := v.opened(trail.Fold.Paths.Paths)
	return err == nil && !held
}
