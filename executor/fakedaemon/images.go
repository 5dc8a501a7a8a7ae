package fakedaemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Image is an image put into the daemon without loading an archive.
type Image struct {
	Name       string // name:tag
	Env        []string
	Labels     map[string]string
	User       string
	Entrypoint []string
	Cmd        []string
	WorkingDir string
	Volumes    []string
	Healthy    []string // a health check's test
	OS, Arch   string   // "" = linux, amd64
}

// image is an image as the daemon keeps it. Its ID is the digest of its configuration document.
type image struct {
	id      string // sha256:…
	names   []string
	config  config
	os      string
	arch    string
	created time.Time
	layers  []string
	layer   string // ID of its top layer's directory
	size    int64
}

// imageConfig is the configuration document of an image (OCI image configuration).
type imageConfig struct {
	Architecture string    `json:"architecture"`
	Config       config    `json:"config"`
	Created      time.Time `json:"created"`
	OS           string    `json:"os"`
	RootFS       struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// AddImage puts an image in and returns its ID.
func (d *Daemon) AddImage(i Image) (string, error) {
	var c imageConfig
	c.OS, c.Architecture, c.Created, c.RootFS.Type = i.OS, i.Arch, time.Unix(0, 0).UTC(), "layers"
	if c.OS == "" {
		c.OS = "linux"
	}
	if c.Architecture == "" {
		c.Architecture = "amd64"
	}
	c.Config = config{Env: i.Env, Labels: i.Labels, User: i.User, Entrypoint: i.Entrypoint, Cmd: i.Cmd, WorkingDir: i.WorkingDir}
	for _, v := range i.Volumes {
		c.Config.Volumes = union(c.Config.Volumes, map[string]struct{}{v: {}})
	}
	if len(i.Healthy) > 0 {
		c.Config.Healthcheck = &healthcheck{Test: i.Healthy}
	}
	sum := sha256.Sum256([]byte("layer of " + i.Name))
	c.RootFS.DiffIDs = []string{"sha256:" + hex.EncodeToString(sum[:])}
	doc, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("fake daemon: image %s: %w", i.Name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keepImage(doc, c, []string{i.Name}, 1<<20).id, nil
}

func (d *Daemon) keepImage(doc []byte, c imageConfig, names []string, size int64) *image {
	sum := sha256.Sum256(doc)
	id := "sha256:" + hex.EncodeToString(sum[:])
	for _, other := range d.images { // a name belongs to the last image that took it
		other.names = slices.DeleteFunc(other.names, func(n string) bool { return slices.Contains(names, n) })
	}
	i := slices.IndexFunc(d.images, func(o *image) bool { return o.id == id })
	if i < 0 {
		d.images = append(d.images, &image{id: id, config: c.Config, os: c.OS, arch: c.Architecture, created: c.Created, layers: c.RootFS.DiffIDs, layer: d.newID(), size: size})
		i = len(d.images) - 1
	}
	d.images[i].names = append(d.images[i].names, names...)
	return d.images[i]
}

// findImage resolves a name, with or without its tag, an ID, or an unambiguous beginning of one.
func (d *Daemon) findImage(ref string) (*image, bool) {
	for _, i := range d.images {
		if i.id == ref || slices.Contains(i.names, ref) || slices.Contains(i.names, ref+":latest") {
			return i, true
		}
	}
	var found *image
	for _, i := range d.images {
		if hexa := strings.TrimPrefix(ref, "sha256:"); hexa != "" && strings.HasPrefix(i.id, "sha256:"+hexa) {
			if found != nil {
				return nil, false
			}
			found = i
		}
	}
	return found, found != nil
}

// tagged adds the tag a name without one means.
func tagged(ref string) string {
	if strings.Contains(ref[strings.LastIndex(ref, "/")+1:], ":") {
		return ref
	}
	return ref + ":latest"
}

func noImage(ref string) reply {
	return refusal(http.StatusNotFound, "no such image: %s: No such image: %s", ref, tagged(ref))
}

func noImageToRun(ref string) reply {
	return refusal(http.StatusNotFound, "No such image: %s", tagged(ref))
}

func (d *Daemon) imageList(*exchange) reply {
	out := []imageEntry{}
	for n := len(d.images) - 1; n >= 0; n-- {
		i := d.images[n]
		e := imageEntry{Containers: -1, Created: i.created.Unix(), Id: i.id, Labels: i.config.Labels, RepoTags: i.names, SharedSize: -1, Size: i.size}
		if d.engine.atLeast(42) {
			e.RepoDigests = []string{}
		}
		if len(e.RepoTags) == 0 {
			e.RepoTags, e.RepoDigests = []string{"<none>:<none>"}, []string{"<none>@<none>"}
		}
		if !d.engine.atLeast(44) {
			e.VirtualSize = &i.size
		}
		out = append(out, e)
	}
	return jsonReply(http.StatusOK, out)
}

func (d *Daemon) imageInspect(x *exchange) reply {
	i, ok := d.findImage(x.object)
	if !ok {
		return noImage(x.object)
	}
	r := imageReply{
		Id: i.id, RepoTags: append([]string{}, i.names...), RepoDigests: []string{}, Created: stamp(i.created), Config: i.config,
		Architecture: i.arch, Os: i.os, Size: i.size,
	}
	if !d.engine.atLeast(44) {
		r.VirtualSize = &i.size
	}
	if !d.engine.atLeast(45) {
		r.Container, r.ContainerConfig = new(string), &config{}
	}
	dir := d.engine.RootDir + "/" + d.engine.StorageDriver + "/" + i.layer
	r.GraphDriver = graphDriver{Name: d.engine.StorageDriver, Data: map[string]string{"MergedDir": dir + "/merged", "UpperDir": dir + "/diff", "WorkDir": dir + "/work"}}
	r.RootFS.Type, r.RootFS.Layers = "layers", i.layers
	r.Metadata.LastTagTime = stamp(time.Time{})
	return jsonReply(http.StatusOK, r)
}

func (d *Daemon) imageRemove(x *exchange) reply {
	i, ok := d.findImage(x.object)
	if !ok {
		return refusal(http.StatusNotFound, "No such image: %s", tagged(x.object))
	}
	for _, c := range d.containers {
		if c.image == i && !x.flag("force") {
			return refusal(http.StatusConflict, "conflict: unable to delete %s (must be forced) - container %s is using its referenced image %s", x.object, c.id[:12], i.id[7:19])
		}
	}
	gone := []map[string]string{}
	for _, n := range i.names {
		gone = append(gone, map[string]string{"Untagged": n})
		d.emit(d.world, event{Status: "untag", ID: i.id, Type: "image", Action: "untag", Actor: eventActor{i.id, map[string]string{"name": i.id}}})
	}
	d.images = slices.DeleteFunc(d.images, func(o *image) bool { return o == i })
	d.emit(d.world, event{Status: "delete", ID: i.id, Type: "image", Action: "delete", Actor: eventActor{i.id, map[string]string{"name": i.id}}})
	return jsonReply(http.StatusOK, append(gone, map[string]string{"Deleted": i.id}))
}
