package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor/canary"
	"github.com/baildock/baildock/executor/source"
	"github.com/baildock/baildock/projections"
)

func changeCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "change",
		Usage: "proposed changes: what attempts are bound to",
		Subcommands: append([]*cli.Command{
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
					&cli.StringSliceFlag{Name: "require", Usage: "evidence `KIND`: command/v1 or source-paths/v1; what --recipe and --allow-path ask for when omitted"},
					&cli.StringSliceFlag{Name: "allow-path", Usage: "the revision may touch only paths like `GLOB`; repeatable"},
					&cli.BoolFlag{Name: "require-qualified", Usage: "admit only attempts of a qualified runtime"},
					&cli.StringFlag{Name: "policy", Value: string(evidence.DefaultPolicy), Usage: "policy `ID`"},
					acceptFlag(),
				},
				Action: p.changeContext,
			},
			{
				Name: "show", Usage: "show a change", ArgsUsage: "ID",
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "explain", Usage: "with what admission would say now, rule by rule"}},
				Action: p.changeShow,
			},
			viewCommand(p, projections.ChangesView, "list", "list changes, in the order they were opened", nil),
		}, judgeCommands(p)...),
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
	policy, err := evidence.ParsePolicyID(c.String("policy"))
	if err != nil {
		return usage("--policy: %w", err)
	}
	reductions, err := accepted(c)
	if err != nil {
		return err
	}
	r, err := requirementFlags(c)
	if err != nil {
		return err
	}
	r.Reductions, r.Policy = reductions, policy
	return withHome(c, actorOperator, func(h *home) error {
		if _, err := h.journal.SetContext(c.Context, id, r); err != nil {
			return err
		}
		return p.showChange(c, h, id)
	})
}

// requirementFlags reads which evidence a context asks for.
func requirementFlags(c *cli.Context) (journal.Requirement, error) {
	r := journal.Requirement{AllowPaths: c.StringSlice("allow-path"), RequireQualified: c.Bool("require-qualified")}
	if r.RequireQualified {
		corpus := canary.Corpus()
		r.Corpus = &corpus
	}
	for _, g := range r.AllowPaths {
		if err := evidence.CheckGlob(g); err != nil {
			return r, usage("--allow-path: %w", err)
		}
	}
	recipe, kinds := c.String("recipe"), c.StringSlice("require")
	for _, k := range kinds {
		switch {
		case k != evidence.EvidenceCommand && k != evidence.EvidencePaths:
			return r, usage("--require %q is neither %s nor %s", k, evidence.EvidenceCommand, evidence.EvidencePaths)
		case k == evidence.EvidenceCommand && recipe == "":
			return r, usage("--require %s asks for a recipe; --recipe is missing", k)
		case k == evidence.EvidencePaths && len(r.AllowPaths) == 0:
			return r, usage("--require %s asks for allowed paths; --allow-path is missing", k)
		}
	}
	switch {
	case recipe == "" && len(r.AllowPaths) == 0:
		return r, usage("--recipe is missing").hint("name a recipe that must succeed, or paths the revision may touch: --allow-path GLOB")
	case len(kinds) > 0 && recipe != "" && !slices.Contains(kinds, evidence.EvidenceCommand):
		return r, usage("--recipe is given, and --require leaves out %s", evidence.EvidenceCommand)
	case len(kinds) > 0 && len(r.AllowPaths) > 0 && !slices.Contains(kinds, evidence.EvidencePaths):
		return r, usage("--allow-path is given, and --require leaves out %s", evidence.EvidencePaths)
	}
	if recipe == "" {
		return r, nil
	}
	cmd, err := loadRecipe(recipe)
	if err != nil {
		return r, err
	}
	r.Recipe, r.Environment = &cmd.recipe, &cmd.env
	return r, nil
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
	Approved   bool                    `json:"approved"`            // the present context has an approval, which may be void
	Integrated *uint64                 `json:"integrated"`          // the version last integrated
	Admission  *evidence.Decision      `json:"admission,omitempty"` // with --explain: what it would say now
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
	v.Approved = len(f.Approvals) > 0
	if f.Integrated != nil {
		v.Integrated = &f.Integrated.Version
	}
	if c.Bool("explain") {
		d, err := h.journal.Decide(c.Context, id, false)
		if err != nil {
			return err
		}
		v.Admission = &d
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
	if v.Approved {
		text += "  approved yes\n"
	}
	if v.Integrated != nil {
		text += fmt.Sprintf("  integrated version %d\n", *v.Integrated)
	}
	if v.Admission != nil {
		text += decisionText(*v.Admission)
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
