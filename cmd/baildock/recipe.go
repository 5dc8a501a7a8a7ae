package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
)

func recipeCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "recipe",
		Usage: "write and check recipes: everything that decides how a command runs",
		Subcommands: []*cli.Command{
			{
				Name:      "new",
				Usage:     "write a recipe file with a fresh nonce",
				ArgsUsage: "-- ARGV…",
				Flags:     append(commandFlags(), socketFlag(), &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`, which must not exist; stdout when omitted"}),
				Action:    p.recipeNew,
			},
			{Name: "check", Usage: "check a recipe file", ArgsUsage: "FILE", Action: p.recipeCheck},
			{Name: "digest", Usage: "print the digest of a recipe file", ArgsUsage: "FILE", Action: p.recipeDigest},
		},
	}
}

func (p *program) recipeNew(c *cli.Context) error {
	cmd, err := commandFromFlags(c, p, p.resolver(c))
	if err != nil {
		return err
	}
	b, err := encodeJSON(cmd.file(), "  ")
	if err != nil {
		return err
	}
	path := c.String("output")
	if path == "" {
		_, err := p.ui.out.Write(b)
		return err
	}
	if err := createFile(path, b); err != nil {
		return err
	}
	if p.ui.json {
		return p.ui.printJSON(recipeView(cmd))
	}
	return p.printf("%s\n", cmd.recipe.Digest())
}

func (p *program) recipeCheck(*cli.Context) error {
	cmd, err := p.recipeArgument()
	if err != nil {
		return err
	}
	if p.ui.json {
		return p.ui.printJSON(recipeView(cmd))
	}
	return writeRecipe(p.ui.out, cmd)
}

func (p *program) recipeDigest(*cli.Context) error {
	cmd, err := p.recipeArgument()
	if err != nil {
		return err
	}
	if p.ui.json {
		return p.ui.printJSON(recipeView(cmd))
	}
	return p.printf("%s\n", cmd.recipe.Digest())
}

func (p *program) recipeArgument() (command, error) {
	args, err := p.positional("FILE")
	if err != nil {
		return command{}, err
	}
	return loadRecipe(args[0])
}

type recipeJSON struct {
	Digest      evidence.RecipeDigest      `json:"digest"`
	Environment evidence.EnvironmentDigest `json:"environment"`
	Profile     evidence.ProfileDigest     `json:"profile"`
	Recipe      recipeFile                 `json:"recipe"`
}

func recipeView(cmd command) recipeJSON {
	return recipeJSON{
		Digest: cmd.recipe.Digest(), Environment: cmd.env.Digest(),
		Profile: profileOf(cmd.recipe).Digest(), Recipe: cmd.file(),
	}
}

// profileOf is the table of a checked recipe.
func profileOf(r evidence.Recipe) evidence.Profile {
	profile, err := r.Table()
	if err != nil {
		panic(fmt.Sprintf("a checked recipe has an unknown profile: %v", err))
	}
	return profile
}

func writeRecipe(w io.Writer, cmd command) error {
	f := cmd.file()
	nonce := "none: the digest can be guessed, and the recipe can't be withheld"
	if f.Nonce != nil {
		nonce = f.Nonce.String()
	}
	toolchain := "none bound"
	if f.Toolchain != nil {
		toolchain = f.Toolchain.String() + " (bound, not discovered)"
	}
	_, err := fmt.Fprintf(w, `recipe       %s
environment  %s
profile      %s
image        %s
command      %s
toolchain    %s
limits       timeout %s, output %s, memory %s, scratch %s, pids %d, cpus %s
nonce        %s
`, cmd.recipe.Digest(), cmd.env.Digest(), f.Profile, f.Image, visible(fmt.Sprintf("%q", f.Argv)), toolchain,
		f.Limits.Timeout, f.Limits.Output, f.Limits.Memory, f.Limits.Scratch, f.Limits.PIDs, f.Limits.CPUs, nonce)
	return err
}
