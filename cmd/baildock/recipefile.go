package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/config"
)

// maxRecipeFile bounds a recipe file: the text limits of a recipe, JSON escapes included.
const maxRecipeFile = 256 << 10

// recipeFile is a recipe and its environment as people write them: the JSON view of the canonical
// values, whose digests are over CBOR. Everything is written out; nothing has a default but the
// environment (none), the toolchain (unbound) and the nonce (a guessable digest).
type recipeFile struct {
	Version   uint                      `json:"version"` // 1
	Profile   evidence.ProfileName      `json:"profile"`
	Image     evidence.ImageID          `json:"image"`
	Argv      []string                  `json:"argv"` // the executable's absolute path first
	Env       map[string]string         `json:"env"`
	Toolchain *evidence.ToolchainDigest `json:"toolchain,omitempty"`
	Limits    limitsFile                `json:"limits"`
	Nonce     *evidence.Nonce           `json:"nonce,omitempty"`
}

type limitsFile struct {
	Timeout string `json:"timeout"`      // 60s
	Output  string `json:"output_limit"` // 256k
	Memory  string `json:"memory"`       // 256m
	Scratch string `json:"scratch"`      // 64m
	PIDs    uint64 `json:"pids"`
	CPUs    string `json:"cpus"` // 1 or 0.5
}

// command is a recipe with the environment it binds.
type command struct {
	recipe evidence.Recipe
	env    evidence.Environment
}

// newCommand binds the environment into the recipe and checks both.
func newCommand(r evidence.Recipe, vars []evidence.EnvVar) (command, error) {
	evidence.SortEnv(vars)
	c := command{recipe: r, env: evidence.Environment{Version: 1, Nonce: r.Nonce, Vars: vars}}
	c.recipe.Environment = c.env.Digest()
	if err := c.env.Check(); err != nil {
		return command{}, fail(exitUsage, "recipe_refused", "recipe refused: %w", err)
	}
	if err := c.recipe.Check(); err != nil {
		return command{}, fail(exitUsage, "recipe_refused", "recipe refused: %w", err)
	}
	return c, nil
}

// file is the view that loads to the same recipe.
func (c command) file() recipeFile {
	l := c.recipe.Limits
	f := recipeFile{
		Version: c.recipe.Version, Profile: c.recipe.Profile, Image: c.recipe.Image, Argv: c.recipe.Argv(),
		Env: map[string]string{}, Toolchain: c.recipe.Toolchain, Nonce: c.recipe.Nonce,
		Limits: limitsFile{
			Timeout: formatDuration(l.Wall), Output: formatSize(l.Output), Memory: formatSize(l.Memory),
			Scratch: formatSize(l.Scratch), PIDs: l.PIDs, CPUs: formatCPUs(l.NanoCPUs),
		},
	}
	for _, v := range c.env.Vars {
		f.Env[v.Name] = v.Value
	}
	return f
}

// loadRecipe reads a recipe file: unknown fields, repeated keys and trailing bytes are refused.
func loadRecipe(path string) (command, error) {
	b, err := readBounded(path, maxRecipeFile)
	if err != nil {
		return command{}, err
	}
	refuse := func(err error) error {
		return fail(exitUsage, "recipe_file", "recipe file %q: %w", path, err).
			hint("baildock recipe new writes a file to start from")
	}
	if config.Detect(b) { // containment never applies silently elsewhere (req N8)
		return command{}, fail(exitUsage, "recipe_contained", "%q is the configuration of a contained run, which nothing here would contain that way", path).
			hint("run it with baildock contained-run, or write a recipe with baildock recipe new")
	}
	if err := checkKeys(b); err != nil {
		return command{}, refuse(err)
	}
	var f recipeFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return command{}, refuse(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return command{}, refuse(errors.New("something follows the recipe"))
	}
	c, err := f.command()
	if err != nil {
		return command{}, err
	}
	return c, nil
}

func (f recipeFile) command() (command, error) {
	if len(f.Argv) == 0 {
		return command{}, fail(exitUsage, "recipe_refused", "recipe refused: argv is missing")
	}
	limits, err := f.Limits.limits()
	if err != nil {
		return command{}, err
	}
	vars := make([]evidence.EnvVar, 0, len(f.Env))
	for name, value := range f.Env {
		vars = append(vars, evidence.EnvVar{Name: name, Value: value})
	}
	return newCommand(evidence.Recipe{
		Version: f.Version, Profile: f.Profile, Image: f.Image, Executable: f.Argv[0], Args: f.Argv[1:],
		Toolchain: f.Toolchain, Limits: limits, Nonce: f.Nonce,
	}, vars)
}

func (f limitsFile) limits() (evidence.Limits, error) {
	l := evidence.Limits{PIDs: f.PIDs}
	var err [5]error
	l.Wall, err[0] = parseDuration("timeout", f.Timeout)
	l.Output, err[1] = parseSize("output_limit", f.Output)
	l.Memory, err[2] = parseSize("memory", f.Memory)
	l.Scratch, err[3] = parseSize("scratch", f.Scratch)
	l.NanoCPUs, err[4] = parseCPUs("cpus", f.CPUs)
	for _, e := range err {
		if e != nil {
			return evidence.Limits{}, e
		}
	}
	return l, nil
}

// checkKeys refuses JSON in which an object repeats a key: the decoder would take the last.
func checkKeys(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	type frame struct {
		object bool
		keys   []string
		value  bool // a key was read; its value comes next
	}
	var open []frame
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		var top *frame
		if len(open) > 0 {
			top = &open[len(open)-1]
		}
		if delim, ok := t.(json.Delim); ok && (delim == '}' || delim == ']') {
			open = open[:len(open)-1]
			continue
		}
		if top != nil && top.object && !top.value {
			key, ok := t.(string)
			if !ok {
				return fmt.Errorf("a key is no text at byte %d", d.InputOffset())
			}
			if slices.Contains(top.keys, key) {
				return fmt.Errorf("key %q is repeated at byte %d", key, d.InputOffset())
			}
			top.keys, top.value = append(top.keys, key), true
			continue
		}
		if top != nil {
			top.value = false
		}
		if delim, ok := t.(json.Delim); ok {
			open = append(open, frame{object: delim == '{'})
		}
	}
}

// readBounded reads a file a person named.
func readBounded(path string, limit int64) ([]byte, error) {
	b, err := readUpTo(path, limit+1)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fail(exitUsage, "file_too_large", "file %q has more than %d bytes", path, limit)
	}
	return b, nil
}

// readUpTo reads the first bytes of a file, at most n.
func readUpTo(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, n))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return b, nil
}

func unreadable(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fail(exitUsage, "file_unreadable", "file %q can't be read: %w", path, err).
		hint("check the path and its permissions")
}
