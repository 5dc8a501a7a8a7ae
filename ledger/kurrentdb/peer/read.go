package peer

import (
	"cmp"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// Read is the protocol's call for reads of a stream or of $all, and for subscriptions.
func (n *Node) Read(req *streams.ReadReq, call streams.Streams_ReadServer) error {
	ctx := call.Context()
	if err := n.admit(ctx); err != nil {
		return err
	}
	if err := n.needLeader(ctx); err != nil {
		return err
	}
	o := req.GetOptions()
	if n.cluster.readFault(n.Number) {
		n.Cut()
		<-ctx.Done()
		return ctx.Err()
	}
	if all := o.GetAll(); all != nil {
		if err := n.mayReadAll(ctx); err != nil {
			return err
		}
		if o.GetSubscription() != nil {
			return n.subscribeAll(all, o.GetFilter(), call)
		}
		return n.readAll(all, o, call)
	}
	if o.GetSubscription() != nil {
		return errInvalid("this peer has no subscriptions to single streams")
	}
	return n.readStream(o.GetStream(), o, call)
}

func (n *Node) readStream(from *streams.ReadReq_Options_StreamOptions, o *streams.ReadReq_Options, call streams.Streams_ReadServer) error {
	name := string(from.GetStreamIdentifier().GetStreamName())
	l := n.cluster.log
	l.mu.Lock()
	s, end := l.streams[name], n.end()
	var page []*record
	if s != nil {
		if s.tombstoned {
			l.mu.Unlock()
			return errDeleted(name)
		}
		page = l.visible(s, end)
	}
	l.mu.Unlock()
	if len(page) == 0 {
		return call.Send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{StreamNotFound: &streams.ReadResp_StreamNotFound{
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(name)},
		}}})
	}
	backwards := o.ReadDirection == streams.ReadReq_Options_Backwards
	at := 0 // the first one to send
	switch from := from.RevisionOption.(type) {
	case *streams.ReadReq_Options_StreamOptions_Revision:
		i, exact := slices.BinarySearchFunc(page, from.Revision, func(r *record, v uint64) int { return cmp.Compare(r.revision, v) })
		if at = i; backwards && !exact {
			at--
		}
	case *streams.ReadReq_Options_StreamOptions_End:
		if at = len(page); backwards {
			at--
		}
	}
	var out []*record
	for step := 1; at >= 0 && at < len(page) && uint64(len(out)) < o.GetCount(); at += step {
		if backwards {
			step = -1
		}
		out = append(out, page[at])
	}
	return n.send(out, true, call)
}

func (n *Node) readAll(from *streams.ReadReq_Options_AllOptions, o *streams.ReadReq_Options, call streams.Streams_ReadServer) error {
	if o.GetFilter() != nil {
		return errInvalid("this peer filters subscriptions only, as its client does")
	}
	l := n.cluster.log
	l.mu.Lock()
	records := l.records[:l.after(n.end())]
	at := 0
	switch p := from.AllOption.(type) {
	case *streams.ReadReq_Options_AllOptions_Position: // inclusive forwards, exclusive backwards
		at = l.after(p.Position.CommitPosition)
	case *streams.ReadReq_Options_AllOptions_End:
		at = len(records)
	}
	at = min(at, len(records))
	var page []*record
	if o.ReadDirection == streams.ReadReq_Options_Backwards {
		for i := at - 1; i >= 0 && uint64(len(page)) < o.GetCount(); i-- {
			if !records[i].gone {
				page = append(page, records[i])
			}
		}
	} else {
		for i := at; i < len(records) && uint64(len(page)) < o.GetCount(); i++ {
			if !records[i].gone {
				page = append(page, records[i])
			}
		}
	}
	l.mu.Unlock()
	return n.send(page, false, call)
}

func (n *Node) send(page []*record, ofStream bool, call streams.Streams_ReadServer) error {
	for i, r := range page {
		if n.cluster.cutRead(i) {
			n.Cut()
			<-call.Context().Done()
			return call.Context().Err()
		}
		if err := call.Send(eventOf(r, ofStream && n.cluster.opts.OldPositions)); err != nil {
			return err
		}
	}
	return nil
}

// noPosition is what servers before 2022 give for the position of an event read from a stream.
const noPosition = 1<<64 - 1

func eventOf(r *record, hidePosition bool) *streams.ReadResp {
	position := r.position
	if hidePosition {
		position = noPosition
	}
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id:               idTo(r.id),
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(r.stream)},
			StreamRevision:   r.revision,
			CommitPosition:   position, PreparePosition: position,
			Metadata:       map[string]string{"type": r.typ, "content-type": r.content, "created": r.created},
			CustomMetadata: r.meta, Data: r.data,
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: position},
	}}}
}

func idOf(id *shared.UUID) uuid.UUID {
	if s := id.GetStructured(); s != nil {
		var out uuid.UUID
		binary.BigEndian.PutUint64(out[:8], uint64(s.MostSignificantBits))
		binary.BigEndian.PutUint64(out[8:], uint64(s.LeastSignificantBits))
		return out
	}
	out, err := uuid.Parse(id.GetString_())
	if err != nil {
		return uuid.Nil
	}
	return out
}

func idTo(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(binary.BigEndian.Uint64(id[:8])),
		LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

// matcher tells whether a filter lets a record through.
func matcher(f *streams.ReadReq_Options_FilterOptions) (func(*record) bool, error) {
	if f == nil {
		return func(*record) bool { return true }, nil
	}
	of, expr := func(r *record) string { return r.stream }, f.GetStreamIdentifier()
	if expr == nil {
		of, expr = func(r *record) string { return r.typ }, f.GetEventType()
	}
	if expr == nil {
		return nil, errInvalid("the filter is empty")
	}
	if expr.Regex != "" {
		re, err := regexp.Compile(expr.Regex)
		if err != nil {
			return nil, errInvalid(err.Error())
		}
		return func(r *record) bool { return re.MatchString(of(r)) }, nil
	}
	return func(r *record) bool {
		return slices.ContainsFunc(expr.Prefix, func(p string) bool { return strings.HasPrefix(of(r), p) })
	}, nil
}
