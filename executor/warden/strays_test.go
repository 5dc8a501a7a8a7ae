package warden

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/executor"
	"github.com/baildock/baildock/executor/fakedaemon"
)

// ask sends a request of somebody else with the socket and returns the ID it got.
func (y *yard) ask(t testing.TB, path string, body map[string]any) string {
	b, err := json.Marshal(body)
	require.NoError(t, err)
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", y.daemon.Socket)
	}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://daemon/v1.41"+path, strings.NewReader(string(b)))
	require.NoError(t, err)
	resp, err := c.Do(req)
	require.NoError(t, err)
	var made struct{ Id string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&made))
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	return made.Id
}

func (y *yard) labelled(t testing.TB, name string, labels map[string]string) string {
	return y.ask(t, "/containers/create?name="+name, map[string]any{"Image": y.image.String(), "Cmd": []string{"/other"}, "Labels": labels})
}

func ownedBy(request evidence.RequestDigest, handle evidence.HandleKey) map[string]string {
	return map[string]string{executor.LabelRequest: request.String(), executor.LabelHandle: handle.String()}
}

// req E8, req G8, req E7: what carries our labels and no open custody of this ledger names is shown with
// what there is to know of it, and never touched; what custody names is no stray, and a run's own pass
// doesn't look.
func TestSuperviseShowsStrays(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	away := y.die(t, "away", made, elsewhereClaim)
	waiting := y.die(t, "waiting", lost, elsewhereClaim) // its create's answer was lost: the labels name it
	closed := y.die(t, "closed", made)
	_, err := y.recoverBy(t, closed.id, 1, evidence.FencedByRecover)
	require.NoError(t, err)
	given := y.abandoned(t, "given")

	requestOf := func(h husk) evidence.RequestDigest {
		c, ok := y.stored(t, h.id).Custodies.MainContainer()
		require.True(t, ok)
		return c.Request
	}
	plain := y.labelled(t, "somebodys", map[string]string{"dev.other": "x"})
	want := map[string]string{ // by ID, why it is shown
		y.labelled(t, "other-home", ownedBy(evidence.RequestDigest{1}, evidence.HandleKey{2})):                                   "no custody in this ledger names it",
		y.labelled(t, "half", map[string]string{executor.LabelHandle: evidence.HandleKey{3}.String(), "dev.baildock.more": "x"}): "no handle and request",
		y.labelled(t, "twin", ownedBy(requestOf(away), away.handle)):                                                             "custody names another",
		y.labelled(t, "late", ownedBy(requestOf(closed), closed.handle)):                                                         "custody names another",
		given.container.Hex(): "attempt given gave it up",
		y.ask(t, "/networks/create", map[string]any{"Name": "left-net", "Labels": ownedBy(evidence.RequestDigest{4}, evidence.HandleKey{5})}): "no custody",
	}
	before := len(y.daemon.Containers())
	y.daemon.ClearFaults()

	met, err := y.warden.Supervise(t.Context(), Pass{Audit: true, Strays: true}, nil)
	require.NoError(t, err)
	shown := map[string]Supervised{}
	for _, m := range met {
		if m.Action == ActionUnknown {
			require.Empty(t, m.Attempt)
			shown[m.Object.ID] = m
		}
	}
	require.Len(t, shown, len(want))
	for id, why := range want {
		require.Contains(t, shown[id].Detail, why)
		require.NotEmpty(t, shown[id].Object.Name)
		require.NotEmpty(t, shown[id].Object.Labels)
		require.NotContains(t, shown[id].Object.Labels, "dev.other")
		require.False(t, shown[id].Object.Created.IsZero())
	}
	require.NotContains(t, shown, plain)
	require.NotContains(t, shown, away.container.Hex())
	require.NotContains(t, shown, waiting.container.Hex())
	require.Len(t, y.daemon.Containers(), before)
	y.sound(t, closed.container, given.container)

	lists := y.daemon.Count(fakedaemon.CallList)
	for _, m := range y.pass(t, Pass{Patient: true}) {
		require.NotEqual(t, ActionUnknown, m.Action)
	}
	require.Equal(t, lists, y.daemon.Count(fakedaemon.CallList))
}

func elsewhereClaim(c *journal.Claim, _ *evidence.DaemonIdentity) { c.Home.Home[3]++ }

// req E8: a daemon that can't say what it holds is told of, not passed over.
func TestSuperviseCantList(t *testing.T) {
	for _, call := range []fakedaemon.Call{fakedaemon.CallList, fakedaemon.CallNetworkList} {
		y := newYard(t, fakedaemon.Options{})
		y.daemon.Fault(fakedaemon.Fault{Call: call, Effect: fakedaemon.Refuse{}, Times: fakedaemon.Always})
		met, err := y.warden.Supervise(t.Context(), Pass{Strays: true}, nil)
		require.NoError(t, err)
		require.Len(t, met, 1)
		require.Equal(t, ActionFailed, met[0].Action)
		require.Error(t, met[0].Err)
		require.Contains(t, met[0].Detail, "can't be listed")
	}
}

// A container that its runner removes while a pass looks is no stray.
func TestSuperviseStrayThatGoes(t *testing.T) {
	y := newYard(t, fakedaemon.Options{})
	id := y.labelled(t, "going", ownedBy(evidence.RequestDigest{1}, evidence.HandleKey{2}))
	y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallInspect, Effect: fakedaemon.Interfere{Action: fakedaemon.ActRemove, Before: true},
		If: func(r fakedaemon.Request) bool { return r.Object == id }})
	require.Empty(t, y.pass(t, Pass{Strays: true}))
}

// abandoned is an attempt whose container was given up and is still there.
func (y *yard) abandoned(t testing.TB, id string) husk {
	h := y.die(t, id, lost)
	y.daemon.Fault(fakedaemon.Fault{Call: fakedaemon.CallList, Effect: fakedaemon.Refuse{}, Times: fakedaemon.Always})
	_, err := y.recoverBy(t, h.id, 1, evidence.FencedByRecover)
	var open *UnconfirmedError
	require.ErrorAs(t, err, &open)
	_, err = y.warden.Recover(t.Context(), RecoverRequest{Attempt: h.id, Generation: 2, By: evidence.FencedByRecover, Abandon: true}, nil)
	require.NoError(t, err)
	return h
}
