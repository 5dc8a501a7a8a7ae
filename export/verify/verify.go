package verify

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/veraison/go-cose"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/ledger"
)

// verification is one bundle under verification.
type verification struct {
	policy  Policy
	env     bundle.Envelope
	payload bundle.Payload
	keys    evidence.Keyring
	newer   bool // the stream `ledger` holds an event this program doesn't know; keys may lack some
	streams map[string][]bundle.Placed
	attempt []*judged
	counted map[evidence.AttemptID]*judged // attempts that an approval counts and that aren't judged
	report  *Report

	superseded map[evidence.Binding]bool // contexts that another judged one of their change came after
}

// Verify checks a bundle under a policy. Any bytes give a report. Where several are trusted it is the one
// under the first whose bundle it is or, if it is nobody's, under the likeliest.
func Verify(file []byte, policy Policy) Report {
	trusted := []Trust{policy.Trust}
	if len(policy.Trust.others) > 0 {
		env, _ := bundle.UnmarshalEnvelope(file) // what is no bundle is so under everybody
		trusted = policy.Trust.each(env.Protected)
	}
	var likeliest Report
	for i, t := range trusted {
		policy.Trust = t
		r := verifyUnder(file, policy)
		if r.Verdict != Invalid {
			return r
		}
		if i == 0 {
			likeliest = r
		}
	}
	return likeliest
}

func verifyUnder(file []byte, policy Policy) Report {
	r := Report{Times: Times}
	for _, name := range Checks() {
		r.Checks = append(r.Checks, Check{Name: name, Result: NotDone, Detail: notReached})
	}
	v := &verification{policy: policy, report: &r, streams: map[string][]bundle.Placed{}}
	v.run(file)
	r.conclude(policy)
	r.Claims = r.showing().Statements()
	return r
}

// run does the checks in order and stops where the next ones would have nothing to stand on.
func (v *verification) run(file []byte) {
	if !v.envelope(file) {
		return
	}
	early := v.policy.Trust.signs(v.env.Protected.KeyID)
	if early && !v.signature(v.policy.Trust.key) {
		return
	}
	if !v.decode() || !v.identity() || !early && !v.lateSignature() {
		return
	}
	v.excused()
	root, ok := v.checkpoint()
	if !ok || !v.kept(root) || !v.inclusion(root) || !v.open() {
		return
	}
	v.scope()
	if !v.history() {
		return
	}
	v.claims()
	v.blobs()
	v.admissions()
	v.describe()
	v.existed()
}

func (v *verification) envelope(file []byte) bool {
	if t := v.policy.Trust; !t.None() {
		id := evidence.KeyIDOf(t.key)
		v.report.Keys.Trusted = &id
	}
	env, err := bundle.UnmarshalEnvelope(file)
	if err != nil {
		v.report.fail(CheckEnvelope, "%v", err)
		return false
	}
	v.env = env
	kid := env.Protected.KeyID
	v.report.Keys.Signed = &kid
	v.report.pass(CheckEnvelope, "COSE_Sign1, %d bytes", len(file))
	return true
}

// signature checks the signature under a key. The algorithm comes from the protected header and
// must be on the list, which has one entry.
func (v *verification) signature(spki []byte) bool {
	if err := v.verifyUnder(spki); err != nil {
		v.report.fail(CheckSignature, "%v", err)
		return false
	}
	v.report.pass(CheckSignature, "ES256 by %s", evidence.KeyIDOf(spki))
	return true
}

func (v *verification) verifyUnder(spki []byte) error {
	if alg := v.env.Protected.Alg; alg != bundle.AlgES256 {
		return fmt.Errorf("algorithm %d is not allowed; a bundle is signed with %d (ES256)", alg, bundle.AlgES256)
	}
	key, err := evidence.ParseBundleKey(spki)
	if err != nil {
		return err
	}
	verifier, err := cose.NewVerifier(cose.AlgorithmES256, key)
	if err != nil {
		return err
	}
	if verifier.Verify(v.env.ToBeSigned(), v.env.Signature) != nil {
		return fmt.Errorf("the signature doesn't hold under key %s", evidence.KeyIDOf(spki))
	}
	return nil
}

// lateSignature checks the signature of a key that the reader knows only through the ledger: one
// that a trusted key endorsed, or, with nobody trusted, the one the bundle itself names.
func (v *verification) lateSignature() bool {
	kid := v.env.Protected.KeyID
	spki, live := v.keys.Find(evidence.RoleBundle, kid[:])
	if !live {
		// Only with events newer than this program: identity refuses it otherwise.
		v.report.skip(CheckSignature, "key %s signed the bundle; whether it is a live key of the ledger a newer version can tell", kid)
		return false
	}
	if v.policy.Trust.identity != nil {
		return v.signature(spki) // the keyring starts from the trusted genesis
	}
	if !v.policy.Trust.None() {
		v.report.fail(CheckSignature, "key %s signed the bundle; the trusted key is %s", kid, evidence.KeyIDOf(v.policy.Trust.key))
		return false
	}
	if err := v.verifyUnder(spki); err != nil {
		v.report.fail(CheckSignature, "%v, which the bundle itself names", err)
		return false
	}
	v.report.skip(CheckSignature, "it holds under key %s, which only the bundle itself names; give the ledger's key", kid)
	return true
}

func (v *verification) decode() bool {
	p, err := bundle.Unmarshal(v.env.Payload)
	if err != nil {
		v.report.fail(CheckPayload, "%v", err)
		return false
	}
	if got := v.env.Protected.Claims; got.Issuer != p.Ledger.Origin || got.Subject != p.Subject() {
		v.report.fail(CheckPayload, "the protected header speaks of %q by %q, the payload of %q by %q", got.Subject, got.Issuer, p.Subject(), p.Ledger.Origin)
		return false
	}
	v.payload = p
	at := ledger.Index(p.At)
	v.report.Ledger, v.report.Origin, v.report.At = p.Ledger.ID.String(), p.Ledger.Origin, &at
	v.report.pass(CheckPayload, "%d bytes, %d streams, %d blobs", len(v.env.Payload), len(p.Streams), len(p.Blobs))
	return true
}

// identity folds the stream `ledger` and compares its genesis with what the payload says and with
// what the reader trusts.
func (v *verification) identity() bool {
	bad := func(format string, args ...any) bool {
		v.report.fail(CheckIdentity, format, args...)
		return false
	}
	s, ok := v.payload.Stream(evidence.LedgerStream)
	if !ok {
		return bad("the bundle has no stream %s", evidence.LedgerStream)
	}
	events, err := s.Open()
	if err != nil {
		return bad("%v", err)
	}
	unknown, err := v.foldKeys(events)
	if err != nil {
		return bad("%v", err)
	}
	v.newer = unknown != nil
	if v.keys.Opened == nil || events[0].Index != 0 {
		return bad("the first event of stream %s is not the genesis event at index 0", evidence.LedgerStream)
	}
	genesis := bundle.IdentityOf(*v.keys.Opened)
	if !genesis.Equal(v.payload.Ledger) {
		return bad("the payload names another ledger than its genesis event")
	}
	trust := v.policy.Trust
	if trust.identity != nil && !genesis.Equal(*trust.identity) {
		return bad("the bundle is of ledger %s (%s), the trusted one is %s (%s), or their keys differ", genesis.ID, genesis.Origin, trust.identity.ID, trust.identity.Origin)
	}
	kid := v.env.Protected.KeyID
	if _, live := v.keys.Find(evidence.RoleBundle, kid[:]); !live && !v.newer {
		return bad("key %s signed the bundle and is not a live bundle key at index %d", kid, v.payload.At)
	}
	checkpointKey := evidence.KeyIDOf(genesis.Checkpoint)
	v.report.Keys.Checkpoint = &checkpointKey
	switch {
	case v.newer:
		v.report.skip(CheckIdentity, "%v, so the live keys aren't known; a newer version can read it", unknown)
	case trust.identity != nil:
		v.report.pass(CheckIdentity, "ledger %s, origin %s", genesis.ID, genesis.Origin)
	case !trust.None():
		v.report.Keys.Endorsed = true
		v.report.pass(CheckIdentity, "ledger %s, origin %s; its checkpoint key is endorsed by the bundle key", genesis.ID, genesis.Origin)
	default:
		v.report.skip(CheckIdentity, "the bundle says it is of ledger %s, origin %s", genesis.ID, genesis.Origin)
	}
	return true
}

// foldKeys folds the keyring as far as this program can read the stream. An event it doesn't know
// may be honest and newer, or forged: the later checks tell, under the keys known so far.
func (v *verification) foldKeys(events []ledger.Event) (unknown *evidence.UnknownEventError, err error) {
	for i := range events {
		placed, err := bundle.Decode(events[i : i+1])
		if errors.As(err, &unknown) {
			return unknown, nil
		}
		if err != nil {
			return nil, err
		}
		if err := v.keys.Apply(placed[0].Payload); err != nil {
			return nil, fmt.Errorf("stream %s, version %s: %w", evidence.LedgerStream, events[i].Version, err)
		}
	}
	return nil, nil
}

// excused sets the checks that nothing was given for.
func (v *verification) excused() {
	switch {
	case v.policy.Witnesses == nil:
		v.report.excuse(CheckWitness, "no outside witness")
	case v.policy.Kept == nil:
		v.report.skip(CheckWitness, "a witness policy was given, and no cosigned checkpoint to hold to it")
	}
}

// checkpoint opens the signed tree head and returns its root.
func (v *verification) checkpoint() (ledger.Hash, bool) {
	cp, err := v.openCheckpoint()
	if v.newer && errors.Is(err, ledger.ErrCheckpointUnsigned) {
		v.report.skip(CheckCheckpoint, "no key known to this version signed it")
		return ledger.Hash{}, false
	}
	if err != nil {
		v.report.fail(CheckCheckpoint, "%v", err)
		return ledger.Hash{}, false
	}
	v.report.Root = cp.Root.String()
	v.report.pass(CheckCheckpoint, "size %d, root %s", cp.Size, cp.Root)
	return cp.Root, true
}

func (v *verification) openCheckpoint() (ledger.Checkpoint, error) {
	cp, err := journal.OpenCheckpoint(&v.keys, v.payload.Checkpoint)
	if err != nil {
		return cp, err
	}
	if cp.Size != v.payload.At+1 {
		return cp, fmt.Errorf("the checkpoint is of size %d; index %d is the last of a tree of %d", cp.Size, v.payload.At, v.payload.At+1)
	}
	return cp, oneSignature(cp)
}

// oneSignature refuses a note that isn't spelled as its signer spells it, with one signature. The
// note format itself allows more signatures, and base64 with stray bits.
func oneSignature(cp ledger.Checkpoint) error {
	prefix := ledger.FormatCheckpoint(cp.Origin, cp.Size, cp.Root) + "\n— " + cp.Origin + " "
	line, ok := bytes.CutPrefix(cp.Note, []byte(prefix))
	if ok {
		sig, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(string(line), "\n"))
		ok = err == nil && base64.StdEncoding.EncodeToString(sig)+"\n" == string(line)
	}
	if !ok {
		return fmt.Errorf("the checkpoint is not exactly one signed text: %w", bundle.ErrNotCanonical)
	}
	return nil
}

// inclusion recomputes every leaf and checks its place in the tree.
func (v *verification) inclusion(root ledger.Hash) bool {
	n := 0
	for _, s := range v.payload.Streams {
		for i, held := range s.Events {
			e, err := ledger.UnmarshalLeaf(held.Leaf)
			if err == nil {
				err = ledger.VerifyInclusion(e.Leaf(), ledger.Index(held.Index), v.payload.At+1, held.Proof, root)
			}
			if err != nil {
				v.report.fail(CheckInclusion, "stream %s, event %d: %v", s.Name, i, err)
				return false
			}
			n++
		}
	}
	v.report.pass(CheckInclusion, "%d events in a tree of %d", n, v.payload.At+1)
	return true
}

// open opens every stream and decodes its events.
func (v *verification) open() bool {
	for _, s := range v.payload.Streams {
		events, err := s.Open()
		if err != nil {
			v.report.fail(CheckStreams, "%v", err)
			return false
		}
		placed, err := bundle.Decode(events)
		if err != nil {
			v.undecodable(err)
			return false
		}
		v.streams[s.Name] = placed
	}
	v.report.pass(CheckEvents, "every event is known and in its one spelling")
	return true
}
