package config

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/baildock/baildock/evidence"
)

// Image is an image reference that can't move: a repository digest or a local image ID.
type Image struct {
	Reference string           // as the file has it
	ID        evidence.ImageID // of a bare local ID; zero for a repository digest
	Digest    string           // `sha256:` and 64 digits of a repository digest; empty for a local ID
}

// Local reports whether the reference is a bare image ID.
func (i Image) Local() bool { return i.Digest == "" }

// The grammar of the distribution project's references, with a digest that is required. The schema
// has the same two patterns.
const (
	localImage  = `^sha256:[0-9a-f]{64}$`
	pinnedImage = `^([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*(:[0-9]{1,5})?/)?` +
		`[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?@sha256:[0-9a-f]{64}$`
)

var (
	localImageForm  = regexp.MustCompile(localImage)
	pinnedImageForm = regexp.MustCompile(pinnedImage)
)

// parseImage refuses whatever can mean another image tomorrow (req L2).
func parseImage(s string) (Image, error) {
	if len(s) > MaxImage {
		return Image{}, fmt.Errorf("longer than %d bytes", MaxImage)
	}
	if localImageForm.MatchString(s) {
		i := Image{Reference: s}
		_, err := hex.Decode(i.ID[:], []byte(strings.TrimPrefix(s, "sha256:")))
		return i, err
	}
	if pinnedImageForm.MatchString(s) {
		_, digest, _ := strings.Cut(s, "@")
		return Image{Reference: s, Digest: digest}, nil
	}
	if strings.Contains(s, "@") || strings.HasPrefix(s, "sha256:") {
		return Image{}, fmt.Errorf("%q is no image reference with a digest of 64 lower-case hexadecimal digits", shorten(s))
	}
	return Image{}, fmt.Errorf("%q can mean another image tomorrow; pin it: NAME@sha256:DIGEST, or the local image ID sha256:…", shorten(s))
}
