package warden

import (
	"crypto/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// network makes one on the daemon under labels.
func (s *shelf) network(t *testing.T, name string, request evidence.RequestDigest, handle evidence.HandleKey) evidence.ContainerID {
	var id evidence.ContainerID
	require.NoError(t, id.UnmarshalText([]byte(s.ask(t, "/networks/create", map[string]any{"Name": name, "Labels": ownedBy(request, handle)}))))
	return id
}

// req E8, req E3, req E4: a network is under the same custody as a container, and is closed by the same
// code: found by both labels, removed by full ID, absent by the daemon's word; after the containers on it.
func TestNetworksUnderCustody(t *testing.T) {
	for name, c := range map[string]struct {
		known  bool // its ID is on record
		fault  *fakedaemon.Fault
		action Action
		code   string
	}{
		"answer lost":      {false, nil, ActionCleared, ""},
		"ID on record":     {true, nil, ActionCleared, ""},
		"reply lost":       {true, &fakedaemon.Fault{Call: fakedaemon.CallNetworkRemove, Effect: fakedaemon.DropReply{}}, ActionCleared, ""},
		"denied, and done": {true, &fakedaemon.Fault{Call: fakedaemon.CallNetworkRemove, Effect: fakedaemon.FailedDone{Status: 403}}, ActionCleared, ""},
		"can't be read":    {true, &fakedaemon.Fault{Call: fakedaemon.CallNetworkInspect, Effect: fakedaemon.Refuse{}, Times: fakedaemon.Always}, ActionUnconfirmed, executor.OpenUnreadable},
		"can't be found":   {false, &fakedaemon.Fault{Call: fakedaemon.CallNetworkList, Effect: fakedaemon.Refuse{}, Times: fakedaemon.Always}, ActionUnconfirmed, executor.OpenLookup},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			taken := s.taken()
			taken.Kind, taken.Name = evidence.CustodyNetwork, "baildock-net"
			require.NoError(t, s.rec.Record(t.Context(), taken))
			id := s.network(t, taken.Name, taken.Request, taken.Handle)
			twin := s.network(t, "twin", taken.Request, evidence.HandleKey{9}) // one label is not both
			if c.known {
				require.NoError(t, s.rec.Record(t.Context(), evidence.ContainerCreated{Handle: taken.Handle, Container: id}))
			}
			require.NoError(t, s.rec.Close())
			if c.fault != nil {
				s.daemon.Fault(*c.fault)
			}
			met, err := s.warden.Supervise(t.Context(), Pass{Custody: s.open(t)}, nil)
			require.NoError(t, err)
			require.Len(t, met, 1)
			require.Equal(t, c.action, met[0].Action, met[0].Detail)
			require.Contains(t, met[0].Detail, c.code)
			require.Equal(t, evidence.CustodyNetwork, met[0].Object.Kind)
			s.daemon.ClearFaults()
			left := s.listed(t)
			require.Contains(t, left, twin)
			require.Equal(t, c.action != ActionCleared, slices.Contains(left, id))
			for _, r := range s.daemon.Requests(fakedaemon.CallNetworkRemove) {
				require.Equal(t, id.Hex(), r.Object)
			}
			require.Empty(t, s.daemon.Requests(fakedaemon.CallRemove))
		})
	}
}

func (s *shelf) listed(t *testing.T) []evidence.ContainerID {
	all, err := s.warden.Driver.FindLabelled(t.Context(), evidence.CustodyNetwork)
	require.NoError(t, err)
	var ids []evidence.ContainerID
	for _, l := range all {
		ids = append(ids, l.ID)
	}
	return ids
}

// req E8: of several custodies containers go before the network that they are on, in whatever order they
// were taken.
func TestContainersGoBeforeTheirNetwork(t *testing.T) {
	s := newShelf(t)
	net := s.taken()
	net.Kind, net.Name = evidence.CustodyNetwork, "baildock-net"
	_, err := rand.Read(net.Handle[:])
	require.NoError(t, err)
	require.NoError(t, s.rec.Record(t.Context(), net, s.taken()))
	id := s.network(t, net.Name, net.Request, net.Handle)
	made, err := s.warden.Driver.Create(t.Context(), s.plan)
	require.NoError(t, err)
	require.NoError(t, s.rec.Record(t.Context(), evidence.ContainerCreated{Handle: net.Handle, Container: id},
		evidence.ContainerCreated{Handle: s.plan.Handle, Container: made.ID}))
	open := s.rec.Open()
	slices.SortFunc(open, func(a, b evidence.Custody) int { return -slices.Compare([]byte(a.Kind), []byte(b.Kind)) })
	require.Equal(t, evidence.CustodyNetwork, open[0].Kind)
	require.NoError(t, executor.Reconciler{Driver: s.warden.Driver, Recorder: s.rec}.Reconcile(t.Context(), open...))
	require.Empty(t, s.rec.Open())
	require.Empty(t, s.listed(t))
	require.Empty(t, s.daemon.Containers())
	removed := s.daemon.Requests(fakedaemon.CallRemove, fakedaemon.CallNetworkRemove)
	require.Len(t, removed, 2)
	require.Equal(t, fakedaemon.CallRemove, removed[0].Call)
	require.NoError(t, s.rec.Close())
}
