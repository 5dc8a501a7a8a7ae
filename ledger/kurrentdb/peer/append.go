package peer

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

const (
	typeStreamDeleted = "$streamDeleted"
	typeMetadata      = "$metadata"
)

// proposed is an event as a client sends it.
type proposed struct {
	id      uuid.UUID
	typ     string
	content string
	data    []byte
	meta    []byte
}

func (p proposed) size() int { return len(p.data) + len(p.meta) + len(p.typ) }

// expectation is what a writer expects of a stream; values below 0 are those of the protocol.
type expectation int64

const (
	expectNoStream expectation = -1
	expectAny      expectation = -2
	expectExists   expectation = -4
)

// Append is the protocol's call: options, then events, then one reply.
func (n *Node) Append(call streams.Streams_AppendServer) error {
	ctx := call.Context()
	if err := n.admit(ctx); err != nil {
		return err
	}
	first, err := call.Recv()
	if err != nil {
		return err
	}
	o := first.GetOptions()
	if o == nil {
		return errInvalid("the first message holds no options")
	}
	name := string(o.GetStreamIdentifier().GetStreamName())
	expected := expectAny
	switch e := o.ExpectedStreamRevision.(type) {
	case *streams.AppendReq_Options_Revision:
		expected = expectation(e.Revision)
	case *streams.AppendReq_Options_NoStream:
		expected = expectNoStream
	case *streams.AppendReq_Options_StreamExists:
		expected = expectExists
	}
	var events []proposed
	size := 0
	for {
		m, err := call.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		p := m.GetProposedMessage()
		if p == nil {
			return errInvalid("a message holds no event")
		}
		e := proposed{id: idOf(p.Id), typ: p.Metadata["type"], content: p.Metadata["content-type"], data: p.Data, meta: p.CustomMetadata}
		if size += e.size(); size > n.cluster.opts.MaxAppend {
			return errTooLarge(n.cluster.opts.MaxAppend)
		}
		events = append(events, e)
	}
	return n.write(ctx, name, expected, events, call.SendAndClose)
}

// write is an append with the fault that the script has for it.
func (n *Node) write(ctx context.Context, name string, expected expectation, events []proposed, reply func(*streams.AppendResp) error) error {
	fault := n.cluster.nextFault(Write{Node: n.Number, Stream: name, Events: len(events)})
	switch fault {
	case NotReady:
		return errNotReady()
	case TimeoutLost:
		return errTimeout()
	case SilentLost:
		<-ctx.Done()
		return ctx.Err()
	case CutBefore:
		n.Cut()
		<-ctx.Done()
		return ctx.Err()
	}
	resp, err := n.append(ctx, name, expected, events)
	if err != nil {
		return err
	}
	switch fault {
	case TimeoutDone:
		return errTimeout()
	case SilentDone:
		<-ctx.Done()
		return ctx.Err()
	case CutAfter:
		n.Cut()
		<-ctx.Done()
		return ctx.Err()
	}
	return reply(resp)
}

// append judges and stores. Only the leader's log decides; a follower passes writes on unless the
// caller asked for the leader.
func (n *Node) append(ctx context.Context, name string, expected expectation, events []proposed) (*streams.AppendResp, error) {
	if err := n.needLeader(ctx); err != nil {
		return nil, err
	}
	if n.isolated() {
		return nil, errTimeout()
	}
	if err := n.mayWrite(ctx, name); err != nil {
		return nil, err
	}
	l := n.cluster.log
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stream(name)
	if s.tombstoned || strings.HasPrefix(name, "$$") && l.stream(name[2:]).tombstoned {
		return nil, errDeleted(name)
	}
	last := s.last()
	switch l.judge(s, expected, events) {
	case conflict:
		return wrongVersion(expected, last), nil
	case alreadyThere:
		resp := &streams.AppendResp_Success{
			CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: uint64(last)},
			PositionOption:        &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}},
		}
		return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: resp}}, nil
	}
	reopened := s.meta.softDeleted()
	success := &streams.AppendResp_Success{}
	for i, e := range events {
		r := l.put(name, uint64(last+1)+uint64(i), e)
		success.CurrentRevisionOption = &streams.AppendResp_Success_CurrentRevision{CurrentRevision: r.revision}
		success.PositionOption = &streams.AppendResp_Success_Position{
			Position: &streams.AppendResp_Position{CommitPosition: r.position, PreparePosition: r.position},
		}
	}
	if reopened { // the stream goes on where it was deleted; what came before stays hidden
		l.putMetadata(name, l.truncate(name, last+1))
	}
	if len(events) == 0 {
		success.CurrentRevisionOption = &streams.AppendResp_Success_NoStream{NoStream: &shared.Empty{}}
		success.PositionOption = &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}}
	}
	l.tell()
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}}, nil
}

func (l *log) putMetadata(name string, data []byte) *record {
	s := l.stream("$$" + name)
	return l.put("$$"+name, uint64(s.last()+1), proposed{id: uuid.New(), typ: typeMetadata, content: "application/json", data: data})
}

type judgement int

const (
	store judgement = iota
	conflict
	alreadyThere
)

// judge is the table of expected revisions and of idempotency by event ID.
func (l *log) judge(s *stream, expected expectation, events []proposed) judgement {
	last := s.last()
	switch {
	case expected == expectExists:
		if last < 0 || s.meta.softDeleted() {
			return conflict
		}
		fallthrough
	case expected == expectAny:
		for at := 0; at+len(events) <= len(s.records); at++ { // the server remembers recent IDs only: it promises nothing here
			if len(events) > 0 && same(s.records[at:at+len(events)], events) {
				return alreadyThere
			}
		}
		return store
	case expected == expectNoStream && (last < 0 || s.meta.softDeleted()):
		return store
	case int64(expected) == last: // the IDs aren't looked at here
		return store
	case int64(expected) > last:
		return conflict
	}
	first := int(expected) + 1
	if first+len(events) <= len(s.records) && same(s.records[first:first+len(events)], events) {
		return alreadyThere
	}
	return conflict
}

func same(stored []*record, events []proposed) bool {
	return slices.EqualFunc(stored, events, func(r *record, e proposed) bool { return r.id == e.id })
}

// wrongVersion is a reply, not an error: the call itself succeeded.
func wrongVersion(expected expectation, last int64) *streams.AppendResp {
	w := &streams.AppendResp_WrongExpectedVersion{}
	if last < 0 {
		w.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}}
	} else {
		w.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(last)}
	}
	switch expected {
	case expectNoStream:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}}
	case expectAny:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedAny{ExpectedAny: &shared.Empty{}}
	case expectExists:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &shared.Empty{}}
	default:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: uint64(expected)}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: w}}
}

func wantsLeader(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	v := md.Get("requires-leader")
	return len(v) > 0 && strings.EqualFold(v[0], "true")
}
