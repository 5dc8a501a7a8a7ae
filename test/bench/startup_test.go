package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence/journal/journaltest"
	"github.com/baildock/baildock/ledger/sqlite"
)

// startEvents is the long ledger of req U6.
const startEvents = 1_000_000

// startPairs is how many times each side of a pair runs; medians are compared.
const startPairs = 11

// BenchmarkStartUp: each verb on a ledger of a million events, process start to exit, against the same verb
// on a ledger of a few (req U6). The pairs alternate in order. `version`, which opens nothing, shows what
// the process alone costs on this machine.
func BenchmarkStartUp(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "baildock")
	build(b, bin, "../../cmd/baildock")
	b.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	long, short := filepath.Join(dir, "long"), filepath.Join(dir, "short")
	attempts := makeHome(b, bin, long, startEvents)
	makeHome(b, bin, short, 100)
	b.Logf("%d attempts, %d events; %d pairs", attempts, startEvents, startPairs)

	version := medianOf(b, func(int) *exec.Cmd { return exec.Command(bin, "version") })
	for _, verb := range []struct {
		name string
		args []string
	}{
		{"check show", []string{"check", "show", "a-0000002"}},
		{"check show by prefix", []string{"check", "show", "@last"}},
		{"why", []string{"why", "a-0000002"}},
		{"change show", []string{"change", "show", "c"}},
		{"policy show", []string{"policy", "show"}},
		{"replay the tail", []string{"replay", "--limit", "5", "--from", "TAIL"}},
		{"replay a stream", []string{"replay", "attempt-a-0000002"}},
		{"append", []string{"append", "notes", "--type", "note", "--expect", "NEXT"}},
		{"query attempts", []string{"query", "attempts", "--limit", "20"}},
		{"query timeline", []string{"query", "timeline", "--limit", "20"}},
		{"checkpoint show", []string{"checkpoint", "show"}},
		{"completion of an ID", []string{"words", "--", "why", "a-000000"}},
	} {
		b.Run(verb.name, func(b *testing.B) {
			for b.Loop() {
				var many, few []time.Duration
				for i := range startPairs {
					sides := []func(){
						func() { many = append(many, start(b, bin, long, startEvents, verb.args)) },
						func() { few = append(few, start(b, bin, short, 100, verb.args)) },
					}
					sides[i%2]()
					sides[1-i%2]()
				}
				b.ReportMetric(median(many).Seconds()*1e3, "ms")
				b.ReportMetric(median(many).Seconds()/median(few).Seconds(), "÷short-ledger")
				b.ReportMetric(median(many).Seconds()/version.Seconds(), "÷version")
				b.ReportMetric((median(many)-version).Seconds()*1e3, "ms-over-version")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// makeHome makes a home whose ledger holds about so many events, its projections caught up.
func makeHome(b *testing.B, bin, home string, events int) (attempts int) {
	b.Helper()
	command(b, 0, bin, "--home", home, "init")
	led, err := sqlite.Open(b.Context(), filepath.Join(home, "ledger.db"), sqlite.Options{MustExist: true})
	require.NoError(b, err)
	attempts = journaltest.Fill(b, led, events)
	require.NoError(b, led.Close())
	repository := filepath.Join(home, "..", "repository")
	if _, err := os.Stat(repository); err != nil {
		command(b, 0, "git", "init", "-q", repository)
		command(b, 0, "git", "-C", repository, "-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-q", "--allow-empty", "-m", "first")
	}
	command(b, 0, bin, "--home", home, "change", "open", "c", "--repository", repository)
	command(b, 0, bin, "--home", home, "--quiet", "query", "attempts", "--limit", "1")
	command(b, 0, bin, "--home", home, "checkpoint", "sign")
	return attempts
}

// appended counts what start appended to each home.
var appended = map[string]int{}

// start times one process of a verb. What it needs to know of the ledger is looked up before.
func start(b *testing.B, bin, home string, events int, args []string) time.Duration {
	b.Helper()
	args = append([]string{"--home", home}, args...)
	for i, a := range args {
		switch a {
		case "TAIL":
			args[i] = fmt.Sprint(events - events/100)
		case "NEXT":
			args[i] = "none"
			if n := appended[home]; n > 0 {
				args[i] = fmt.Sprint(n - 1)
			}
			appended[home]++
		}
	}
	cmd := exec.Command(bin, args...)
	cmd.Stdin = strings.NewReader("note")
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begin)
	require.NoError(b, err, "%q: %s", args, out)
	return took
}

func medianOf(b *testing.B, make func(int) *exec.Cmd) time.Duration {
	b.Helper()
	var all []time.Duration
	for i := range startPairs {
		begin := time.Now()
		require.NoError(b, make(i).Run())
		all = append(all, time.Since(begin))
	}
	return median(all)
}
