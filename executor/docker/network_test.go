package docker

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/executor"
)

// req E3, req E7: a network is what the daemon says under the whole ID asked for, and absent only by a
// word about that ID.
func TestNetworks(t *testing.T) {
	id := goldenID(t)
	for name, c := range map[string]struct {
		status int
		reply  string
		ok     bool
		absent bool
	}{
		"found":             {200, `{"Id":"` + id.Hex() + `","Labels":{"dev.baildock.request":"r","dev.baildock.handle":"h"}}`, true, false},
		"found by its name": {200, `{"Id":"` + id.Hex()[1:] + `0","Name":"` + id.Hex() + `"}`, false, false},
		"no ID":             {200, `{}`, false, false},
		"absent":            {404, `{"message":"network ` + id.Hex() + ` not found"}`, false, true},
		"another absent":    {404, `{"message":"network other not found"}`, false, false},
		"no daemon":         {404, `404 page not found`, false, false},
		"broken":            {500, `{"message":"network ` + id.Hex() + ` not found"}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDaemon(t)
			s.answer("GET /networks/"+id.Hex(), replyJSON(c.status, c.reply))
			n, err := s.open(t).InspectNetwork(t.Context(), id)
			require.Equal(t, c.ok, err == nil, "%v", err)
			require.Equal(t, c.absent, errors.Is(err, executor.ErrAbsent), "%v", err)
			if c.ok {
				require.Equal(t, executor.Network{ID: id, Request: "r", Handle: "h"}, n)
			}
		})
	}
	for name, c := range map[string]struct {
		status int
		reply  string
		ok     bool
		absent bool
	}{
		"removed": {204, ``, true, false},
		"in use":  {403, `{"message":"error while removing network: network x has active endpoints"}`, false, false},
		"absent":  {404, `{"message":"network ` + id.Hex() + ` not found"}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDaemon(t)
			s.answer("DELETE /networks/"+id.Hex(), replyJSON(c.status, c.reply))
			err := s.open(t).RemoveNetwork(t.Context(), id)
			require.Equal(t, c.ok, err == nil, "%v", err)
			require.Equal(t, c.absent, errors.Is(err, executor.ErrAbsent), "%v", err)
		})
	}
}
