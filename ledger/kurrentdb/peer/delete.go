package peer

import (
	"context"
	"math"

	"github.com/google/uuid"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// Delete is a soft delete: it hides what is there, and the stream goes on behind it.
func (n *Node) Delete(ctx context.Context, req *streams.DeleteReq) (*streams.DeleteResp, error) {
	o := req.GetOptions()
	expected := expectAny
	switch e := o.ExpectedStreamRevision.(type) {
	case *streams.DeleteReq_Options_Revision:
		expected = expectation(e.Revision)
	case *streams.DeleteReq_Options_NoStream:
		expected = expectNoStream
	case *streams.DeleteReq_Options_StreamExists:
		expected = expectExists
	}
	r, err := n.remove(ctx, string(o.GetStreamIdentifier().GetStreamName()), expected, func(l *log, name string) *record {
		return l.putMetadata(name, l.truncate(name, softDeleted))
	})
	if err != nil {
		return nil, err
	}
	return &streams.DeleteResp{PositionOption: &streams.DeleteResp_Position_{
		Position: &streams.DeleteResp_Position{CommitPosition: r.position, PreparePosition: r.position},
	}}, nil
}

// Tombstone deletes a stream for ever: it can't be written or read again.
func (n *Node) Tombstone(ctx context.Context, req *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	o := req.GetOptions()
	expected := expectAny
	switch e := o.ExpectedStreamRevision.(type) {
	case *streams.TombstoneReq_Options_Revision:
		expected = expectation(e.Revision)
	case *streams.TombstoneReq_Options_NoStream:
		expected = expectNoStream
	case *streams.TombstoneReq_Options_StreamExists:
		expected = expectExists
	}
	r, err := n.remove(ctx, string(o.GetStreamIdentifier().GetStreamName()), expected, func(l *log, name string) *record {
		r := l.put(name, math.MaxInt64, proposed{id: uuid.New(), typ: typeStreamDeleted, content: "application/octet-stream"})
		l.stream(name).tombstoned = true
		return r
	})
	if err != nil {
		return nil, err
	}
	return &streams.TombstoneResp{PositionOption: &streams.TombstoneResp_Position_{
		Position: &streams.TombstoneResp_Position{CommitPosition: r.position, PreparePosition: r.position},
	}}, nil
}

func (n *Node) remove(ctx context.Context, name string, expected expectation, write func(*log, string) *record) (*record, error) {
	if err := n.admit(ctx); err != nil {
		return nil, err
	}
	if err := n.needLeader(ctx); err != nil {
		return nil, err
	}
	if err := n.mayDelete(ctx, name); err != nil {
		return nil, err
	}
	fault := n.cluster.nextFault(Write{Node: n.Number, Stream: name})
	if fault == TimeoutLost {
		return nil, errTimeout()
	}
	l := n.cluster.log
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stream(name)
	if s.tombstoned {
		return nil, errDeleted(name)
	}
	if last := s.last(); expected == expectExists && last < 0 || expected >= expectNoStream && int64(expected) != last {
		return nil, errWrongVersion(name, int64(expected), last)
	}
	r := write(l, name)
	l.tell()
	if fault == TimeoutDone {
		return nil, errTimeout()
	}
	return r, nil
}
