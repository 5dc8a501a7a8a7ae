package main

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/config"
)

// commandFlags fix a recipe, for `run` and `recipe new` alike.
func commandFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "image", Usage: "local image by `ID|NAME`; a name is resolved and its ID pinned"},
		&cli.BoolFlag{Name: "image-env", Usage: "copy the image's environment entries into the recipe"},
		&cli.StringSliceFlag{Name: "env", Usage: "environment entry `K=V`; repeatable"},
		&cli.StringFlag{Name: "timeout", Value: "60s", Usage: "wall `TIME` of the command, 1ms to 5m"},
		&cli.StringFlag{Name: "memory", Value: "256m", Usage: "memory and swap together, 16m to 4g"},
		&cli.StringFlag{Name: "cpus", Value: "1", Usage: "CPU cores, 0.1 to 4"},
		&cli.StringFlag{Name: "pids", Value: "64", Usage: "processes and threads, 1 to 256"},
		&cli.StringFlag{Name: "scratch", Value: "64m", Usage: "size of the writable /scratch, 1m to 1g"},
		&cli.StringFlag{Name: "output-limit", Value: "256k", Usage: "stdout and stderr kept, together, 256 to 1m"},
		&cli.StringFlag{Name: "toolchain", Usage: "toolchain `DIGEST` to bind; bound, not discovered"},
	}
}

// commandFromFlags makes the recipe. The image is found by the caller's resolver when it is a name
// or when its environment is asked for.
func commandFromFlags(c *cli.Context, p *program, images imageResolver) (command, error) {
	if !p.cut || len(p.tail) == 0 {
		return command{}, usage("the command is missing").hint("put it after --: baildock %s … -- /bin/prog ARG", c.Command.FullName())
	}
	if len(p.args) > 0 {
		if b, err := readBounded(p.args[0], config.MaxFile); err == nil && config.Detect(b) { // req N8
			return command{}, fail(exitUsage, "recipe_contained", "%q configures a contained run, which %s doesn't apply", p.args[0], c.Command.FullName()).
				hint("baildock contained-run %s -- ARGV…", p.args[0])
		}
		return command{}, usage("unexpected argument %q before --", p.args[0]).hint("the contained command goes after --")
	}
	vars, err := parseEnv(c.StringSlice("env"))
	if err != nil {
		return command{}, err
	}
	r := evidence.Recipe{Version: 1, Profile: evidence.ProfileCommand, Executable: p.tail[0], Args: p.tail[1:]}
	if r.Limits, err = limitFlags(c); err != nil {
		return command{}, err
	}
	if s := c.String("toolchain"); s != "" {
		r.Toolchain = new(evidence.ToolchainDigest)
		if err := r.Toolchain.UnmarshalText([]byte(s)); err != nil {
			return command{}, usage("--toolchain: %w", err)
		}
	}
	n, err := newNonce()
	if err != nil {
		return command{}, err
	}
	r.Nonce = &n
	// Everything that can be refused without the daemon is, first.
	r.Image = evidence.ImageID{1}
	if _, err := newCommand(r, append([]evidence.EnvVar(nil), vars...)); err != nil {
		return command{}, err
	}
	ref := c.String("image")
	if ref == "" {
		return command{}, usage("--image is missing").hint("baildock image list shows the images here; baildock image make makes one")
	}
	var id evidence.ImageID
	if parseErr := id.UnmarshalText([]byte(ref)); parseErr != nil || c.Bool("image-env") {
		img, err := images(c.Context, ref)
		if err != nil {
			return command{}, err
		}
		id = img.ID
		if c.Bool("image-env") {
			if vars, err = withImageEnv(vars, img.Env); err != nil {
				return command{}, err
			}
		}
	}
	r.Image = id
	return newCommand(r, vars)
}

func limitFlags(c *cli.Context) (evidence.Limits, error) {
	f := limitsFile{
		Timeout: c.String("timeout"), Output: c.String("output-limit"), Memory: c.String("memory"),
		Scratch: c.String("scratch"), CPUs: c.String("cpus"),
	}
	var err error
	if f.PIDs, err = parseCount("--pids", c.String("pids")); err != nil {
		return evidence.Limits{}, err
	}
	return f.limits()
}

func parseEnv(entries []string) ([]evidence.EnvVar, error) {
	var vars []evidence.EnvVar
	for _, e := range entries {
		name, value, ok := strings.Cut(e, "=")
		if !ok {
			return nil, usage("--env %q is not K=V", e).hint("values never come from the host: write --env %s=VALUE", e)
		}
		vars = append(vars, evidence.EnvVar{Name: name, Value: value})
	}
	return vars, nil
}

// withImageEnv adds the image's entries; a declared one wins over the image's of the same name.
func withImageEnv(vars []evidence.EnvVar, image []string) ([]evidence.EnvVar, error) {
	declared := map[string]bool{}
	for _, v := range vars {
		declared[v.Name] = true
	}
	for _, e := range image {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return nil, fail(exitUsage, "image_env", "the image declares the environment entry %q, which is no K=V", e)
		}
		if !declared[name] {
			vars = append(vars, evidence.EnvVar{Name: name, Value: value})
		}
	}
	return vars, nil
}

func newNonce() (evidence.Nonce, error) {
	var n evidence.Nonce
	if _, err := rand.Read(n[:]); err != nil {
		return n, fmt.Errorf("read random bytes: %w", err)
	}
	return n, nil
}

// acceptFlag names the reductions a person accepts.
func acceptFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "accept-reduced", Usage: "accept a claim reduced for `REASON`; repeatable"}
}

func accepted(c *cli.Context) ([]evidence.Reduction, error) {
	var out []evidence.Reduction
	for _, s := range c.StringSlice("accept-reduced") {
		r, err := evidence.ParseReduction(s)
		if err != nil {
			return nil, usage("--accept-reduced: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}
