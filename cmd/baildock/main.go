package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"
)

func main() { os.Exit(start()) }

// start runs the program as the operating system started it.
func start() int {
	// A reader that goes away must not end a run in the middle: writes fail instead.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// program is one invocation.
type program struct {
	ui   *ui
	in   io.Reader
	args []string // arguments before `--`, flags taken out
	tail []string // everything after `--`
	cut  bool     // `--` was given
	home string   // as typed; empty when it came from elsewhere
}

// run is the whole program with its streams; it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	p := &program{ui: newUI(out, errOut), in: in}
	err := p.dispatch(ctx, args)
	return p.ui.exit(err)
}

func (p *program) dispatch(ctx context.Context, args []string) error {
	app := p.app()
	l, err := arrange(app, args)
	p.ui.json = l.global("json")
	p.ui.quiet = l.global("quiet")
	if err != nil {
		return err
	}
	p.args, p.tail, p.cut, p.home = l.args, l.tail, l.cut, l.globals["home"]
	return app.RunContext(ctx, l.argv)
}

func (p *program) app() *cli.App {
	return &cli.App{
		Name:                      "baildock",
		Usage:                     "run untrusted commands contained, and keep evidence anybody can check",
		Version:                   version(),
		HideVersion:               true,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true, // a comma in a value is part of it
		Writer:                    p.ui.out,
		ErrWriter:                 p.ui.err,
		ExitErrHandler:            func(*cli.Context, error) {}, // exit.go decides
		Flags:                     globalFlags(),
		Commands:                  plain(p.verbs()),
		Action: func(c *cli.Context) error {
			c.App.Writer = p.ui.err
			if err := cli.ShowAppHelp(c); err != nil {
				return err
			}
			return usage("no verb given").hint("type a verb, for example: baildock init")
		},
	}
}

// plain takes the library's own help verb out of every verb that has verbs.
func plain(verbs []*cli.Command) []*cli.Command {
	for _, v := range verbs {
		v.HideHelpCommand = true
		plain(v.Subcommands)
	}
	return verbs
}

// verbs lists every verb, in the order of the manual.
func (p *program) verbs() []*cli.Command {
	return []*cli.Command{
		initCommand(p),
		runCommand(p),
		containedRunCommand(p),
		checkCommand(p),
		changeCommand(p),
		policyCommand(p),
		preflightCommand(p),
		superviseCommand(p),
		whyCommand(p),
		appendCommand(p),
		replayCommand(p),
		queryCommand(p),
		checkpointCommand(p),
		auditCommand(p),
		ledgerCommand(p),
		exportCommand(p),
		verifyCommand(p),
		reportCommand(p),
		rerunCommand(p),
		inspectCommand(p),
		keyCommand(p),
		imageCommand(p),
		canaryCommand(p),
		recipeCommand(p),
		sourceCommand(p),
		schemaCommand(p),
		versionCommand(p),
		completionCommand(p),
		wordsCommand(p),
		watchdogCommand(p),
		probeCommand(p),
		preflightSelfCommand(p),
		canarySelfCommand(p),
	}
}

// positional returns the arguments of a verb that takes exactly these, named for people.
func (p *program) positional(names ...string) ([]string, error) {
	got := p.args
	if p.cut {
		got = append(append([]string{}, p.args...), p.tail...)
	}
	if len(got) < len(names) {
		return nil, usage("%s is missing", names[len(got)])
	}
	if len(got) > len(names) {
		return nil, usage("unexpected argument %q", got[len(names)])
	}
	return got, nil
}

// printf writes data for people to stdout.
func (p *program) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.ui.out, format, args...)
	return err
}
