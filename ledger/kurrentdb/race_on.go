//go:build race

package kurrentdb

// raceDetector: closing a client under a call that can only be stuck is what the detector reports.
// Such a call then stays, in tests.
const raceDetector = true
