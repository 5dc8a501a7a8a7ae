package executor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
)

// imageRefusals lists why an image may not be run under a recipe. Nothing of an image is taken
// over silently: what it declares is in the recipe, or refused.
func imageRefusals(img Image, err error, job Job) []Refusal {
	switch {
	case errors.Is(err, ErrAbsent):
		named := "of that name"
		if job.Recipe.Image != (evidence.ImageID{}) {
			named = job.Recipe.Image.String()
		}
		return []Refusal{{RefusedNoImage, fmt.Sprintf("there is no local image %s, and nothing is ever pulled", named)}}
	case err != nil:
		return []Refusal{{RefusedImageError, err.Error()}}
	case img.ID != job.Recipe.Image:
		return []Refusal{{RefusedImageID, fmt.Sprintf("asked for image %s, got %s", job.Recipe.Image, img.ID)}}
	}
	var out []Refusal
	declared := map[string]bool{}
	for _, v := range slices.Concat(job.Environment.Vars, job.Profile.Environment) {
		declared[v.Name+"="+v.Value] = true
	}
	for _, v := range job.Values {
		declared[v.Name+"="+v.Value] = true
	}
	for _, entry := range img.Env {
		if !declared[entry] { // req A4
			name, _, _ := strings.Cut(entry, "=")
			out = append(out, Refusal{RefusedImageEnv, "the image declares an environment entry that the recipe doesn't: " + name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(img.Labels)) {
		if strings.HasPrefix(name, LabelPrefix) { // req E2
			out = append(out, Refusal{RefusedImageLabels, "the image declares label " + name})
		}
	}
	for _, v := range img.Volumes {
		out = append(out, Refusal{RefusedImageVolumes, "the image declares volume " + v})
	}
	if img.OS != "linux" {
		out = append(out, Refusal{RefusedImageOS, "the image is for " + img.OS})
	}
	return out
}
