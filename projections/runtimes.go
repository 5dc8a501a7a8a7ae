package projections

import (
	"github.com/baildock/baildock/evidence"
)

// runtime stores what a runtime is, once.
func (f *facts) runtime(c *conn, it *item, id evidence.RuntimeIdentity) error {
	name := id.Digest().String()
	if f.runtimes[name] {
		return nil
	}
	if len(f.runtimes) >= maxWords {
		clear(f.runtimes)
	}
	f.runtimes[name] = true
	b := id.Build
	return c.run(`INSERT INTO runtime_rows (runtime, engine, machine, version, api, kernel, os, arch, runner, first_index, seen)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (runtime) DO UPDATE SET engine = excluded.engine, machine = excluded.machine, version = excluded.version,
		api = excluded.api, kernel = excluded.kernel, os = excluded.os, arch = excluded.arch, runner = excluded.runner
		WHERE engine IS NULL`,
		name, id.Daemon.Engine, orNull(text(id.Daemon.Machine)), b.Version, b.API, b.Kernel, b.OS, b.Arch, b.Runtime, int64(it.index), it.time)
}

// What a probe tries, and how that went.
const probedSeccomp = "seccomp"

var verdicts = map[bool]string{true: "held", false: "not_held"}

// probed stores what a runtime's own stream tells of it.
func (f *facts) probed(c *conn, it *item) error {
	var probe any
	e, probed := it.payload.(evidence.RuntimeProbed)
	if probed && e.ProvesSeccomp() {
		probe = int64(it.index)
	}
	name := "sha256:" + it.id
	err := c.run(`INSERT INTO runtime_rows (runtime, first_index, seen, probed) VALUES (?, ?, ?, ?)
		ON CONFLICT (runtime) DO UPDATE SET probed = coalesce(excluded.probed, probed)`,
		name, int64(it.index), it.time, probe)
	if err != nil {
		return err
	}
	if seen, ok := it.payload.(evidence.CanaryObserved); ok {
		return c.run("INSERT OR REPLACE INTO qualification_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			int64(it.index), name, seen.Table.String(), seen.Image.String(), seen.Corpus.String(), string(seen.Canary), string(seen.Verdict), string(seen.Attempt), it.time)
	}
	if !probed {
		return nil
	}
	return c.run("INSERT OR REPLACE INTO qualification_rows VALUES (?, ?, NULL, ?, NULL, ?, ?, ?, ?)",
		int64(it.index), name, e.Image.String(), probedSeccomp, verdicts[e.ProvesSeccomp()], string(e.Attempt), it.time)
}
