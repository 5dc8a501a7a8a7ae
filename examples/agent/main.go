// Agent is a small scripted coding agent: it carries out one of its plans on the repository in the
// current directory, step by step, and says what it did. It stands for a real agent in the examples and
// tests of a contained run, which can't tell the difference: it edits, adds, moves and deletes files, and
// one of its plans tries what it shouldn't.
//
//	agent PLAN
//
// A plan is a file of plans/: one step a line, words separated by spaces, a word with spaces quoted as in
// Go, lines that start with # ignored.
//
//	replace FILE OLD NEW     OLD must be there exactly once
//	write FILE TEXT          makes directories as needed
//	move FROM TO             likewise
//	delete PATH
//	mode FILE OCTAL
//	link PATH TARGET
//	say TEXT
//	try read|write PATH      any path; what happens is said, and nothing fails
//	try dial NETWORK ADDRESS
//
// It exits 1 at the first step that fails and 2 for a plan it doesn't know.
package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

//go:embed plans/*.plan
var plans embed.FS

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: agent PLAN\n\nplans: %s\n", strings.Join(planNames(), ", "))
		os.Exit(2)
	}
	root, err := os.OpenRoot(".")
	if err == nil {
		err = perform(root, os.Args[1], os.Stdout)
	}
	var unknown *unknownPlanError
	switch {
	case errors.As(err, &unknown):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func planNames() []string {
	var names []string
	entries, err := plans.ReadDir("plans")
	if err != nil {
		panic(err) // embedded
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".plan"))
	}
	return names
}

type unknownPlanError struct{ name string }

func (e *unknownPlanError) Error() string {
	return fmt.Sprintf("no plan %q; there are %s", e.name, strings.Join(planNames(), ", "))
}

// perform carries a plan out below a root, which no step leaves.
func perform(root *os.Root, plan string, out io.Writer) error {
	text, err := plans.ReadFile("plans/" + plan + ".plan")
	if errors.Is(err, fs.ErrNotExist) {
		return &unknownPlanError{plan}
	}
	if err != nil {
		return err
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		words, err := split(line)
		if err == nil && len(words) > 0 {
			err = step(root, words, out)
		}
		if err != nil {
			return fmt.Errorf("%s, step %d: %w", plan, number, err)
		}
	}
	return nil
}

// split reads the words of a line.
func split(line string) ([]string, error) {
	var words []string
	for rest := strings.TrimSpace(line); rest != "" && !(len(words) == 0 && rest[0] == '#'); rest = strings.TrimSpace(rest) {
		if rest[0] != '"' {
			word, more, _ := strings.Cut(rest, " ")
			words, rest = append(words, word), more
			continue
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, fmt.Errorf("a quoted word doesn't end: %s", rest)
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, err
		}
		words, rest = append(words, word), rest[len(quoted):]
	}
	return words, nil
}

// steps has what each verb does and how many words follow it.
var steps = map[string]struct {
	words int
	do    func(root *os.Root, w []string, out io.Writer) error
}{
	"replace": {3, replace},
	"write":   {2, write},
	"move":    {2, move},
	"delete":  {1, func(root *os.Root, w []string, _ io.Writer) error { return root.RemoveAll(w[0]) }},
	"mode":    {2, mode},
	"link":    {2, func(root *os.Root, w []string, _ io.Writer) error { return root.Symlink(w[1], w[0]) }},
	"say":     {1, func(_ *os.Root, w []string, out io.Writer) error { _, err := fmt.Fprintln(out, w[0]); return err }},
	"try":     {-1, try},
}

func step(root *os.Root, words []string, out io.Writer) error {
	s, known := steps[words[0]]
	switch {
	case !known:
		return fmt.Errorf("no step %q", words[0])
	case s.words >= 0 && s.words != len(words)-1:
		return fmt.Errorf("%s takes %d words, not %d", words[0], s.words, len(words)-1)
	}
	if err := s.do(root, words[1:], out); err != nil {
		return err
	}
	if words[0] == "say" || words[0] == "try" {
		return nil
	}
	_, err := fmt.Fprintf(out, "%s %q\n", words[0], words[1])
	return err
}

func replace(root *os.Root, w []string, _ io.Writer) error {
	text, err := root.ReadFile(w[0])
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), w[1]); n != 1 {
		return fmt.Errorf("%s holds %q %d times, not once", w[0], w[1], n)
	}
	return root.WriteFile(w[0], []byte(strings.Replace(string(text), w[1], w[2], 1)), 0o644)
}

func write(root *os.Root, w []string, _ io.Writer) error {
	if err := root.MkdirAll(path.Dir(w[0]), 0o755); err != nil {
		return err
	}
	return root.WriteFile(w[0], []byte(w[1]), 0o644)
}

func move(root *os.Root, w []string, _ io.Writer) error {
	if err := root.MkdirAll(path.Dir(w[1]), 0o755); err != nil {
		return err
	}
	return root.Rename(w[0], w[1])
}

func mode(root *os.Root, w []string, _ io.Writer) error {
	bits, err := strconv.ParseUint(w[1], 8, 9)
	if err != nil {
		return err
	}
	return root.Chmod(w[0], os.FileMode(bits))
}
