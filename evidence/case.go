package evidence

// ChangeExhibit is what admission reads of a change, as of the judgement.
type ChangeExhibit struct {
	Version   uint64
	Revision  string
	Binding   Binding  // of the present context; zero without one
	Context   *Context // nil: none is set
	ContextAt EventIndex
	EndedAt   EventIndex // without a context: the event that left it so
	Paths     *PathsChecked
	PathsAt   EventIndex
}

// PolicyExhibit is what admission reads of the context's policy. Epoch 0: it doesn't exist.
type PolicyExhibit struct {
	Epoch   uint64
	EpochAt EventIndex
}

// AttemptExhibit is what admission reads of one attempt listed for the present context. Only
// events made it; no record or state ever comes from elsewhere (req H6).
type AttemptExhibit struct {
	Attempt      AttemptID
	ListedAt     EventIndex
	Registered   *AttemptRegistered // nil: its own stream never opened
	RegisteredAt EventIndex
	AsListed     bool // its stream opens with exactly the registration listed
	State        State
	Generation   uint64 // where it stands
	Claimed      uint64 // the generation its runner claimed; 0: nobody did
	ClaimedAt    EventIndex
	Void         *EventIndex // the claim lost a race to the event there (req H5)
	Isolated     bool        // every control was found equal before the start
	IsolationAt  EventIndex
	Open         uint64 // daemon objects that may still exist
	CleanupAt    EventIndex
	Record       *Record // derived from its events; nil: not finished
	Stored       RecordDigest
	FinishedAt   EventIndex
	Runtime      *RuntimeDigest // that it was created on; nil: none was observed
}

// ApprovalExhibit is the approval an integration follows.
type ApprovalExhibit struct {
	At   EventIndex
	Void *EventIndex // it lost a race to the event there
}

// Case is all that one judgement rests on.
type Case struct {
	Change   ChangeExhibit
	Policy   PolicyExhibit
	Attempts []AttemptExhibit // those listed for the present context before the judgement, in order
	Rely     []AttemptID      // if set, only these may be relied on: those that a stored judgement names
	Breaking *EventIndex      // an event between what was read and the judgement that changes an epoch or a context

	// Canaries are the observations of each attempt's runtime, and Runs the attempts that these rest on, both
	// as of the judgement. Only a context that asks for a qualified runtime needs them.
	Canaries map[RuntimeDigest][]CanarySeen
	Runs     map[AttemptID]*CanaryRun

	Integration bool             // an approval must come first
	Approval    *ApprovalExhibit // the last one of the present context
}
