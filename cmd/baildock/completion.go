package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completions asks the program itself for the words, so that scripts never go stale. $0 stands
// for nothing else: the name is fixed.
var completions = map[string]string{
	"bash": `_baildock() {
  local IFS=$'\n'
  COMPREPLY=($(baildock words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _baildock baildock
`,
	"zsh": `#compdef baildock
_baildock() {
  local -a found
  found=(${(f)"$(baildock words -- ${words[2,CURRENT]} 2>/dev/null)"})
  if (( ${#found} )); then compadd -a found; else _files; fi
}
compdef _baildock baildock
`,
	"fish": `complete -c baildock -f -a '(baildock words -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null; or __fish_complete_path (commandline -ct))'
`,
}

func completionCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell: bash, zsh or fish",
		ArgsUsage: "SHELL",
		Action: func(*cli.Context) error {
			args, err := p.positional("SHELL")
			if err != nil {
				return err
			}
			script, ok := completions[args[0]]
			if !ok {
				return usage("shell %q is none of bash, zsh, fish", args[0])
			}
			return p.printf("%s", script)
		},
	}
}

// wordsCommand answers the completion scripts: what may stand where the last word stands.
func wordsCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:   "words",
		Hidden: true,
		Action: func(*cli.Context) error {
			words := complete(p.app(), p.tail)
			if len(words) == 0 {
				return verdict(exitFailed)
			}
			return p.printf("%s\n", strings.Join(words, "\n"))
		},
	}
}

func complete(app *cli.App, typed []string) []string {
	if len(typed) == 0 {
		typed = []string{""}
	}
	flags, known := app.Flags, app.Commands
	for _, w := range typed[:len(typed)-1] {
		if w == "--" {
			return nil
		}
		if c := findVerb(known, w); c != nil {
			flags, known = slices.Concat(c.Flags, app.Flags), c.Subcommands
		}
	}
	last := typed[len(typed)-1]
	var words []string
	if strings.HasPrefix(last, "-") {
		for _, f := range flags {
			if name := "--" + f.Names()[0]; strings.HasPrefix(name, last) {
				words = append(words, name)
			}
		}
		return words
	}
	for _, name := range verbNames(known) {
		if strings.HasPrefix(name, last) {
			words = append(words, name)
		}
	}
	return words
}
