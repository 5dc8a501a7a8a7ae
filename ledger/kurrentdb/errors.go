package kurrentdb

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// ErrClosed is what a closed store answers.
var ErrClosed = errors.New("ledger is closed")

// errHung is a call that outlived its deadline inside the client.
var errHung = errors.New("the client didn't come back within the deadline")

// errUnsent is a call that never left, for want of a node.
var errUnsent = errors.New("nothing was sent")

// panicError is a panic inside the client.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the client broke: %v", e.value) }

// kind is what an error of a call means for what to do next.
type kind int

const (
	ambiguous kind = iota // it may have been done or not: ask again with the same IDs and revision
	wrongRevision
	deleted  // the stream has a tombstone
	notFound // there is no such stream, or all of it is hidden
	refused  // nothing was done, and trying again doesn't help
	redirect // nothing was done; the client is on its way to the leader
)

// kindOf reads an error of the client. Whatever isn't known to be harmless is ambiguous: cancelled,
// deadline, Aborted, Unavailable and an end of the connection all may come after the work was done.
func kindOf(err error) kind {
	var e *esdb.Error
	if errors.As(err, &e) {
		switch e.Code() {
		case esdb.ErrorCodeWrongExpectedVersion:
			return wrongRevision
		case esdb.ErrorCodeStreamDeleted:
			return deleted
		case esdb.ErrorCodeResourceNotFound:
			return notFound
		case esdb.ErrorCodeAccessDenied, esdb.ErrorCodeUnauthenticated, esdb.ErrorCodeUnsupportedFeature:
			return refused
		case esdb.ErrorCodeNotLeader:
			return redirect
		}
	}
	switch s := serverStatus(err); s.Code() {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return refused
	}
	return ambiguous
}

// serverStatus finds the server's own words in an error.
func serverStatus(err error) *status.Status {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus()
	}
	return status.New(codes.OK, "")
}

// breaks tells whether a client is of no more use after an error.
func breaks(err error) bool {
	var p *panicError
	if errors.Is(err, errHung) || errors.As(err, &p) {
		return true
	}
	var e *esdb.Error
	if errors.As(err, &e) && (e.Code() == esdb.ErrorCodeConnectionClosed || e.Code() == esdb.ErrorUnavailable) {
		return true
	}
	return serverStatus(err).Code() == codes.Unavailable
}

// explain adds the likely fix to an error that has one.
func (s *Store) explain(err error) error {
	var e *esdb.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() {
	case esdb.ErrorCodeAccessDenied:
		return fmt.Errorf("%s: the user may not do this; it needs to read $all (members of $admins may, or name it in the access list of $all) and to write streams that start with %q: %w",
			s.target.redacted, s.names.prefix, err)
	case esdb.ErrorCodeUnauthenticated:
		return fmt.Errorf("%s: the server doesn't know this user or password: %w", s.target.redacted, err)
	}
	return fmt.Errorf("%s: %w", s.target.redacted, err)
}
