package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/source"
)

func changeCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "change",
		Usage: "proposed changes: what attempts are bound to",
		Subcommands: []*cli.Command{
			{
				Name: "open", Usage: "open a change on a repository", ArgsUsage: "ID",
				Flags:  []cli.Flag{&cli.StringFlag{Name: "repository", Usage: "local git repository `PATH`"}},
				Action: p.changeOpen,
			},
			{
				Name: "version", Usage: "propose a revision as the change's next version", ArgsUsage: "ID",
				Flags:  []cli.Flag{&cli.StringFlag{Name: "revision", Usage: "`REV` in the change's repository"}},
				Action: p.changeVersion,
			},
			{
				Name: "context", Usage: "say what must be shown for the present version", ArgsUsage: "ID",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "recipe", Usage: "recipe `FILE` that must succeed"},
					&cli.StringFlag{Name: "policy", Value: string(evidence.DefaultPolicy), Usage: "policy `ID`"},
					acceptFlag(),
				},
				Action: p.changeContext,
			},
			{Name: "show", Usage: "show a change", ArgsUsage: "ID", Action: p.changeShow},
		},
	}
}

// changeArgument is the one change a verb names.
func (p *program) changeArgument() (evidence.ChangeID, error) {
	args, err := p.positional("ID")
	if err != nil {
		return "", err
	}
	id, err := evidence.ParseChangeID(args[0])
	if err != nil {
		return "", usage("%w", err)
	}
	return id, nil
}

func (p *program) changeOpen(c *cli.Context) error {
	id, err := p.changeArgument()
	if err != nil {
		return err
	}
	named := c.String("repository")
	if named == "" {
		return usage("--repository is missing")
	}
	// HEAD shows that it is a repository that can be read.
	subject, err := source.Resolve(c.Context, source.Locator{Path: named, Rev: "HEAD"})
	if err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		repository, err := h.repository(subject.Path)
		if err != nil {
			return err
		}
		if err := h.journal.OpenChange(c.Context, id, repository); err != nil {
			return err
		}
		return p.showChange(c, h, id)
	})
}

func (p *program) changeVersion(c *cli.Context) error {
	id, err := p.changeArgument()
	if err != nil {
		return err
	}
	rev := c.String("revision")
	if rev == "" {
		return usage("--revision is missing")
	}
	return withHome(c, actorOperator, func(h *home) error {
		ch, err := h.journal.Change(c.Context, id)
		if err != nil {
			return err
		}
		path, err := h.locate(ch.Fold.Opened.Repository)
		if err != nil {
			return err
		}
		subject, err := source.Resolve(c.Context, source.Locator{Path: path, Rev: rev})
		if err != nil {
			return err
		}
		if _, err := h.journal.AddVersion(c.Context, id, subject.Revision); err != nil {
			return err
		}
		return p.showChange(c, h, id)
	})
}

func (p *program) changeContext(c *cli.Context) error {
	id, err := p.changeArgument()
	if err != nil {
		return err
	}
	if c.String("recipe") == "" {
		return usage("--recipe is missing")
	}
	policy, err := evidence.ParsePolicyID(c.String("policy"))
	if err != nil {
		return usage("--policy: %w", err)
	}
	reductions, err := accepted(c)
	if err != nil {
		return err
	}
	cmd, err := loadRecipe(c.String("recipe"))
	if err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		_, err := h.journal.SetContext(c.Context, id, journal.Requirement{
			Recipe: &cmd.recipe, Environment: &cmd.env, Reductions: reductions, Policy: policy,
		})
		if err != nil {
			return err
		}
		return p.showChange(c, h, id)
	})
}

func (p *program) changeShow(c *cli.Context) error {
	id, err := p.changeArgument()
	if err != nil {
		return err
	}
	return readHome(c, func(h *home) error { return p.showChange(c, h, id) })
}

type changeView struct {
	Change     evidence.ChangeID       `json:"change"`
	Repository evidence.RepositoryID   `json:"repository"`
	Version    uint64                  `json:"version"` // 0: none was added
	Revision   string                  `json:"revision,omitempty"`
	Context    *evidence.ContextDigest `json:"context"`
	Policy     evidence.PolicyID       `json:"policy,omitempty"`
	Epoch      uint64                  `json:"epoch,omitempty"`
	Attempts   []evidence.AttemptID    `json:"attempts"`
}

func (p *program) showChange(c *cli.Context, h *home, id evidence.ChangeID) error {
	ch, err := h.journal.Change(c.Context, id)
	if err != nil {
		return err
	}
	f := ch.Fold
	v := changeView{Change: id, Repository: f.Opened.Repository, Version: f.Version, Revision: f.Revision, Attempts: []evidence.AttemptID{}}
	if f.Context != nil {
		v.Context, v.Policy, v.Epoch = &f.ContextDigest, f.Context.Policy, f.Context.Epoch
	}
	var names []string
	for _, o := range f.Openings {
		v.Attempts = append(v.Attempts, o.Attempt)
		names = append(names, string(o.Attempt))
	}
	if p.ui.json {
		return p.ui.printJSON(v)
	}
	text := fmt.Sprintf("change %s, repository %s\n", v.Change, v.Repository)
	if v.Version > 0 {
		text += fmt.Sprintf("  version  %d at %s\n", v.Version, v.Revision)
	}
	if v.Context != nil {
		text += fmt.Sprintf("  context  %s under policy %s epoch %d\n", v.Context, v.Policy, v.Epoch)
	}
	if len(names) > 0 {
		text += "  attempts " + strings.Join(names, " ") + "\n"
	}
	return p.printf("%s", text)
}

// repositories maps repository IDs to where they lie: a locator, which decides nothing.
type repositories map[string]string // ID in hex → absolute path

const repositoriesName = "repositories.json"

func (h *home) repositories() (repositories, error) {
	b, err := os.ReadFile(h.path(repositoriesName))
	if errors.Is(err, fs.ErrNotExist) {
		return repositories{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read where repositories lie: %w", err)
	}
	var r repositories
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fail(exitUsage, "home_damaged", "%q can't be read: %w", h.path(repositoriesName), err)
	}
	return r, nil
}

// repository is the ID of the repository at a path, given now if it has none yet.
func (h *home) repository(path string) (evidence.RepositoryID, error) {
	known, err := h.repositories()
	if err != nil {
		return evidence.RepositoryID{}, err
	}
	for text, at := range known {
		var id evidence.RepositoryID
		if at == path && id.UnmarshalText([]byte(text)) == nil {
			return id, nil
		}
	}
	id, err := newNonce()
	if err != nil {
		return id, err
	}
	known[id.String()] = path
	b, err := encodeJSON(known, "  ")
	if err != nil {
		return id, err
	}
	return id, replaceFile(h.path(repositoriesName), 0o600, b)
}

// locate is where a repository lies.
func (h *home) locate(id evidence.RepositoryID) (string, error) {
	known, err := h.repositories()
	if err != nil {
		return "", err
	}
	path, ok := known[id.String()]
	if !ok || !filepath.IsAbs(path) {
		return "", fail(exitUsage, "repository_unknown", "this home does not know where repository %s lies", id).
			hint("name it: --repository PATH")
	}
	return path, nil
}
