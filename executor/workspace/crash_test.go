package workspace

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/source"
)

// A preparation that is killed leaves one directory below its parent, which recovery empties, and the
// source as it was.
func TestPreparationKilled(t *testing.T) {
	if at := os.Getenv("WORKSPACE_TEST_KILLED_AT"); at != "" {
		r := Request{Root: os.Getenv("WORKSPACE_TEST_SOURCE"), Parent: os.Getenv("WORKSPACE_TEST_PARENT"), Writable: evidence.WritablePaths{"."}}
		r.hooks.at(moment(at), func() {
			os.Stdout.WriteString("there\n")
			select {} // until it is killed
		})
		_, err := Prepare(t.Context(), r)
		t.Fatalf("it went on: %v", err)
	}
	for _, at := range []moment{afterListing, beforeOpen, whileReading} {
		t.Run(string(at), func(t *testing.T) {
			dir, _ := raceTree(t)
			parent := privateDir(t)
			before := leavesOf(t, dir)
			cmd := exec.Command("/proc/self/exe", "-test.run", "^TestPreparationKilled$")
			cmd.Env = append(os.Environ(), "WORKSPACE_TEST_KILLED_AT="+string(at), "WORKSPACE_TEST_SOURCE="+dir, "WORKSPACE_TEST_PARENT="+parent)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "there\n", line)
			require.NoError(t, cmd.Process.Kill())
			require.ErrorContains(t, cmd.Wait(), "killed")

			left, err := os.ReadDir(parent)
			require.NoError(t, err)
			if at == afterListing {
				require.Empty(t, left, "nothing is made before the source was judged")
			} else {
				require.Len(t, left, 1)
				require.DirExists(t, filepath.Join(parent, left[0].Name(), "workspace", "d", "e"))
			}
			handle, err := os.Open(parent)
			require.NoError(t, err)
			defer handle.Close()
			n, err := source.RemoveEntries(handle)
			require.NoError(t, err)
			require.Equal(t, len(left), n)
			requireEmpty(t, parent)
			require.Equal(t, before, leavesOf(t, dir))
		})
	}
}
