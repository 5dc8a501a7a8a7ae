package peer

import (
	"fmt"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// refusal is an error whose facts travel in trailers, as the protocol has it.
type refusal struct {
	*status.Status
	trailer metadata.MD
}

func (r *refusal) Error() string              { return r.Status.Err().Error() }
func (r *refusal) GRPCStatus() *status.Status { return r.Status }

func refuse(code codes.Code, message string, trailer ...string) error {
	return &refusal{status.New(code, message), metadata.Pairs(trailer...)}
}

func errInvalid(what string) error { return refuse(codes.InvalidArgument, what) }

func errNotReady() error { return refuse(codes.Unavailable, "Server Is Not Ready") }

func errTimeout() error { return refuse(codes.Aborted, "Operation timed out: Commit phase timeout.") }

func errDenied() error {
	return refuse(codes.PermissionDenied, "Access Denied", "exception", "access-denied")
}

func errUnauthenticated() error { return refuse(codes.Unauthenticated, "Unauthenticated") }

func errTooLarge(limit int) error {
	return refuse(codes.InvalidArgument, fmt.Sprintf("Maximum Append Size of %d Exceeded.", limit),
		"exception", "maximum-append-size-exceeded", "maximum-append-size", strconv.Itoa(limit))
}

func errDeleted(stream string) error {
	return refuse(codes.FailedPrecondition, fmt.Sprintf("Event stream '%s' is deleted.", stream),
		"exception", "stream-deleted", "stream-name", stream)
}

func errWrongVersion(stream string, expected, actual int64) error {
	return refuse(codes.FailedPrecondition, fmt.Sprintf("Delete failed due to WrongExpectedVersion. Stream: %s, Expected version: %d, Actual version: %d", stream, expected, actual),
		"exception", "wrong-expected-version", "stream-name", stream,
		"expected-version", strconv.FormatInt(expected, 10), "actual-version", strconv.FormatInt(actual, 10))
}

func errNotLeader(host string, port int) error {
	return refuse(codes.NotFound, "Leader info available", "exception", "not-leader",
		"leader-endpoint-host", host, "leader-endpoint-port", strconv.Itoa(port))
}

func errNoLeader() error { return refuse(codes.Unknown, "No leader info available in response") }
