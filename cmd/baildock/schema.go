package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/schemas"
)

func schemaCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "schema",
		Usage:     "list the schemas of everything that is written, or print one",
		ArgsUsage: "[NAME]",
		Action:    p.schema,
	}
}

type schemaView struct {
	Name   string       `json:"name"`
	Kind   schemas.Kind `json:"kind"`
	Digest string       `json:"digest"` // of the text
	About  string       `json:"about"`
	Text   string       `json:"text,omitempty"` // of the one that was named
}

func (p *program) schema(*cli.Context) error {
	if len(p.args) == 0 && !p.cut {
		return p.schemaList()
	}
	args, err := p.positional("NAME")
	if err != nil {
		return err
	}
	s, err := schemas.Find(args[0])
	if err != nil {
		return fail(exitUsage, "schema_not_found", "%w", err)
	}
	if p.ui.json {
		v, err := viewSchema(s)
		if err != nil {
			return err
		}
		v.Text = s.Text
		return p.ui.printJSON([]schemaView{v})
	}
	return p.printf("%s", s.Text)
}

func (p *program) schemaList() error {
	views := []schemaView{}
	for _, s := range append(schemas.CDDL(), schemas.JSON()...) {
		v, err := viewSchema(s)
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	if p.ui.json {
		return p.ui.printJSON(views)
	}
	for _, v := range views {
		if err := p.printf("%-18s %s  %s\n", v.Name, v.Kind, v.About); err != nil {
			return err
		}
	}
	return nil
}

func viewSchema(s schemas.Schema) (schemaView, error) {
	sum := s.Digest()
	v := schemaView{Name: s.Name, Kind: s.Kind, Digest: "sha256:" + hex.EncodeToString(sum[:])}
	if s.Kind == schemas.KindCDDL {
		first, _, _ := strings.Cut(s.Text, "\n")
		v.About = strings.TrimSpace(strings.TrimLeft(first, "; "))
		return v, nil
	}
	var text struct {
		Title string `json:"title"`
	}
	if err := json.Unmarshal([]byte(s.Text), &text); err != nil {
		return v, fmt.Errorf("schema %s: %w", s.Name, err)
	}
	v.About = text.Title
	return v, nil
}
