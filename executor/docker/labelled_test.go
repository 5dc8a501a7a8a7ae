package docker

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// req E8: what the daemon lists by one of our labels is checked again; labels that aren't ours are
// nobody's business, and an object that both lists hold is one.
func TestFindLabelled(t *testing.T) {
	id := goldenID(t).Hex()
	both := `[{"Id":"` + id + `","Names":["/one"],"Created":7,"State":"exited","Labels":{"dev.baildock.request":"r","dev.baildock.handle":"h","secret":"x"}}]`
	for name, c := range map[string]struct {
		byRequest, byHandle string
		ok                  bool
		found               int
	}{
		"both labels":      {both, both, true, 1},
		"one label":        {`[]`, `[{"Id":"` + id + `","Labels":{"dev.baildock.handle":"h"}}]`, true, 1},
		"none":             {`[]`, `[]`, true, 0},
		"filter ignored":   {both, `[{"Id":"` + id + `","Labels":{"other":"h"}}]`, false, 0},
		"no labels":        {`[{"Id":"` + id + `"}]`, `[]`, false, 0},
		"short ID":         {`[]`, `[{"Id":"ab","Labels":{"dev.baildock.handle":"h"}}]`, false, 0},
		"not what it says": {`{}`, `[]`, false, 0},
	} {
		for kind, path := range map[evidence.CustodyKind]string{evidence.CustodyContainer: "GET /containers/json", evidence.CustodyNetwork: "GET /networks"} {
			s := newDaemon(t)
			s.answer(path, func(w http.ResponseWriter, r *http.Request) {
				reply := c.byHandle
				if strings.Contains(r.URL.Query().Get("filters"), executor.LabelRequest) {
					reply = c.byRequest
				}
				if kind == evidence.CustodyNetwork {
					reply = strings.ReplaceAll(reply, `"Created":7`, `"Created":"1970-01-01T00:00:07Z"`)
				}
				replyJSON(200, reply)(w, r)
			})
			found, err := s.open(t).FindLabelled(t.Context(), kind)
			require.Equal(t, c.ok, err == nil, "%s %s: %v", name, kind, err)
			require.Len(t, found, c.found)
			if name == "both labels" {
				require.Equal(t, map[string]string{executor.LabelRequest: "r", executor.LabelHandle: "h"}, found[0].Labels)
				require.EqualValues(t, 7e9, found[0].Created)
				require.Equal(t, kind, found[0].Kind)
				_, _, owned := found[0].Owner()
				require.False(t, owned, "values that aren't ours name nobody")
				if kind == evidence.CustodyContainer {
					require.Equal(t, "one", found[0].Name)
				}
			}
		}
	}
	_, err := newDaemon(t).open(t).FindLabelled(t.Context(), "volume")
	require.ErrorContains(t, err, "volume")
}
