package verify_test

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/verify"
)

// approved is a good bundle of an approved change whose first two attempts failed.
func (c *corpus) approved() (court, []byte) {
	k := hold(c.t, "a", "b")
	k.approve(c.t)
	file := k.Export(c.t, good)
	require.Equal(c.t, verify.Valid, k.verify(c.t, file, verify.Admitted).Verdict)
	return k, file
}

// admissionAttacks hide the attempts that an approval counts, or what it rests on, or bend it.
func admissionAttacks(c *corpus) {
	k, file := c.approved()
	forged := func(name string, bend func(*bundle.Payload), checks ...string) {
		env, err := bundle.UnmarshalEnvelope(file)
		require.NoError(c.t, err)
		p, err := bundle.Unmarshal(env.Payload)
		require.NoError(c.t, err)
		bend(&p)
		env.Protected.Claims.Subject = p.Subject()
		c.add("admission: "+name, resign(c.t, k.Fixture, env, rawPayload(c.t, p)), checks...)
	}
	forged("a failed attempt left out", func(p *bundle.Payload) { drop(p, "attempt-a") }, verify.CheckStreams)
	forged("both failed attempts left out", func(p *bundle.Payload) { drop(p, "attempt-a"); drop(p, "attempt-b") }, verify.CheckStreams)
	forged("a failed attempt called cited", func(p *bundle.Payload) { stream(p, "attempt-a").Role = bundle.Cited }, verify.CheckStreams)
	forged("a failed attempt without its end", func(p *bundle.Payload) { s := stream(p, "attempt-a"); s.Events = s.Events[:len(s.Events)-1] }, verify.CheckCompleteness)
	forged("a failed attempt's exit left out", func(p *bundle.Payload) { s := stream(p, "attempt-a"); s.Events = slices.Delete(s.Events, 12, 13) }, verify.CheckStreams)
	forged("policy left out", func(p *bundle.Payload) { drop(p, "policy-main") }, verify.CheckStreams)
	forged("change cut at the approval", func(p *bundle.Payload) { s := stream(p, "change-fix"); s.Events = s.Events[:len(s.Events)-1] }, verify.CheckCompleteness)
	forged("an attempt's listing left out", func(p *bundle.Payload) { s := stream(p, "change-fix"); s.Events = slices.Delete(s.Events, 4, 5) }, verify.CheckStreams)

	approval := func(name string, bend func(*evidence.ContextApproved)) {
		o := newOwner(c.t, k.Fixture)
		o.rewrite(o.index("change-fix", "ContextApproved", 0), data(c.t, bend))
		c.add("admission: "+name, o.bundle(file), verify.CheckAdmission, verify.CheckHistory, verify.CheckStreams, verify.CheckCompleteness)
	}
	approval("on another record", func(e *evidence.ContextApproved) { e.Attempts[0].Record[0] ^= 1 })
	approval("on a failed attempt", func(e *evidence.ContextApproved) { e.Attempts[0].Attempt = "a" })
	approval("on no attempt", func(e *evidence.ContextApproved) { e.Attempts = nil })
	approval("on no basis", func(e *evidence.ContextApproved) { e.Basis = nil })
	approval("on a basis of another leaf", func(e *evidence.ContextApproved) { e.Basis[0].Leaf[0] ^= 1 })
	approval("on fewer grounds", func(e *evidence.ContextApproved) { e.Grounds.Grounds = e.Grounds.Grounds[1:] })
	approval("of another version", func(e *evidence.ContextApproved) { e.Version++ })
	approval("of another context", func(e *evidence.ContextApproved) { e.Context[0] ^= 1 })
	o := newOwner(c.t, k.Fixture)
	o.rewrite(o.index("attempt-good", "ContainerExited", 0), data(c.t, func(e *evidence.ContainerExited) { e.ExitCode = 1 }))
	c.add("admission: of an attempt that failed after all", o.bundle(file), verify.CheckRecord)
}
