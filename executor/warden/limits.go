package warden

import (
	"time"

	"github.com/baildock/baildock/executor"
)

// Allowance is how long a runner may take beside its command's wall time, from its claim to its
// finish: what an executor may take, two minutes for the largest source on a slow disk, and a
// runtime's probe, which runs at most once. Past wall time and allowance the runner may be fenced.
const Allowance = executor.Allowance + 2*time.Minute + probeWall + executor.Allowance

const (
	// minFree is the space on the ledger's disk without which nothing starts: a run's own blobs
	// are small, but a disk that fills while a container runs can't record how it ended.
	minFree = 1 << 30

	// ackBound is how long a watchdog may take to say that it guards.
	ackBound = 5 * time.Second
	// releaseBound is how long a released watchdog may take to end.
	releaseBound = 5 * time.Second
	// guardPause lies between two looks of a watchdog at a container it kills.
	guardPause = 200 * time.Millisecond
	// guardCreated is how long a created container is watched: a start that its runner sent
	// before it died may still come.
	guardCreated = time.Minute
	// guardErrors is how long a watchdog goes on against a daemon that fails.
	guardErrors = 5 * time.Minute
	// maxWatchdogLine is one line of its input: 64 hex digits, or a word.
	maxWatchdogLine = 128

	// maxCustodyFile is the length of a custody file: a handful of events of a few hundred bytes.
	maxCustodyFile = 64 << 10
	// maxCustodyNames is how many files the custody directory may hold: thousands of dead preflights.
	maxCustodyNames = 8192

	// closeBound is how long a record under way is waited for when its recorder is closed; what gave it up
	// has waited for it before.
	closeBound = 2 * time.Second

	// maxLockRaces is how often a lock file may be deleted by its last holder while it is taken.
	maxLockRaces = 100

	// RecoverBound is how long a supervisor may work on one attempt: two custodies, each against a
	// daemon that answers at the last moment, and a source on a slow disk.
	RecoverBound = 2*executor.ReconcileBound + 2*time.Minute
	// scanBound is how long a source of names may take, the whole ledger read once among them: millions
	// of events.
	scanBound = 5 * time.Minute
	// leaveBound is how long after its deadline something is waited for: an executor still records
	// how far it came, each append within its own bound.
	leaveBound = time.Minute
	// maxRecoveries is how many attempts a supervisor works on at once: their daemon is the same one.
	maxRecoveries = 16
	// openingPatience is how long a listing of an attempt may stand without the attempt's own stream,
	// which the same use case opens within milliseconds; a custody file's lock without the file, too.
	openingPatience = 10 * time.Second
	// fencePatience is how long a fence by somebody else is respected: longer than a recovery takes.
	fencePatience = RecoverBound + time.Minute
	// firstPatience, doubled by every fence up to lastPatience, is how long an attempt is left alone
	// after a recovery of it failed, so that a container that can't be removed doesn't fill the ledger.
	firstPatience = 15 * time.Second
	lastPatience  = time.Hour
	maxDoublings  = 16
	// fencedPatience is how long a fenced runner waits for the recovery that took its attempt, to tell
	// how it ended.
	fencedPatience = 5 * time.Second
	fencedPause    = 20 * time.Millisecond

	// workspaceAllowance is what a preflight's probe, and preparing, capturing and removing the largest
	// workspace may take beside the rest.
	workspaceAllowance = probeWall + executor.Allowance + 5*time.Minute + captureBound + 2*time.Minute
	// captureBound is how long what an agent changed may be looked for: a gigabyte is read twice.
	captureBound = 5 * time.Minute
	// maxDiff is the diff kept of a run; the whole of it is in the patch that a person asks for.
	maxDiff = 256 << 10

	// Limits of a probe: a small static program that prints a few hundred bytes.
	probeWall    = 20 * time.Second
	probeOutput  = 16 << 10
	probeMemory  = 256 << 20
	probeScratch = 1 << 20
	probePIDs    = 64
	probeCPUs    = 1_000_000_000
)
