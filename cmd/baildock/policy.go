package main

import (
	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
)

func policyCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "policy",
		Usage: "policies, whose epochs contexts name",
		Subcommands: []*cli.Command{
			{Name: "show", Usage: "show a policy's epoch", ArgsUsage: "[P]", Action: p.policyShow},
			{Name: "advance", Usage: "begin the next epoch, or open the policy: contexts of earlier ones are out of date", ArgsUsage: "[P]", Action: p.policyAdvance},
		},
	}
}

// policyArgument is the policy a verb names, or the default.
func (p *program) policyArgument() (evidence.PolicyID, error) {
	if len(p.args) == 0 && len(p.tail) == 0 {
		return evidence.DefaultPolicy, nil
	}
	args, err := p.positional("P")
	if err != nil {
		return "", err
	}
	id, err := evidence.ParsePolicyID(args[0])
	if err != nil {
		return "", usage("%w", err)
	}
	return id, nil
}

func (p *program) policyShow(c *cli.Context) error {
	id, err := p.policyArgument()
	if err != nil {
		return err
	}
	return readHome(c, func(h *home) error {
		now, err := h.journal.Policy(c.Context, id)
		if err != nil {
			return err
		}
		return p.showPolicy(id, now.Fold.Epoch)
	})
}

func (p *program) policyAdvance(c *cli.Context) error {
	id, err := p.policyArgument()
	if err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		epoch, err := h.journal.AdvanceEpoch(c.Context, id)
		if err != nil {
			return err
		}
		return p.showPolicy(id, epoch)
	})
}

func (p *program) showPolicy(id evidence.PolicyID, epoch uint64) error {
	if p.ui.json {
		return p.ui.printJSON(struct {
			Policy evidence.PolicyID `json:"policy"`
			Epoch  uint64            `json:"epoch"`
		}{id, epoch})
	}
	return p.printf("policy %s, epoch %d\n", id, epoch)
}
