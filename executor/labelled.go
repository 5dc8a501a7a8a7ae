package executor

import "github.com/baildock/baildock/evidence"

// Labelled is a daemon object that carries a label of ours, as the daemon lists it. Anybody with the
// socket can make one: it is shown, and nothing follows from it.
type Labelled struct {
	Kind    evidence.CustodyKind
	ID      evidence.ContainerID // full; a network's has the same form
	Name    string
	Labels  map[string]string // those under LabelPrefix
	Status  string            // running, exited, …; empty for a network
	Created int64             // ns since the epoch, the daemon's word; 0 = it doesn't say
}

// Owner reads both ownership labels; false unless both are well formed.
func (l Labelled) Owner() (evidence.RequestDigest, evidence.HandleKey, bool) {
	var request evidence.RequestDigest
	var handle evidence.HandleKey
	err := request.UnmarshalText([]byte(l.Labels[LabelRequest]))
	if err == nil {
		err = handle.UnmarshalText([]byte(l.Labels[LabelHandle]))
	}
	return request, handle, err == nil
}
