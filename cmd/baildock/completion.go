package main

import "github.com/urfave/cli/v2"

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
