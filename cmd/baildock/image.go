package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
)

func imageCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "image",
		Usage: "images, made from local files; nothing is ever pulled",
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "list the daemon's images", Flags: []cli.Flag{socketFlag()}, Action: p.imageList},
		},
	}
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
