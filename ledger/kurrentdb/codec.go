package kurrentdb

import (
	"strconv"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// The client ends the process when an event's creation time isn't a number, and follows a missing
// stream name into a panic. Neither means anything here, so they are put right while the message
// is decoded, before the client sees it. gRPC offers no other place, and only initialisation may
// change its codec.
func init() { encoding.RegisterCodecV2(mendingCodec{encoding.GetCodecV2(proto.Name)}) }

// mendingCodec is the protobuf codec with a look at what a server sends as an event.
type mendingCodec struct{ encoding.CodecV2 }

func (c mendingCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if err := c.CodecV2.Unmarshal(data, v); err != nil {
		return err
	}
	if r, ok := v.(*streams.ReadResp); ok {
		if e := r.GetEvent(); e != nil {
			mend(e.Event)
			mend(e.Link)
		}
	}
	return nil
}

func mend(e *streams.ReadResp_ReadEvent_RecordedEvent) {
	if e == nil {
		return
	}
	if _, err := strconv.ParseInt(e.Metadata["created"], 10, 64); err != nil {
		if e.Metadata == nil {
			e.Metadata = map[string]string{}
		}
		e.Metadata["created"] = "0"
	}
	if e.StreamIdentifier == nil {
		e.StreamIdentifier = &shared.StreamIdentifier{}
	}
}
