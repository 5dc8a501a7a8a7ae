package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// req E4, req E5: an answer of refusal rules a create out only once a look by its labels agrees, made at
// the daemon that was asked.
func TestRefusedCreate(t *testing.T) {
	refused := func(s *scene) { s.script.before["create"] = func() error { return answered("create", 409) } }
	denied := func(s *scene) { s.script.after["create"] = func() error { return answered("create", 409) } }
	for name, c := range map[string]struct {
		set    []func(s *scene)
		detail string
		open   string // code of the custody that stays open
		looks  int
		left   bool // the container
	}{
		"nothing there":   {[]func(s *scene){refused}, "create_refused", "", 1, false},
		"there after all": {[]func(s *scene){denied}, "create_unanswered", "", 1, false},
		"look fails": {[]func(s *scene){refused, func(s *scene) { s.script.before["find"] = func() error { return unanswered("list") } }},
			"cleanup_unconfirmed", OpenLookup, 1, false},
		"look fails, there after all": {[]func(s *scene){denied, func(s *scene) { s.script.before["find"] = func() error { return unanswered("list") } }},
			"cleanup_unconfirmed", OpenLookup, 1, true},
		"several": {[]func(s *scene){denied, func(s *scene) { s.script.others = 1 }}, "cleanup_unconfirmed", OpenAmbiguous, 1, true},
		"daemon replaced": {[]func(s *scene){refused, func(s *scene) {
			other := s.script.runtime[0]
			other.Identity.Daemon.Engine = "OTHER"
			s.script.runtime = append(s.script.runtime, other)
		}}, "cleanup_unconfirmed", OpenReplaced, 1, false},
		"daemon gone after the look": {[]func(s *scene){refused, func(s *scene) { s.script.before["find"] = s.script.then("probe", unanswered("info")) }},
			"cleanup_unconfirmed", OpenUnprobed, 1, false},
	} {
		play(t, name, func(t *testing.T, s *scene) {
			for _, set := range c.set {
				set(s)
			}
			v, err := s.perform()
			require.NoError(t, err)
			require.Equal(t, c.detail, v.Detail, v.Causes)
			require.Equal(t, c.looks, s.script.count("find"))
			require.Zero(t, s.script.count("start"))
			require.Equal(t, c.left, s.script.box != nil)
			k, ok := s.book.fold.Custodies.MainContainer()
			require.True(t, ok)
			require.Equal(t, c.open != "", k.Open())
			require.Equal(t, c.open, k.Unconfirmed)
			if k.State == evidence.CleanupNotCreated {
				require.Equal(t, evidence.ProofRefused, k.Proof)
			}
		})
	}
}
