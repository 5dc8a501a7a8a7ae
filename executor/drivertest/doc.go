// Package drivertest is the one suite every executor.Driver passes: the live driver against a real
// daemon and, with the same expectations, against the scripted one.
//
// An Env names what the suite may use. The image holds the program of testdata/subject, whose
// verbs are:
//
//	print OUT ERR   writes OUT to stdout and ERR to stderr, with Go's escapes in both
//	flood N         writes N zero bytes to stdout
//	exit N          exits with that status
//	sleep D         waits, e.g. 30s
//
// The suite removes every container it makes, also when a case fails.
package drivertest
