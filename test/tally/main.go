// Command tally reads the output of `go test -json` from stdin, prints what failed with its
// output and one line a package, and ends with the number of tests that passed and failed.
//
//	go test -json ./... | go run ./test/tally
//
// A test that counts its cases says so in a line that begins with "count: ", as t.Logf("count: %d
// cells", n): that line is shown also of a test that passed.
//
// It exits 0 only if at least one test ran, all passed and none was skipped: a test that can't run
// has to fail and say what is missing. Subtests count as tests.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() { os.Exit(tally(os.Stdin, os.Stdout)) }

// event is one line of test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

type name struct{ pkg, test string }

// maxLine bounds one line of the stream; the test runner splits output at newlines.
const maxLine = 16 << 20

// counted matches what a test logged as its count, behind the place that the testing package puts first.
var counted = regexp.MustCompile(`^\s*\S+\.go:\d+: count: (\d.*)$`)

// counts are the counts that a test logged; output comes in pieces that end with their lines.
func counts(output []string) (all []string) {
	for line := range strings.Lines(strings.Join(output, "")) {
		if m := counted.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			all = append(all, m[1])
		}
	}
	return all
}

func tally(in io.Reader, out io.Writer) int {
	var (
		passed, failed, skipped int
		broken                  []string // packages that failed, built or not
		said                    = map[name][]string{}
		lines                   = bufio.NewScanner(in)
	)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// The go command itself says something that is no test output.
			fmt.Fprintln(out, lines.Text())
			continue
		}
		at := name{e.Package, e.Test}
		switch e.Action {
		case "output":
			said[at] = append(said[at], e.Output)
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "pass":
			if e.Test != "" {
				passed++
				for _, line := range counts(said[at]) {
					fmt.Fprintf(out, "count %s (%s)\n", line, e.Test)
				}
			} else {
				fmt.Fprintf(out, "ok    %-60s %6.1fs\n", e.Package, e.Elapsed)
			}
			delete(said, at)
		case "skip":
			if e.Test != "" {
				skipped++
				fmt.Fprintf(out, "SKIP  %s %s\n%s", e.Package, e.Test, strings.Join(said[at], ""))
			}
			delete(said, at)
		case "fail":
			fmt.Fprintf(out, "FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(said[at], ""))
			if e.Test != "" {
				failed++
			} else {
				broken = append(broken, e.Package)
			}
			delete(said, at)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(out, "tally:", err)
		return 1
	}
	if len(broken) > 0 {
		slices.Sort(broken)
		fmt.Fprintf(out, "failed packages: %s\n", strings.Join(broken, " "))
	}
	if skipped > 0 {
		fmt.Fprintf(out, "%d skipped: a test that can't run must fail\n", skipped)
	}
	fmt.Fprintf(out, "%d passed, %d failed\n", passed, failed)
	if passed == 0 || failed+skipped+len(broken) > 0 {
		return 1
	}
	return 0
}
