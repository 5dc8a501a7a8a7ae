package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/baildock/baildock/evidence"
)

func freshChange() *evidence.Change { return &evidence.Change{} }

// OpenChange opens a change on a repository. Opening it again on the same one is no error.
func (j *Journal) OpenChange(ctx context.Context, id evidence.ChangeID, repository evidence.RepositoryID) error {
	if _, err := evidence.ParseChangeID(string(id)); err != nil {
		return err
	}
	_, err := update(ctx, j, ChangeStream(id), freshChange, func(c *evidence.Change) ([]evidence.Payload, error) {
		switch {
		case !c.Exists():
			return []evidence.Payload{evidence.ChangeOpened{Change: id, Repository: repository}}, nil
		case c.Opened.Repository != repository:
			return nil, fmt.Errorf("change %s is open on another repository (%s)", id, c.Opened.Repository)
		}
		return nil, nil
	})
	return err
}

// AddVersion proposes a revision as the change's next version and returns its number. When it is
// the present version's revision already, it returns that one.
func (j *Journal) AddVersion(ctx context.Context, id evidence.ChangeID, revision string) (uint64, error) {
	if err := evidence.CheckRevision(revision); err != nil {
		return 0, err
	}
	var version uint64
	err := j.updateChange(ctx, id, func(c *evidence.Change) ([]evidence.Payload, error) {
		version = c.Version
		if c.Version > 0 && c.Revision == revision {
			return nil, nil
		}
		version++
		return []evidence.Payload{evidence.VersionAdded{Version: version, Revision: revision}}, nil
	})
	return version, err
}

// Requirement is what a caller wants a change's present version to show.
type Requirement struct {
	Recipe           *evidence.Recipe      // requires command/v1 with exactly this recipe
	Environment      *evidence.Environment // the recipe's
	AllowPaths       []string              // requires source-paths/v1 with these globs
	Reductions       []evidence.Reduction  // accepted by admission
	RequireQualified bool
	Corpus           *evidence.Corpus  // with RequireQualified: what qualifies
	Policy           evidence.PolicyID // empty: the default
}

// SetContext gives the change's present version its context, under the policy's present epoch,
// and returns it. Setting an equal one again appends nothing. It fails with *NotFoundError for an
// absent policy.
func (j *Journal) SetContext(ctx context.Context, id evidence.ChangeID, r Requirement) (evidence.Context, error) {
	if r.Policy == "" {
		r.Policy = evidence.DefaultPolicy
	}
	made, err := r.context()
	if err != nil {
		return evidence.Context{}, err
	}
	p, err := j.Policy(ctx, r.Policy)
	if err != nil {
		return evidence.Context{}, err
	}
	made.Epoch = p.Fold.Epoch
	if r.Recipe != nil {
		if _, err := j.KeepPlain(ctx, evidence.Marshal(*r.Recipe), evidence.Marshal(*r.Environment)); err != nil {
			return evidence.Context{}, err
		}
	}
	err = j.updateChange(ctx, id, func(c *evidence.Change) ([]evidence.Payload, error) {
		if c.Version == 0 {
			return nil, &NotCurrentError{Stream: ChangeStream(id), What: "the version", Expected: "added", Found: "not added"}
		}
		made.Revision = c.Revision
		if err := made.Check(); err != nil {
			return nil, err
		}
		if c.Context != nil && c.ContextDigest == made.Digest() {
			return nil, nil
		}
		return []evidence.Payload{evidence.ContextSet{Version: c.Version, Context: made}}, nil
	})
	return made, err
}

// context makes all of a context that doesn't depend on the ledger.
func (r Requirement) context() (evidence.Context, error) {
	reductions, err := sortedReductions(r.Reductions)
	if err != nil {
		return evidence.Context{}, err
	}
	c := evidence.Context{Version: 1, Policy: r.Policy, Reductions: reductions, RequireQualified: r.RequireQualified, Corpus: r.Corpus}
	if r.Recipe != nil {
		if err := r.Recipe.Check(); err != nil {
			return c, err
		}
		if r.Environment == nil || r.Environment.Digest() != r.Recipe.Environment {
			return c, fmt.Errorf("the context's environment is not its recipe's")
		}
		c.Capabilities = []string{evidence.CapabilityCommand}
		c.Required = append(c.Required, evidence.RequiredEvidence{Kind: evidence.EvidenceCommand, Digest: evidence.PlainDigest(r.Recipe.Digest())})
		c.Toolchain, c.Environment = r.Recipe.Toolchain, r.Recipe.Environment
	}
	if len(r.AllowPaths) > 0 {
		c.AllowPaths = slices.Clone(r.AllowPaths)
		slices.Sort(c.AllowPaths)
		c.AllowPaths = slices.Compact(c.AllowPaths)
		c.Required = append(c.Required, evidence.RequiredEvidence{Kind: evidence.EvidencePaths, Digest: evidence.PathPolicyDigest(c.AllowPaths)})
	}
	return c, nil
}

// updateChange is update for a change that must be open.
func (j *Journal) updateChange(ctx context.Context, id evidence.ChangeID, decide func(*evidence.Change) ([]evidence.Payload, error)) error {
	if _, err := evidence.ParseChangeID(string(id)); err != nil {
		return err
	}
	_, err := update(ctx, j, ChangeStream(id), freshChange, func(c *evidence.Change) ([]evidence.Payload, error) {
		if !c.Exists() {
			return nil, &NotFoundError{Kind: KindChange, ID: string(id)}
		}
		return decide(c)
	})
	return err
}

// AdvanceEpoch moves a policy to its next epoch, opening it at epoch 1, and returns the epoch.
// Every context set under an earlier one is out of date from then on.
func (j *Journal) AdvanceEpoch(ctx context.Context, id evidence.PolicyID) (uint64, error) {
	if _, err := evidence.ParsePolicyID(string(id)); err != nil {
		return 0, err
	}
	var epoch uint64
	fresh := func() *evidence.Policy { return &evidence.Policy{} }
	_, err := update(ctx, j, PolicyStream(id), fresh, func(p *evidence.Policy) ([]evidence.Payload, error) {
		epoch = p.Epoch + 1
		return []evidence.Payload{evidence.EpochAdvanced{Epoch: epoch}}, nil
	})
	return epoch, err
}
