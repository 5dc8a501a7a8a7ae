package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/docker"
)

func imageCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "image",
		Usage: "images, made from local files; nothing is ever pulled",
		Subcommands: []*cli.Command{
			{
				Name:      "make",
				Usage:     "make an image of local files and load it; the last line is its ID",
				ArgsUsage: "NAME",
				Flags: []cli.Flag{
					&cli.StringSliceFlag{Name: "add", Usage: "put a local file or directory into the image: `HOST:DEST`; repeatable"},
					socketFlag(),
				},
				Action: p.imageMake,
			},
			{Name: "list", Usage: "list the daemon's images", Flags: []cli.Flag{socketFlag()}, Action: p.imageList},
		},
	}
}

func (p *program) imageMake(c *cli.Context) (err error) {
	args, err := p.positional("NAME")
	if err != nil {
		return err
	}
	var files []docker.ArchiveFile
	for _, s := range c.StringSlice("add") {
		f, err := docker.ParseArchiveFile(s)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return usage("--add is missing").hint("name a local file and its place in the image: --add ./tool:/bin/tool")
	}
	archive, err := docker.BuildArchive(c.Context, args[0], files)
	if err != nil {
		return err
	}
	d, err := p.openDaemon(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	id, err := p.load(c, d, archive)
	if err != nil {
		return err
	}
	if p.ui.json {
		return p.ui.printJSON(struct {
			Name string           `json:"name"`
			ID   evidence.ImageID `json:"id"`
		}{archive.Name(), id})
	}
	return p.printf("%s\n%s\n", archive.Name(), id)
}

// load streams the archive to the daemon, with progress.
func (p *program) load(c *cli.Context, d *docker.Driver, archive *docker.Archive) (evidence.ImageID, error) {
	tell := p.ui.bar("loading " + archive.Name())
	id, err := loadArchive(c.Context, d, archive, &counted{total: uint64(archive.Size()), tell: tell})
	var fault *executor.Fault
	if errors.As(err, &fault) {
		return id, daemonFailure(c, err)
	}
	return id, err
}

// loadArchive streams the archive to the daemon and, for progress, to watch.
func loadArchive(ctx context.Context, d *docker.Driver, archive *docker.Archive, watch io.Writer) (evidence.ImageID, error) {
	out, in := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := archive.Write(ctx, io.MultiWriter(in, watch))
		in.CloseWithError(err)
		written <- err
	}()
	id, err := d.ImageLoad(ctx, out, archive.Name())
	out.CloseWithError(io.ErrClosedPipe) // the writer must not wait for a daemon that stopped reading
	writeErr := <-written
	var refused *docker.ArchiveRefusedError
	if errors.As(writeErr, &refused) {
		return id, writeErr // it is why the daemon got half an archive
	}
	// A daemon that loaded the image may leave the padding at the archive's end unread.
	if err == nil && errors.Is(writeErr, io.ErrClosedPipe) {
		writeErr = nil
	}
	return id, errors.Join(err, writeErr)
}

// counted tells how many bytes went by.
type counted struct {
	done, total uint64
	tell        func(done, total uint64)
}

func (w *counted) Write(b []byte) (int, error) {
	w.done += uint64(len(b))
	w.tell(w.done, w.total)
	return len(b), nil
}

type imageRow struct {
	ID    evidence.ImageID `json:"id"`
	Names []string         `json:"names"`
	Size  int64            `json:"size"`
}

func (p *program) imageList(c *cli.Context) (err error) {
	if _, err := p.positional(); err != nil {
		return err
	}
	d, err := p.openDaemon(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	images, err := d.ImageList(c.Context)
	if err != nil {
		return daemonFailure(c, err)
	}
	rows := make([]imageRow, 0, len(images))
	for _, i := range images {
		rows = append(rows, imageRow{ID: i.ID, Names: append([]string{}, i.Names...), Size: i.Size})
	}
	if p.ui.json {
		return p.ui.printJSON(rows)
	}
	if len(rows) == 0 {
		p.note("no images; baildock image make makes one")
		return nil
	}
	w := tabwriter.NewWriter(p.ui.out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\n", r.ID, visible(strings.Join(r.Names, " ")), r.Size)
	}
	return w.Flush()
}
