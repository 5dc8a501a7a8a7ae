package candidate

import (
	"github.com/baildock/baildock/evidence"
)

// Apply returns the files of the subject with the changes made: new ones with the mode of a plain
// file, changed ones with the mode they had. Sizes of changed files are set, digests are not. It
// fails with *RefusedError where a change doesn't fit what is there.
func (c Candidate) Apply(subject []evidence.ManifestEntry) ([]evidence.ManifestEntry, error) {
	there := map[string]evidence.Mode{}
	dirs := map[string]bool{}
	for _, e := range subject {
		there[e.Path] = e.Mode
		for _, d := range parents(e.Path) {
			dirs[d] = true
		}
	}
	deleted, written := map[string]bool{}, map[string]int{}
	for i, x := range c.Changes {
		mode, file := there[x.Path]
		switch {
		case mode == evidence.ModeLink:
			return nil, Refuse(CodeLink, x.Path, "it is a link in the subject")
		case x.Delete && !file && dirs[x.Path]:
			return nil, Refuse(CodeConflict, x.Path, "it is a directory; name the files to delete")
		case x.Delete && !file:
			return nil, Refuse(CodeAbsent, x.Path, "it isn't there, so it can't be deleted")
		case dirs[x.Path]:
			return nil, Refuse(CodeConflict, x.Path, "it is a directory in the subject")
		}
		if x.Delete {
			deleted[x.Path] = true
		} else {
			written[x.Path] = i
		}
	}
	for _, x := range c.Changes {
		for _, d := range parents(x.Path) {
			mode, file := there[d]
			if mode == evidence.ModeLink {
				return nil, Refuse(CodeLink, x.Path, "component %q is a link in the subject", d)
			}
			if file && !deleted[d] {
				return nil, Refuse(CodeConflict, x.Path, "component %q is a file in the subject", d)
			}
		}
	}
	out := make([]evidence.ManifestEntry, 0, len(subject)+len(written))
	for _, e := range subject {
		if i, ok := written[e.Path]; ok {
			e.Size, e.SHA256 = uint64(len(c.Changes[i].Content)), evidence.ContentDigest{}
			delete(written, e.Path)
		}
		if !deleted[e.Path] {
			out = append(out, e)
		}
	}
	for path, i := range written {
		out = append(out, evidence.ManifestEntry{Path: path, Mode: evidence.ModeFile, Size: uint64(len(c.Changes[i].Content))})
	}
	return out, nil
}
