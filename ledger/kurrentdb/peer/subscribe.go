package peer

import (
	"github.com/google/uuid"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// subscribeAll sends what lies behind a position, exclusively, says that it caught up, and goes on
// with what is appended. A filtered one tells how far it looked after every window.
func (n *Node) subscribeAll(from *streams.ReadReq_Options_AllOptions, filter *streams.ReadReq_Options_FilterOptions, call streams.Streams_ReadServer) error {
	ctx := call.Context()
	matches, err := matcher(filter)
	if err != nil {
		return err
	}
	l := n.cluster.log
	next, exclusive := uint64(0), false // the first position to look at
	switch p := from.AllOption.(type) {
	case *streams.ReadReq_Options_AllOptions_Position:
		next, exclusive = p.Position.CommitPosition, true
	case *streams.ReadReq_Options_AllOptions_End:
		l.mu.Lock()
		next = n.end()
		l.mu.Unlock()
	}
	confirm := &streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()},
	}}
	if err := call.Send(confirm); err != nil {
		return err
	}
	window := uint32(0)
	if filter != nil {
		window = max(filter.GetMax(), 1) * max(filter.GetCheckpointIntervalMultiplier(), 1)
	}
	looked, sent, caughtUp := uint32(0), 0, false
	for {
		l.mu.Lock()
		records, grown := l.records[:l.after(n.end())], l.grown
		at := min(l.after(next), len(records))
		if exclusive && at < len(records) && records[at].position == next {
			at++
		}
		page := append([]*record(nil), records[at:min(len(records), at+500)]...)
		gone := map[*record]bool{}
		for _, r := range page {
			if r.gone {
				gone[r] = true
			}
		}
		l.mu.Unlock()
		for _, r := range page {
			next, exclusive = r.position, true
			if !gone[r] && matches(r) {
				if n.cluster.cutRead(sent) {
					n.Cut()
					<-ctx.Done()
					return ctx.Err()
				}
				sent++
				if err := call.Send(eventOf(r, false)); err != nil {
					return err
				}
			}
			if looked++; window > 0 && looked%window == 0 {
				checkpoint := &streams.ReadResp_Checkpoint{CommitPosition: r.position, PreparePosition: r.position}
				if err := call.Send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{Checkpoint: checkpoint}}); err != nil {
					return err
				}
			}
		}
		if len(page) > 0 {
			continue
		}
		if !caughtUp {
			caughtUp = true
			if !n.cluster.opts.NoCaughtUp {
				if err := call.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}}); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.stopped():
			return errNotReady()
		case <-grown:
		}
	}
}
