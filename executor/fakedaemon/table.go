package fakedaemon

import (
	"net/http"
	"strings"
)

// Default is the plain fault of a kind on a call, for tables of every call and kind; false where
// the kind means nothing for the call.
func Default(c Call, k FaultKind) (Fault, bool) {
	r := routeOf(c)
	if r == nil {
		return Fault{}, false
	}
	f := Fault{Call: c}
	f.Effect = everywhere(k)
	if f.Effect == nil && r.shape == document {
		f.Effect = onDocument(c, k)
	}
	if f.Effect == nil && r.shape == flow {
		f.Effect = onFlow(c, k)
	}
	if f.Effect == nil {
		f.Effect = onObject(r, k)
	}
	if k == KindFlip {
		f.Nth, f.Every, f.Times = 2, 2, Always
	}
	return f, f.Effect != nil
}

// Cells is Default of every call and kind that has one; with calls given, only theirs.
func Cells(calls ...Call) []Fault {
	if len(calls) == 0 {
		calls = Calls()
	}
	var all []Fault
	for _, c := range calls {
		for _, k := range Kinds() {
			if f, ok := Default(c, k); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

func everywhere(k FaultKind) Effect {
	switch k {
	case KindRefuse:
		return Refuse{}
	case KindDropBefore:
		return DropBefore{}
	case KindDropReply:
		return DropReply{}
	case KindLate:
		return Late{}
	case KindSlow:
		return Slow{}
	case KindSlowReply:
		return SlowReply{}
	case KindFailedDone:
		return FailedDone{}
	case KindDeniedDone:
		return FailedDone{Status: http.StatusConflict}
	case KindReplaced:
		return Replaced{}
	case KindSwapped:
		return Swapped{}
	case KindChanged:
		return Changed{}
	case KindInterfere:
		return Interfere{Action: ActExec}
	}
	return nil
}

// fields is a field of each document whose loss or change must be noticed.
var fields = map[Call]Override{
	CallVersion:        {"/ApiVersion", ""},
	CallInfo:           {"/ID", ""},
	CallImageList:      {"/*/Id", "sha256:1"},
	CallImageInspect:   {"/Id", "sha256:1"},
	CallCreate:         {"/Id", "1"},
	CallList:           {"/*/Id", strings.Repeat("0", 64)},
	CallInspect:        {"/HostConfig/ReadonlyRootfs", false},
	CallNetworkInspect: {"/Id", "1"},
	CallNetworkCreate:  {"/Id", "1"},
	CallExecCreate:     {"/Id", "1"},
}

func onDocument(c Call, k FaultKind) Effect {
	switch k {
	case KindStalled:
		return Stalled{}
	case KindTruncated:
		return Truncated{}
	case KindMalformed:
		return Malformed{}
	case KindRepeatedKey:
		return RepeatedKey{}
	case KindOversized:
		return Oversized{}
	}
	o, ok := fields[c]
	if !ok {
		return nil
	}
	switch k {
	case KindOverride:
		return o
	case KindMissing:
		return Missing{o.Pointer}
	case KindFlip:
		return Flip{o}
	}
	return nil
}

func onFlow(c Call, k FaultKind) Effect {
	within := map[Call]int{CallAttach: 9, CallEvents: 40, CallWait: 5, CallImageLoad: 10, CallCopyFrom: 100}[c]
	switch k {
	case KindCut:
		return Cut{within}
	case KindSilent:
		return Silent{within}
	case KindMalformed:
		if c != CallCopyFrom { // whose bytes may be any
			return Malformed{}
		}
	case KindOversized:
		if c != CallCopyFrom {
			return Oversized{}
		}
	case KindLost:
		if c == CallEvents {
			return Lost{}
		}
	}
	return nil
}

func onObject(r *route, k FaultKind) Effect {
	named := r.path.NumSubexp() > 0
	switch {
	case k == KindAbsent && (named || r.call == CallCreate):
		return Absent{}
	case k == KindIgnored && (r.shape == empty && r.call != CallPing && r.call != CallCopyStat || r.call == CallCreate || r.call == CallUpdate):
		return Ignored{}
	case k == KindWrongLabel && (r.call == CallInspect || r.call == CallList):
		return WrongLabel{}
	case k == KindNoLabel && (r.call == CallInspect || r.call == CallList):
		return NoLabel{}
	case k == KindWarned && (r.call == CallCreate || r.call == CallUpdate):
		return Warned{}
	}
	return nil
}
