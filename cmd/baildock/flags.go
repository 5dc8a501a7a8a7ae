package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// globalFlags may stand anywhere before `--`.
func globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "home", EnvVars: []string{"BAILDOCK_HOME"}, Value: ".baildock", Usage: "home `DIR` with ledger, keys and execution directories"},
		&cli.StringFlag{Name: "ledger", EnvVars: []string{"BAILDOCK_LEDGER"}, Usage: "ledger `URL`, a path or a server; the home's own when omitted"},
		&cli.BoolFlag{Name: "json", Usage: "print one JSON document"},
		&cli.BoolFlag{Name: "quiet", Usage: "print no progress"},
	}
}

// line is a command line with everything in its place.
type line struct {
	argv    []string // for the CLI library: program, global flags, verbs, their flags
	args    []string // arguments, flags taken out
	tail    []string // after `--`, untouched
	cut     bool
	globals map[string]string
}

// global tells whether a boolean global flag is set, also on a line that is refused otherwise.
func (l line) global(name string) bool {
	on, err := strconv.ParseBool(l.globals[name])
	return err == nil && on
}

// arrange puts flags before arguments. The CLI library stops at the first argument, so this is
// the one place that knows where flags may stand: anywhere up to `--`, a verb's own and the
// global ones alike. A flag that isn't a list may be given once.
func arrange(app *cli.App, args []string) (line, error) {
	l := line{globals: map[string]string{}}
	if i := endOfFlags(app, args); i < len(args) {
		l.cut, l.tail, args = true, args[i+1:], args[:i]
	}
	var (
		verbs   []string
		own     []string // the verb's flags, spelled --name=value
		globals []string
		seen    = map[string]bool{}
		known   = app.Commands
		flags   []cli.Flag
		help    bool
		refused error
	)
	refuse := func(err error) {
		if refused == nil {
			refused = err
		}
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) > 1 && a[0] == '-' {
			name, value, given := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
			if name == "help" || a == "-h" {
				help = true
				continue
			}
			f, global := findFlag(flags, name), false
			if f == nil {
				f = findFlag(app.Flags, name)
				global = f != nil
			}
			if f == nil || !strings.HasPrefix(a, "--") && len(name) > 1 {
				refuse(usage("baildock %shas no flag %q", join(verbs), strings.SplitN(a, "=", 2)[0]).
					hint("see: baildock %s--help; a command's own flags go after --", join(verbs)))
				continue
			}
			long := f.Names()[0]
			switch {
			case given:
			case isSwitch(f):
				value = "true"
			case i+1 < len(args):
				i++
				value = args[i]
			default:
				refuse(usage("flag --%s needs a value", long))
				continue
			}
			if seen[long] && !isList(f) {
				refuse(usage("flag --%s is given twice", long))
			}
			if _, err := strconv.ParseBool(value); err != nil && isSwitch(f) {
				refuse(usage("flag --%s is on or off: %q is neither true nor false", long, value))
			}
			seen[long] = true
			spelled := "--" + long + "=" + value
			if global {
				globals = append(globals, spelled)
				l.globals[long] = value
			} else {
				own = append(own, spelled)
			}
			continue
		}
		if len(verbs) == 0 && a == "help" {
			help = true
			continue
		}
		if known != nil && len(l.args) == 0 {
			if c := findVerb(known, a); c != nil {
				verbs, flags, known = append(verbs, c.Name), c.Flags, c.Subcommands
				continue
			}
			refuse(usage("baildock %shas no verb %q", join(verbs), a).hint("see: baildock %s--help", join(verbs)))
		}
		l.args = append(l.args, a)
	}
	if len(verbs) > 0 && known != nil && !help {
		refuse(usage("baildock %swants one of: %s", join(verbs), strings.Join(verbNames(known), ", ")))
	}
	if help {
		own, refused = []string{"--help"}, nil
	}
	l.argv = slices.Concat([]string{app.Name}, globals, verbs, own)
	return l, refused
}

// endOfFlags finds the `--` that ends the flags; a flag's value may look like one.
func endOfFlags(app *cli.App, args []string) int {
	flags, known := app.Flags, app.Commands
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return i
		case len(a) > 1 && a[0] == '-':
			if f := findFlag(flags, strings.TrimLeft(a, "-")); f != nil && !isSwitch(f) {
				i++
			}
		case known != nil:
			if c := findVerb(known, a); c != nil {
				flags, known = slices.Concat(c.Flags, app.Flags), c.Subcommands
			} else {
				known = nil
			}
		}
	}
	return len(args)
}

func findFlag(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func findVerb(verbs []*cli.Command, name string) *cli.Command {
	for _, c := range verbs {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func isSwitch(f cli.Flag) bool { _, ok := f.(*cli.BoolFlag); return ok }
func isList(f cli.Flag) bool   { _, ok := f.(*cli.StringSliceFlag); return ok }

func verbNames(cs []*cli.Command) []string {
	var names []string
	for _, c := range cs {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

func join(verbs []string) string {
	if len(verbs) == 0 {
		return ""
	}
	return strings.Join(verbs, " ") + " "
}

// parseSize reads a number of bytes: digits, and optionally k, m or g for 2¹⁰, 2²⁰, 2³⁰.
func parseSize(flag, s string) (uint64, error) {
	digits, shift := s, 0
	if n := len(s); n > 0 {
		if at := strings.IndexByte("kmg", s[n-1]|0x20); at >= 0 {
			digits, shift = s[:n-1], 10*(at+1)
		}
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || v<<shift>>shift != v {
		return 0, usage("%s %q is no size", flag, s).hint("write bytes, or a number with k, m or g: 256m")
	}
	return v << shift, nil
}

// parseCPUs reads a number of cores with at most nine decimals, exactly.
func parseCPUs(flag, s string) (uint64, error) {
	whole, part, _ := strings.Cut(s, ".")
	refused := usage("%s %q is no number of cores", flag, s).hint("write a decimal number: 1 or 0.5")
	if len(part) > 9 || whole == "" || strings.HasSuffix(s, ".") {
		return 0, refused
	}
	w, err := strconv.ParseUint(whole, 10, 32)
	if err != nil {
		return 0, refused
	}
	f, err := strconv.ParseUint(part+strings.Repeat("0", 9-len(part)), 10, 64)
	if err != nil {
		return 0, refused
	}
	return w*1_000_000_000 + f, nil
}

func parseDuration(flag, s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, usage("%s %q is no duration", flag, s).hint("write a number with a unit: 500ms, 60s, 5m")
	}
	return d, nil
}

func parseCount(flag, s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, usage("%s %q is no whole number from 0", flag, s)
	}
	return v, nil
}

// formatDuration leaves out the zeros that Go writes after whole minutes.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	return s
}

// formatCPUs is the shortest text that parseCPUs reads back.
func formatCPUs(nano uint64) string {
	s := fmt.Sprintf("%d.%09d", nano/1_000_000_000, nano%1_000_000_000)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// formatSize is the shortest text that parseSize reads back.
func formatSize(v uint64) string {
	for i, unit := range []string{"g", "m", "k"} {
		if shift := 30 - 10*i; v > 0 && v%(1<<shift) == 0 {
			return fmt.Sprintf("%d%s", v>>shift, unit)
		}
	}
	return strconv.FormatUint(v, 10)
}
