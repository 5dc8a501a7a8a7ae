package fakedaemon

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
)

// archive is a docker-archive as read: what its manifest names, and the digests of its layers.
type archive struct {
	images []archived
	err    error
}

type archived struct {
	doc    []byte
	config imageConfig
	names  []string
	size   int64
}

// readArchive reads the format of docker save: manifest.json lists, for each image, the file of
// its configuration, its names, and the files of its layers, lowest first.
func readArchive(r io.Reader) (*archive, error) {
	type layerFile struct {
		digest string
		size   int64
	}
	docs, layers := map[string][]byte{}, map[string]layerFile{}
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		name := path.Clean(h.Name)
		if path.Ext(name) == ".json" {
			if docs[name], err = io.ReadAll(io.LimitReader(t, maxBody)); err != nil {
				return nil, err
			}
			continue
		}
		sum := sha256.New()
		n, err := io.Copy(sum, t)
		if err != nil {
			return nil, err
		}
		layers[name] = layerFile{"sha256:" + hex.EncodeToString(sum.Sum(nil)), n}
	}
	manifest, ok := docs["manifest.json"]
	if !ok {
		return nil, errors.New("open /var/lib/docker/tmp/docker-import/repositories: no such file or directory")
	}
	var entries []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(manifest, &entries); err != nil {
		return nil, err
	}
	a := &archive{}
	for _, e := range entries {
		i := archived{doc: docs[path.Clean(e.Config)], names: e.RepoTags}
		if i.doc == nil {
			return nil, fmt.Errorf("open /var/lib/docker/tmp/docker-import/%s: no such file or directory", e.Config)
		}
		if err := json.Unmarshal(i.doc, &i.config); err != nil {
			return nil, err
		}
		if len(e.Layers) != len(i.config.RootFS.DiffIDs) {
			return nil, fmt.Errorf("invalid manifest, layers length mismatch: expected %d, got %d", len(i.config.RootFS.DiffIDs), len(e.Layers))
		}
		for n, file := range e.Layers {
			l, ok := layers[path.Clean(file)]
			if !ok {
				return nil, fmt.Errorf("open /var/lib/docker/tmp/docker-import/%s: no such file or directory", file)
			}
			if want := i.config.RootFS.DiffIDs[n]; l.digest != want {
				return nil, fmt.Errorf("invalid diffID for layer %d: expected %q, got %q", n, want, l.digest)
			}
			i.size += l.size
		}
		a.images = append(a.images, i)
	}
	return a, nil
}

// imageLoad answers with progress lines; what is wrong with an archive is one of them.
func (d *Daemon) imageLoad(x *exchange) reply {
	type failure struct {
		ErrorDetail struct {
			Message string `json:"message"`
		} `json:"errorDetail"`
		Error string `json:"error"`
	}
	var lines []any
	if err := x.loaded.err; err != nil {
		f := failure{Error: err.Error()}
		f.ErrorDetail.Message = f.Error
		lines = append(lines, f)
	}
	for _, a := range x.loaded.images {
		i := d.keepImage(a.doc, a.config, a.names, a.size)
		for _, n := range a.names {
			lines = append(lines, map[string]string{"stream": "Loaded image: " + n + "\n"})
			d.emit(d.world, event{Status: "load", ID: i.id, Type: "image", Action: "load", Actor: eventActor{i.id, map[string]string{"name": i.id}}})
		}
		if len(a.names) == 0 {
			lines = append(lines, map[string]string{"stream": "Loaded image ID: " + i.id + "\n"})
		}
	}
	return reply{status: http.StatusOK, media: "application/json", flow: func(s *stream) {
		s.open(reply{status: http.StatusOK, media: "application/json"})
		for _, l := range lines {
			if s.send(jsonReply(http.StatusOK, l).body) != nil {
				return
			}
		}
		s.end()
	}}
}
