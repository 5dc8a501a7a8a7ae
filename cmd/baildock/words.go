package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/projections"
)

// A shell waits while words are looked up: so long at most, and so many.
const (
	wordsPatience = time.Second
	maxWords      = 200
)

// wordsCommand answers the completion scripts: what may stand where the last word stands. It says nothing
// of what goes wrong, because whoever asked only pressed a key.
func wordsCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:   "words",
		Hidden: true,
		Action: func(c *cli.Context) error {
			typed := p.tail
			if len(typed) == 0 {
				typed = []string{""}
			}
			words := p.complete(c, typed)
			if len(words) == 0 {
				return verdict(exitFailed)
			}
			return p.printf("%s\n", strings.Join(words, "\n"))
		},
	}
}

// place is where the last word of a command line stands.
type place struct {
	verbs []string
	cmd   *cli.Command // the last verb; nil: none yet
	known []*cli.Command
	args  int      // arguments before it
	flag  cli.Flag // whose value it is; nil: it is none
	given map[string]string
	ended bool // behind `--`, or a verb that is none: nothing of ours stands there
}

func find(app *cli.App, typed []string) place {
	at := place{known: app.Commands, given: map[string]string{}}
	for _, w := range typed[:len(typed)-1] {
		if at.flag != nil {
			at.given[at.flag.Names()[0]], at.flag = w, nil
			continue
		}
		switch {
		case w == "--":
			at.ended = true
			return at
		case len(w) > 1 && w[0] == '-':
			name, value, given := strings.Cut(strings.TrimLeft(w, "-"), "=")
			f := findFlag(at.flags(app), name)
			if f != nil && given {
				at.given[f.Names()[0]] = value
			} else if f != nil && !isSwitch(f) {
				at.flag = f
			}
		case len(at.known) > 0:
			c := findVerb(at.known, w)
			if c == nil {
				at.ended = true
				return at
			}
			at.verbs, at.cmd, at.known = append(at.verbs, w), c, c.Subcommands
		default:
			at.args++
		}
	}
	return at
}

func (at place) flags(app *cli.App) []cli.Flag {
	if at.cmd == nil {
		return app.Flags
	}
	return slices.Concat(at.cmd.Flags, app.Flags)
}

// complete lists what may stand for the last word. Nothing means a file, as far as a shell is concerned.
func (p *program) complete(c *cli.Context, typed []string) []string {
	at, last := find(c.App, typed), typed[len(typed)-1]
	if at.ended {
		return nil
	}
	for _, name := range []string{"home", "ledger"} {
		if value := at.given[name]; value != "" {
			if err := c.Set(name, value); err != nil {
				return nil
			}
		}
	}
	switch {
	case at.flag != nil:
		return p.values(c, at, at.flag.Names()[0], last)
	case strings.HasPrefix(last, "-"):
		if name, value, given := strings.Cut(strings.TrimLeft(last, "-"), "="); given {
			var words []string
			for _, w := range p.values(c, at, name, value) {
				words = append(words, "--"+name+"="+w)
			}
			return words
		}
		var words []string
		for _, f := range at.flags(c.App) {
			words = append(words, "--"+f.Names()[0])
		}
		return beginning(words, last)
	case len(at.known) > 0:
		return beginning(verbNames(at.known), last)
	}
	return p.arguments(c, at, last)
}

func beginning(words []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
}

// arguments lists what may stand for an argument, by how the verb's usage names it.
func (p *program) arguments(c *cli.Context, at place, last string) []string {
	names := strings.Fields(at.cmd.ArgsUsage)
	if len(names) == 0 {
		return nil
	}
	name := strings.Trim(names[min(at.args, len(names)-1)], "[]")
	name, repeats := strings.CutSuffix(name, "…")
	if at.args >= len(names) && !repeats && !strings.HasSuffix(names[0], "…") {
		return nil
	}
	if strings.HasSuffix(names[0], "…") {
		name = strings.TrimSuffix(names[0], "…")
	}
	switch {
	case name == "ATTEMPT":
		return p.named(c, projections.AttemptNames, last)
	case name == "ID" && at.verbs[0] == "change":
		return p.named(c, projections.ChangeNames, last)
	case name == "P":
		return p.named(c, projections.PolicyNames, last)
	case name == "STREAM":
		return p.streams(c, last)
	case name == "SHELL":
		return beginning([]string{"bash", "fish", "zsh"}, last)
	case strings.ToLower(name) == name:
		return beginning(strings.Split(name, "|"), last)
	}
	return nil
}

// viewVerbs are the verbs that ask one view.
var viewVerbs = map[string]projections.View{
	"query attempts": projections.AttemptsView, "query custody": projections.CustodyView, "query admissions": projections.AdmissionsView,
	"query runtimes": projections.RuntimesView, "query qualifications": projections.QualificationsView, "query timeline": projections.TimelineView,
	"change list": projections.ChangesView,
}

// values lists what may stand for a flag's value.
func (p *program) values(c *cli.Context, at place, flag, last string) []string {
	verb := strings.Join(at.verbs, " ")
	v, asks := viewVerbs[verb]
	switch words := v.Values(projections.Filterable(flag)); {
	case len(words) > 0:
		return beginning(words, last)
	case asks && flag == "sort":
		var words []string
		for _, column := range v.Columns() {
			words = append(words, column, column+":desc")
		}
		return beginning(words, last)
	case flag == "format" && (asks || verb == "query outcomes" || verb == "query sql"):
		return beginning(formats, last)
	case flag == "attempt" && (asks || verb == "check register"):
		return p.named(c, projections.AttemptNames, last)
	case flag == "change":
		return p.named(c, projections.ChangeNames, last)
	case flag == "policy" && (asks || verb == "change context"):
		return p.named(c, projections.PolicyNames, last)
	case flag == "stream":
		return p.streams(c, last)
	}
	return nil
}

// streams lists the product's streams that can be named.
func (p *program) streams(c *cli.Context, last string) []string {
	words := beginning([]string{"ledger"}, last)
	for _, s := range []struct {
		prefix string
		of     projections.Named
	}{{"attempt-", projections.AttemptNames}, {"change-", projections.ChangeNames}, {"policy-", projections.PolicyNames}} {
		id, whole := strings.CutPrefix(last, s.prefix)
		switch {
		case whole:
			for _, name := range p.named(c, s.of, id) {
				if name != projections.Last {
					words = append(words, s.prefix+name)
				}
			}
		case strings.HasPrefix(s.prefix, last):
			words = append(words, s.prefix)
		}
	}
	return words
}

// named lists the IDs of a kind that begin so, from the projections, which catch up first as long as that
// takes no time worth mentioning. Without a home there are none.
func (p *program) named(c *cli.Context, of projections.Named, prefix string) []string {
	ctx, stop := context.WithTimeout(c.Context, wordsPatience)
	defer stop()
	var words []string
	if of == projections.AttemptNames && prefix != "" {
		words = beginning([]string{projections.Last}, prefix)
	}
	err := readHome(c, func(h *home) error {
		pr, err := projections.Open(ctx, h.path(projectionsName), h.store, nil)
		if err != nil {
			return err
		}
		found, err := pr.Names(ctx, of, prefix, maxWords)
		words = append(words, found...)
		return errors.Join(err, pr.Close())
	})
	if err != nil {
		return nil
	}
	return words
}
