//go:build live

package warden_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/evidence/redact"
	"github.com/baildock/baildock/executor/warden"
)

const liveSecret = "live-secret-value-0123456789"

// contained is a run of an agent by its instructions.
type contained struct {
	*site
	terms  evidence.ContainedTerms
	policy *evidence.WorkspacePolicy
	wall   time.Duration
	patch  bytes.Buffer
	said   strings.Builder
}

func newContained(t *testing.T, s *site) *contained {
	c := &contained{site: s, wall: 20 * time.Second, terms: evidence.ContainedTerms{
		UID: 1000, GID: 1000, Network: evidence.NetworkNone, Platform: evidence.PlatformEngine, Writable: evidence.WritablePaths{"."},
	}}
	if os.Geteuid() != 0 {
		c.terms.UID, c.terms.GID = uint32(os.Geteuid()), uint32(os.Getegid())
	}
	return c
}

func (c *contained) run(t *testing.T, id string, args ...string) warden.Result {
	t.Helper()
	values := []evidence.EnvOpening{{Name: "API_TOKEN", Value: liveSecret}, {Name: "MODE", Value: "batch"}}
	var nonce evidence.Nonce
	for _, b := range [][]byte{values[0].Salt[:], values[1].Salt[:], nonce[:]} {
		_, err := rand.Read(b)
		require.NoError(t, err)
	}
	env, salts, err := evidence.CommitEnv(&nonce, values)
	require.NoError(t, err)
	opened := evidence.Withhold(evidence.Salt(values[0].Salt), evidence.Marshal(salts))
	terms := c.terms
	r := journal.Registration{Attempt: evidence.AttemptID(id), Subject: evidence.Subject{Kind: evidence.SubjectDirectory}, Environment: env, Salts: &opened}
	if c.policy != nil {
		p := c.policy.Normal()
		r.Policy, err = p.Marshal()
		require.NoError(t, err)
		d, err := p.Digest()
		require.NoError(t, err)
		terms.Policy = &d
	}
	r.Recipe = evidence.Recipe{
		Version: 1, Profile: evidence.ProfileContained, Image: c.image, Executable: "/subject", Args: append([]string{"agent"}, args...),
		Environment: env.Digest(), Nonce: &nonce, Contained: &terms,
		Limits: evidence.Limits{Wall: c.wall, Output: 256 << 10, Memory: 256 << 20, Scratch: 8 << 20, PIDs: 64, NanoCPUs: 1_000_000_000},
	}
	_, err = c.journal.Register(context.Background(), r)
	require.NoError(t, err)
	hidden, err := redact.New([]byte(liveSecret))
	require.NoError(t, err)
	res, err := c.warden(c.driver).Run(context.Background(), warden.RunRequest{
		Attempt: r.Attempt, Path: c.source, Accepted: v1,
		Contained: &warden.ContainedRun{Values: values, Redact: hidden, Patch: &c.patch},
	}, func(stage, text string) { fmt.Fprintln(&c.said, stage, text) })
	require.NoError(t, err)
	c.settled(t, res)
	require.NotContains(t, c.said.String()+c.patch.String(), liveSecret)
	return res
}

// treeSum is a digest of a directory: names, modes, contents.
func treeSum(t *testing.T, dir string) [32]byte {
	h := sha256.New()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Mode(), info.Size(), info.ModTime())
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			h.Write(b)
		}
		return nil
	}))
	return [32]byte(h.Sum(nil))
}

// An agent really edits its copy on the real daemon, on both networks; the original stays as it was.
//
// req N1 req N3 req N5 req O5 req L4 req L5 req C5 req C6
func TestLiveContained(t *testing.T) {
	s := newSite(t)
	// What lies in the home must not be seen by an agent.
	marker := fmt.Sprintf("marker-%x", sha256.Sum256([]byte(t.TempDir())))
	require.NoError(t, os.WriteFile(filepath.Join(s.home, marker), []byte(marker), 0o644))
	before := treeSum(t, s.source)
	for _, n := range []evidence.Network{evidence.NetworkNone, evidence.NetworkBridge} {
		t.Run(string(n), func(t *testing.T) {
			c := newContained(t, s)
			c.terms.Network = n
			most := uint64(4)
			c.policy = &evidence.WorkspacePolicy{Allowed: []string{"**"}, MaxFiles: &most, NoNewLinks: true}
			res := c.run(t, "contained-"+string(n), "stay", "id", "env", "interfaces", "argv", "write:a.txt:changed\n", "mkdir:new/deep",
				"write:new/deep/f.txt:token "+liveSecret+"\n", "remove:dir/b.txt", "refused:/outside", "refused:/etc/hosts", "refused:/subject",
				"write:/tmp/scratch:x", "search:"+marker, "end", "--help", "-h", "", "$HOME; `x`")
			out := c.output(t, res.Record.Stdout)
			require.Equal(t, "ok", res.Verdict.Detail, "%v\n%s\n%s\n%s", res.Verdict.Causes, out, c.output(t, res.Record.Stderr), c.said.String())
			require.Equal(t, res.Record.Controls.Total, res.Record.Controls.Equal)
			require.EqualValues(t, 47-1, res.Record.Controls.Total)
			if os.Geteuid() == 0 {
				require.Equal(t, res.Record.Controls.KernelTotal, res.Record.Controls.KernelEqual)
			}
			require.Contains(t, out, fmt.Sprintf("%d %d workspace\n", c.terms.UID, c.terms.GID))
			for _, want := range []string{"HOME=/tmp/baildock-home", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "MODE=batch", "API_TOKEN=" + redact.Marker,
				"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=baildock", `"end" "--help" "-h" "" "$HOME; ` + "`x`" + `"]`} {
				require.Contains(t, out, want+"\n")
			}
			require.Equal(t, n == evidence.NetworkBridge, strings.Contains(out, "eth0"))
			require.True(t, res.Record.Stdout.Redacted)
			require.NotContains(t, out, liveSecret)

			w := res.Record.Workspace
			require.Equal(t, []uint64{1, 3, 1, 0}, []uint64{w.Modified, w.Added, w.Deleted, w.Renamed}, "%v", res.Changes.Mutations)
			require.Contains(t, string(res.Changes.Diff), "+changed")
			require.Contains(t, c.patch.String(), "+token "+redact.Marker)
			require.Zero(t, res.Record.Policy.Broken)
			require.EqualValues(t, 3, res.Record.Policy.Checks)
		})
	}
	require.Equal(t, before, treeSum(t, s.source))
}

// What ends an agent, and what may not be left: each on the real daemon.
//
// req N6 req N7 req N10 req O3 req O5 req O2
func TestLiveContainedEnds(t *testing.T) {
	s := newSite(t)
	none := uint64(0)
	for _, c := range []struct {
		name   string
		args   []string
		set    func(*contained)
		detail string
		exit   int
	}{
		{name: "exit-125", args: []string{"exit:125"}, detail: "exit_nonzero", exit: 1},
		{name: "exit-126", args: []string{"exit:126"}, detail: "exit_nonzero", exit: 1},
		{name: "exit-127", args: []string{"exit:127"}, detail: "exit_nonzero", exit: 1},
		{name: "policy", args: []string{"write:x:y"}, set: func(c *contained) { c.policy = &evidence.WorkspacePolicy{MaxFiles: &none} }, detail: "policy_violated", exit: 1},
		{name: "executable", args: []string{"exec:a.txt"}, set: func(c *contained) {
			c.policy = &evidence.WorkspacePolicy{NoExecutableChanges: true}
		}, detail: "policy_violated", exit: 1},
		{name: "git", args: []string{"mkdir:.git"}, detail: "mutations_unknown", exit: 5},
		{name: "grows", args: []string{"grow:."}, set: func(c *contained) { c.wall = 2 * time.Minute }, detail: "workspace_limit", exit: 5},
		{name: "parts", args: []string{"write:dir/new:x", "refused:a.txt", "refused:top", "rename:dir/b.txt:dir/c.txt"}, set: func(c *contained) {
			c.terms.Writable = evidence.WritablePaths{"dir"}
		}, detail: "ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := newContained(t, s)
			if c.set != nil {
				c.set(run)
			}
			res := run.run(t, "ends-"+c.name, c.args...)
			require.Equal(t, c.detail, res.Verdict.Detail, "%v\n%s\n%s", res.Verdict.Causes, run.output(t, res.Record.Stderr), run.said.String())
			require.Equal(t, c.exit, res.Verdict.Exit)
			require.Equal(t, evidence.SnapshotGone, res.Record.Snapshot)
		})
	}
}
