package fakedaemon

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"time"
)

// The fake has no file systems: every path is there, a file of five bytes.
const copied = "fake\n"

func (d *Daemon) pathStat(x *exchange) http.Header {
	b, err := json.Marshal(map[string]any{
		"name": path.Base(x.r.URL.Query().Get("path")), "size": len(copied), "mode": 0o644, "mtime": stamp(time.Unix(0, 0)), "linkTarget": "",
	})
	if err != nil {
		panic(err) // texts and numbers
	}
	return http.Header{"X-Docker-Container-Path-Stat": {base64.StdEncoding.EncodeToString(b)}}
}

func (d *Daemon) copyStat(x *exchange) reply {
	if _, no := x.target(); no != nil {
		return *no
	}
	return reply{status: http.StatusOK, header: d.pathStat(x)}
}

func (d *Daemon) copyFrom(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	d.emit(c.w, c.event("archive-path", nil))
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	err := t.WriteHeader(&tar.Header{Name: path.Base(x.r.URL.Query().Get("path")), Mode: 0o644, Size: int64(len(copied))})
	if err == nil {
		_, err = t.Write([]byte(copied))
	}
	if err == nil {
		err = t.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("fake daemon's own archive: %v", err))
	}
	header := d.pathStat(x)
	return reply{status: http.StatusOK, flow: func(s *stream) {
		s.open(reply{status: http.StatusOK, media: "application/x-tar", header: header})
		if s.send(b.Bytes()) == nil {
			s.end()
		}
	}}
}

func (d *Daemon) copyTo(x *exchange) reply {
	c, no := x.target()
	if no != nil {
		return *no
	}
	d.emit(c.w, c.event("extract-to-dir", nil))
	return done(http.StatusOK)
}
