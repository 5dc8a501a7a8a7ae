package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// refPattern bounds what goes into a request's path: names, tags, digests, IDs.
var refPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$`)

// ImageInspect resolves a local image.
func (d *Driver) ImageInspect(ctx context.Context, ref string) (executor.Image, error) {
	if !refPattern.MatchString(ref) || strings.Contains(ref, "..") {
		return executor.Image{}, fmt.Errorf("image %q is not a name, name:tag or sha256: ID", clip(ref, maxFact))
	}
	var img executor.Image
	c, err := d.control(ctx, "image inspect", d.by.control, func(ctx context.Context) error {
		r, err := d.api.ImageInspect(ctx, ref)
		if err != nil {
			return err
		}
		img, err = imageOf(r)
		return err
	})
	if err != nil && c.absent("image", "") {
		return executor.Image{}, fmt.Errorf("image %s: %w", ref, executor.ErrAbsent)
	}
	return img, err
}

// ImageList lists by ID. Images whose details can't be listed carry ID, names, size and labels only.
func (d *Driver) ImageList(ctx context.Context) ([]executor.Image, error) {
	var out []executor.Image
	_, err := d.control(ctx, "image list", d.by.control, func(ctx context.Context) error {
		list, err := d.api.ImageList(ctx, image.ListOptions{})
		if err != nil {
			return err
		}
		if len(list) > maxImages {
			return fmt.Errorf("%w: %d images, at most %d", errTooLarge, len(list), maxImages)
		}
		for _, s := range list {
			img := executor.Image{Names: named(s.RepoTags), Digests: named(s.RepoDigests), Size: s.Size, Labels: s.Labels}
			if img.ID, err = parseImageID(s.ID); err != nil {
				return err
			}
			out = append(out, img)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b executor.Image) int { return strings.Compare(a.ID.Hex(), b.ID.Hex()) })
	return out, nil
}

// ImageLoad sends a docker-archive that tags its image as name. The daemon reports errors inside a
// successful reply, so the reply is read to its end and must say that it loaded that name.
func (d *Driver) ImageLoad(ctx context.Context, archive io.Reader, name string) (evidence.ImageID, error) {
	if !refPattern.MatchString(name) || !strings.Contains(name, ":") {
		return evidence.ImageID{}, fmt.Errorf("image name %q is not name:tag", clip(name, maxFact))
	}
	if _, err := d.pin(ctx); err != nil {
		return evidence.ImageID{}, err
	}
	loading, cancel := context.WithTimeout(ctx, d.by.load)
	defer cancel()
	c := &call{name: "image load", limit: maxLoadReply}
	resp, err := d.api.ImageLoad(withCall(loading, c), archive, client.ImageLoadWithQuiet(true))
	if err == nil {
		err = loaded(resp.Body, name)
		resp.Body.Close()
	}
	if err != nil {
		return evidence.ImageID{}, c.fault(late(loading, d.by.load, err))
	}
	img, err := d.ImageInspect(ctx, name)
	return img.ID, err
}

// loaded reads the progress of a load.
func loaded(body io.Reader, name string) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4<<10), maxLoadReply)
	found := false
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var m struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fmt.Errorf("malformed progress of the load: %w", err)
		}
		if m.Error != "" {
			return errors.New(clip(m.Error, maxMessage))
		}
		if rest, ok := strings.CutPrefix(m.Stream, "Loaded image: "); ok && strings.TrimSpace(rest) == name {
			found = true
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("the daemon did not say that it loaded %s", name)
	}
	return nil
}

func imageOf(r image.InspectResponse) (executor.Image, error) {
	id, err := parseImageID(r.ID)
	if err != nil {
		return executor.Image{}, err
	}
	img := executor.Image{
		ID:      id,
		Names:   named(r.RepoTags),
		Digests: named(r.RepoDigests),
		OS:      r.Os,
		Arch:    r.Architecture,
		Size:    r.Size,
	}
	if r.Config == nil {
		return img, nil
	}
	img.Env = r.Config.Env
	img.Labels = r.Config.Labels
	img.User = r.Config.User
	for v := range r.Config.Volumes {
		img.Volumes = append(img.Volumes, v)
	}
	slices.Sort(img.Volumes)
	if h := r.Config.Healthcheck; h != nil && len(h.Test) > 0 && h.Test[0] != "NONE" {
		img.Healthcheck = true
	}
	return img, nil
}

// named drops the daemon's placeholder for untagged images.
func named(names []string) []string {
	var out []string
	for _, n := range names {
		if !strings.HasPrefix(n, "<none>") {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func parseImageID(s string) (evidence.ImageID, error) {
	var id evidence.ImageID
	if err := id.UnmarshalText([]byte(s)); err != nil || !strings.HasPrefix(s, "sha256:") {
		return evidence.ImageID{}, fmt.Errorf("image ID %q is not sha256: and 64 lower-case hex digits", clip(s, maxFact))
	}
	return id, nil
}
