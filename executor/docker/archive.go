package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/baildock/baildock/evidence"
)

// Archive is an image made from local files, as a docker-archive for Driver.ImageLoad. The same
// files give the same bytes and the same image ID on every machine of an architecture: entries
// are sorted, times are zero, owners are 0:0, modes 0644 or 0755, `created` is a constant. The
// image has one layer, no environment, no command, no labels and no parent.
//
// The ID is the SHA-256 of the configuration, which a daemon's classic image store uses; one that
// keeps images in containerd names them otherwise, so what ImageLoad returns is what counts.
type Archive struct {
	name    string
	entries []archiveEntry
	layer   layerFacts
	config  []byte
}

// layerFacts are what a pass over the layer finds.
type layerFacts struct {
	diffID [sha256.Size]byte
	size   int64
}

// archiveCreated is the creation time of every image made here: a real one would make every ID new.
const archiveCreated = "1970-01-01T00:00:00Z"

// BuildArchive lists the files, checks them and reads them once for the image's ID. They are read
// again by WriteTo and must not change in between. name is repo or repo:tag; without a tag it is
// `latest`. It fails with *ArchiveRefusedError if no image can be made of that.
func BuildArchive(ctx context.Context, name string, files []ArchiveFile) (*Archive, error) {
	return buildArchive(ctx, name, files, runtime.GOARCH)
}

func buildArchive(ctx context.Context, name string, files []ArchiveFile, architecture string) (*Archive, error) {
	name, err := archiveName(name)
	if err != nil {
		return nil, err
	}
	a := &Archive{name: name}
	if a.entries, err = planArchive(ctx, files); err != nil {
		return nil, err
	}
	if a.layer, err = a.writeLayer(ctx, io.Discard); err != nil {
		return nil, err
	}
	a.config, err = json.Marshal(imageConfig{
		Architecture: architecture,
		Created:      archiveCreated,
		History:      []imageHistory{{Created: archiveCreated, CreatedBy: "baildock image make"}},
		OS:           "linux",
		RootFS:       imageRootFS{Type: "layers", DiffIDs: []string{"sha256:" + hex.EncodeToString(a.layer.diffID[:])}},
	})
	return a, err
}

// imageConfig is the image's configuration (OCI image-spec, config.md), in a fixed order.
type imageConfig struct {
	Architecture string         `json:"architecture"`
	Config       struct{}       `json:"config"`
	Created      string         `json:"created"`
	History      []imageHistory `json:"history"`
	OS           string         `json:"os"`
	RootFS       imageRootFS    `json:"rootfs"`
}

type imageHistory struct {
	Created   string `json:"created"`
	CreatedBy string `json:"created_by"`
}

type imageRootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// archiveManifest is the `manifest.json` of a docker-archive.
type archiveManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Name is the name the image is tagged with, `repo:tag`.
func (a *Archive) Name() string { return a.name }

// ID is the SHA-256 of the image's configuration.
func (a *Archive) ID() evidence.ImageID { return sha256.Sum256(a.config) }

// Size is the number of bytes Write writes.
func (a *Archive) Size() int64 {
	total := 2 * tarBlock // the end
	for _, n := range []int64{a.layer.size, int64(len(a.config)), int64(len(a.manifest()))} {
		total += tarBlock + padded(n)
	}
	return total
}

const tarBlock int64 = 512

func padded(n int64) int64 { return (n + tarBlock - 1) / tarBlock * tarBlock }

func (a *Archive) layerName() string {
	return hex.EncodeToString(a.layer.diffID[:]) + "/layer.tar"
}

func (a *Archive) manifest() []byte {
	b, err := json.Marshal([]archiveManifest{{
		Config: a.ID().Hex() + ".json", RepoTags: []string{a.name}, Layers: []string{a.layerName()},
	}})
	if err != nil {
		panic(fmt.Sprintf("docker: a manifest of three texts doesn't encode: %v", err))
	}
	return b
}

// Write streams the archive. The layer comes first and the manifest last, so that a daemon has
// nothing to load unless every file was, by its bytes, what BuildArchive read. A file that
// changed fails with *ArchiveRefusedError.
func (a *Archive) Write(ctx context.Context, w io.Writer) error {
	out := tar.NewWriter(w)
	if err := out.WriteHeader(archiveHeader(a.layerName(), 0o644, a.layer.size)); err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	layer, err := a.writeLayer(ctx, out)
	if err != nil {
		return err
	}
	if layer != a.layer {
		return refuseArchive(ArchiveChanged, "", "the files changed while the image was made; try again when nothing writes there")
	}
	for name, b := range orderedFiles(a) {
		if err := out.WriteHeader(archiveHeader(name, 0o644, int64(len(b)))); err != nil {
			return fmt.Errorf("write image archive: %w", err)
		}
		if _, err := out.Write(b); err != nil {
			return fmt.Errorf("write image archive: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	return nil
}

func orderedFiles(a *Archive) func(yield func(string, []byte) bool) {
	return func(yield func(string, []byte) bool) {
		_ = yield(a.ID().Hex()+".json", a.config) && yield("manifest.json", a.manifest())
	}
}

// archiveHeader is everything a tar entry says; nothing of the machine gets in.
func archiveHeader(name string, mode, size int64) *tar.Header {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size}
	if size < 0 {
		h.Typeflag, h.Name, h.Size = tar.TypeDir, name+"/", 0
	}
	return h
}

// writeLayer writes the layer's tar and measures it.
func (a *Archive) writeLayer(ctx context.Context, w io.Writer) (layerFacts, error) {
	hash := sha256.New()
	counted := &countingWriter{w: io.MultiWriter(hash, w)}
	out := tar.NewWriter(counted)
	buf := make([]byte, archiveBuffer)
	for _, e := range a.entries {
		if err := ctx.Err(); err != nil {
			return layerFacts{}, err
		}
		if err := out.WriteHeader(archiveHeader(e.path, e.mode, e.size)); err != nil {
			return layerFacts{}, fmt.Errorf("write image layer: %w", err)
		}
		if e.size < 0 {
			continue
		}
		if err := e.copyTo(ctx, out, buf); err != nil {
			return layerFacts{}, err
		}
	}
	if err := out.Close(); err != nil {
		return layerFacts{}, fmt.Errorf("write image layer: %w", err)
	}
	return layerFacts{diffID: [sha256.Size]byte(hash.Sum(nil)), size: counted.n}, nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
