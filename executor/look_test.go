package executor

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// req C2, req C8, req A4, req E2: refused before anything is created, with the reason recorded.
func TestRefusedBeforeCreate(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(s *scene)
		detail string
		code   string
	}{
		"no daemon":             {func(s *scene) { s.script.before["probe"] = func() error { return unanswered("info") } }, "runtime_refused", RefusedUnreachable},
		"daemon error":          {func(s *scene) { s.script.before["probe"] = func() error { return answered("info", 500) } }, "runtime_refused", RefusedDaemonError},
		"probe panics":          {func(s *scene) { s.script.before["probe"] = panics }, "runtime_refused", RefusedUnreachable},
		"no events":             {func(s *scene) { s.script.before["events"] = func() error { return unanswered("events") } }, "runtime_refused", RefusedEvents},
		"unsupported":           {func(s *scene) { s.script.runtime[0].Refusals = []Refusal{{"no_swap_limit", "x"}} }, "runtime_refused", "no_swap_limit"},
		"no image":              {func(s *scene) { s.script.before["image"] = func() error { return ErrAbsent } }, "runtime_refused", RefusedNoImage},
		"image unreadable":      {func(s *scene) { s.script.before["image"] = func() error { return unanswered("image") } }, "runtime_refused", RefusedImageError},
		"another image":         {func(s *scene) { s.script.image.ID = evidence.ImageID{1} }, "runtime_refused", RefusedImageID},
		"image environment":     {func(s *scene) { s.script.image.Env = []string{"GREETING=other"} }, "runtime_refused", RefusedImageEnv},
		"image labels":          {func(s *scene) { s.script.image.Labels = map[string]string{LabelRequest: "x"} }, "runtime_refused", RefusedImageLabels},
		"image volumes":         {func(s *scene) { s.script.image.Volumes = []string{"/data"} }, "runtime_refused", RefusedImageVolumes},
		"image for elsewhere":   {func(s *scene) { s.script.image.OS = "windows" }, "runtime_refused", RefusedImageOS},
		"reduction":             {func(s *scene) { s.job.Accepted, s.book.fold.Claimed.Accepted = nil, nil }, "reduction_not_accepted", ""},
		"unproven seccomp":      {func(s *scene) { s.script.runtime[0].Reductions = nil }, "reduction_not_accepted", ""},
		"unreadable proof":      {func(s *scene) { s.script.runtime[0].Reductions = nil; s.job.Prove = failingProof }, "runtime_refused", RefusedProof},
		"image environment too": {func(s *scene) { s.script.image.Env = []string{"GREETING=hello", "PATH=/bin"} }, "runtime_refused", RefusedImageEnv},
	} {
		play(t, name, func(t *testing.T, s *scene) {
			c.set(s)
			v, err := s.perform()
			require.NoError(t, err)
			require.Equal(t, c.detail, v.Detail, v.Causes)
			require.Equal(t, evidence.OutcomeUnavailable, v.Outcome)
			require.Equal(t, []string{"RuntimeObserved"}, s.book.types)
			require.Zero(t, s.script.count("create"))
			if c.code != "" {
				require.Equal(t, []string{c.code}, s.book.fold.BeforeCreate.Refusals)
				require.NotNil(t, s.book.fold.BeforeCreate.Detail)
			}
		})
	}
	play(t, "declared image environment", func(t *testing.T, s *scene) {
		s.script.image.Env = []string{"GREETING=hello", "HOME=/scratch"}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "ok", v.Detail)
	})
}

func failingProof(context.Context, evidence.RuntimeIdentity) (*evidence.Basis, error) {
	return nil, errors.New("unreadable")
}

// req C4: without a reduction, what the API can't name needs a probe that is in the ledger.
func TestSeccompProof(t *testing.T) {
	proof := evidence.Basis{Stream: "runtime-x", Version: 3}
	play(t, "proven", func(t *testing.T, s *scene) {
		s.script.runtime[0].Reductions = nil
		s.job.Prove = func(context.Context, evidence.RuntimeIdentity) (*evidence.Basis, error) { return &proof, nil }
		s.script.compare = func(iso Isolation, _ Inspection) Isolation {
			iso.Findings[evidence.CtlSeccomp-1].Kind = evidence.Accepted
			return iso
		}
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "ok", v.Detail, v.Causes)
		require.Equal(t, &proof, s.book.fold.BeforeCreate.Probe)
		require.Equal(t, evidence.Probed, s.book.fold.Isolation.Controls[evidence.CtlSeccomp-1].Kind)
		require.Equal(t, evidence.ClaimFull, evidence.RecordOf(&s.book.fold).Claim)
	})
	play(t, "unproven and accepted", func(t *testing.T, s *scene) {
		s.script.runtime[0].Reductions = nil
		s.book.fold.Claimed.Accepted = []evidence.Reduction{evidence.ReducedSeccomp}
		s.job.Accepted = s.book.fold.Claimed.Accepted
		v, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, "ok", v.Detail, v.Causes)
		require.Equal(t, []evidence.Reduction{evidence.ReducedSeccomp}, s.book.fold.BeforeCreate.Reductions)
	})
	play(t, "reduced anyway", func(t *testing.T, s *scene) {
		_, err := s.perform()
		require.NoError(t, err)
		require.Equal(t, []evidence.Reduction{evidence.ReducedCgroupV1}, s.book.fold.BeforeCreate.Reductions)
	})
}

// req C3: success needs one daemon at three points; removal needs it, too.
func TestChangedRuntime(t *testing.T) {
	for name, c := range map[string]struct {
		at     int // probe: 0 before create, 1 before start, 2 after exit, 3 after removal
		change func(*Runtime)
		detail string
	}{
		"another build before start": {1, func(r *Runtime) { r.Identity.Build.Kernel = "7" }, "runtime_changed_before_start"},
		"refused before start":       {1, func(r *Runtime) { r.Refusals = []Refusal{{"no_swap_limit", "x"}} }, "runtime_changed_before_start"},
		"another boot after exit":    {2, func(r *Runtime) { r.Identity.Daemon.Boot = evidence.Nonce{9} }, "runtime_changed"},
		"replaced at removal":        {3, func(r *Runtime) { r.Identity.Daemon.Engine = "OTHER" }, "cleanup_unconfirmed"},
		"upgraded at removal":        {3, func(r *Runtime) { r.Identity.Build.Version = "99" }, "ok"},
	} {
		play(t, name, func(t *testing.T, s *scene) {
			good := s.script.runtime[0]
			s.script.runtime = []Runtime{good, good, good, good, good}
			c.change(&s.script.runtime[c.at])
			v, err := s.perform()
			require.NoError(t, err)
			require.Equal(t, c.detail, v.Detail, v.Causes)
			require.Nil(t, s.script.box)
		})
	}
}
