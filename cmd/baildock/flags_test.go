package main

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"
)

func toyApp() *cli.App {
	return &cli.App{
		Name:  "baildock",
		Flags: globalFlags(),
		Commands: []*cli.Command{
			{Name: "run", Flags: []cli.Flag{
				&cli.StringFlag{Name: "image"}, &cli.StringSliceFlag{Name: "env"}, &cli.BoolFlag{Name: "tee"},
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
			}},
			{Name: "key", Subcommands: []*cli.Command{{Name: "public"}}},
		},
	}
}

func TestArrange(t *testing.T) {
	for _, c := range []struct {
		name             string
		in               []string
		argv, args, tail []string
	}{
		{"nothing", nil, []string{"baildock"}, nil, nil},
		{"flags first", []string{"--json", "run", "--tee", "x"}, []string{"baildock", "--json=true", "run", "--tee=true"}, []string{"x"}, nil},
		{"flags last", []string{"run", "x", "--tee", "--json"}, []string{"baildock", "--json=true", "run", "--tee=true"}, []string{"x"}, nil},
		{"between", []string{"run", "x", "--image", "i", "y"}, []string{"baildock", "run", "--image=i"}, []string{"x", "y"}, nil},
		{"alias", []string{"run", "-o", "f"}, []string{"baildock", "run", "--output=f"}, nil, nil},
		{"empty value", []string{"run", "--image", ""}, []string{"baildock", "run", "--image="}, nil, nil},
		{"a value like a flag", []string{"run", "--image", "--tee"}, []string{"baildock", "run", "--image=--tee"}, nil, nil},
		{"a value like the end", []string{"run", "--image", "--", "x"}, []string{"baildock", "run", "--image=--"}, []string{"x"}, nil},
		{"lists repeat", []string{"run", "--env", "A=1", "--env=B=2,3"}, []string{"baildock", "run", "--env=A=1", "--env=B=2,3"}, nil, nil},
		{"the tail is untouched", []string{"run", "--tee", "--", "--json", "-h", "--", "", "$(x);", "--help"},
			[]string{"baildock", "run", "--tee=true"}, nil, []string{"--json", "-h", "--", "", "$(x);", "--help"}},
		{"a verb's name as argument", []string{"run", "run"}, []string{"baildock", "run"}, []string{"run"}, nil},
		{"a dash is an argument", []string{"run", "-"}, []string{"baildock", "run"}, []string{"-"}, nil},
		{"two levels", []string{"key", "--home", "h", "public"}, []string{"baildock", "--home=h", "key", "public"}, nil, nil},
		{"help anywhere", []string{"run", "--nonsense", "--help"}, []string{"baildock", "run", "--help"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := arrange(toyApp(), c.in)
			require.NoError(t, err)
			require.Equal(t, c.argv, l.argv)
			require.Equal(t, c.args, l.args)
			require.Equal(t, c.tail, l.tail)
		})
	}
	for _, c := range [][]string{
		{"stop"}, {"key"}, {"key", "private"}, {"run", "--nonsense"}, {"run", "-image", "x"}, {"run", "--image"},
		{"run", "--image", "a", "--image", "b"}, {"--json", "run", "--json"}, {"run", "--tee=maybe"}, {"-x"},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			_, err := arrange(toyApp(), c)
			var f *failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, exitUsage, f.Exit)
		})
	}
}

// FuzzArrange: what follows the first `--` that is nobody's value is never touched.
func FuzzArrange(f *testing.F) {
	seeds := 0
	for _, s := range []string{"--tee", "--image", "x", "--json", "-o", ""} {
		f.Add(s, "--help", "a b")
		seeds++
	}
	require.Positive(f, seeds)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		l, err := arrange(toyApp(), []string{"run", "--", a, b, c})
		require.NoError(t, err)
		require.Equal(t, []string{a, b, c}, l.tail)
		require.Empty(t, l.args)
	})
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]uint64{"0": 0, "256": 256, "1k": 1 << 10, "256m": 256 << 20, "256M": 256 << 20, "4g": 4 << 30} {
		got, err := parseSize("--x", in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{"", "k", "-1", "1.5m", "1mb", "1 m", "0x10", "99999999999g", "m1", "18446744073709551616"} {
		_, err := parseSize("--x", in)
		require.Error(t, err, in)
	}
	for _, v := range []uint64{0, 1, 255, 1024, 1025, 256 << 20, 3 << 30, math.MaxUint64} {
		got, err := parseSize("--x", formatSize(v))
		require.NoError(t, err)
		require.Equal(t, v, got)
	}
}

func TestCPUs(t *testing.T) {
	for in, want := range map[string]uint64{"1": 1e9, "0.5": 5e8, "0.1": 1e8, "4": 4e9, "0.000000001": 1} {
		got, err := parseCPUs("--cpus", in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
		back, err := parseCPUs("--cpus", formatCPUs(got))
		require.NoError(t, err)
		require.Equal(t, got, back)
	}
	for _, in := range []string{"", ".", ".5", "1.", "1e3", "-1", "+1", "1.0000000001", "0x1", "1,5"} {
		_, err := parseCPUs("--cpus", in)
		require.Error(t, err, in)
	}
}

func TestDurations(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, 90 * time.Second, time.Minute, 5 * time.Minute, 61 * time.Second} {
		back, err := parseDuration("--timeout", formatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, back)
	}
	require.Equal(t, "1m", formatDuration(time.Minute))
}
