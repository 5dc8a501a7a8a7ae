// Package conformance holds golden vectors for other implementations of the formats, and runs them against
// this one. README.md says how to run them elsewhere; BAILDOCK_UPDATE=1 writes them anew, which only a change
// of format may need.
package conformance
