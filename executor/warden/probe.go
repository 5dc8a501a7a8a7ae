package warden

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
)

// Probe is how a runtime is probed (req C4): by an attempt that runs baildock's own binary in an
// image of its own.
type Probe struct {
	// Image loads the image when it isn't there and returns its ID.
	Image      func(ctx context.Context) (evidence.ImageID, error)
	Executable string   // absolute, in the image
	Args       []string // that make it call ProbeSelf
}

// Report is what a probe prints about itself on its standard output: one canonical value.
type Report struct {
	Version uint          `cbor:"1,keyasint"` // 1
	Status  []StatusField `cbor:"2,keyasint"` // lines of /proc/self/status, sorted by name
}

// StatusField is one line of /proc/self/status.
type StatusField struct {
	Name  string `cbor:"1,keyasint"`
	Value string `cbor:"2,keyasint"`
}

// probed is what a report is asked for: a control, the lines that show it, and what they must be.
var probed = []struct {
	id    evidence.ControlID
	names []string
	want  string
}{
	{evidence.CtlUser, []string{"Uid", "Gid"}, "65532 65532 65532 65532 65532 65532 65532 65532"},
	{evidence.CtlCapabilities, []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}, strings.TrimSpace(strings.Repeat("0000000000000000 ", 5))},
	{evidence.CtlNoNewPrivs, []string{"NoNewPrivs"}, "1"},
	{evidence.CtlSeccomp, []string{"Seccomp"}, "2"},
}

// ProbeSelf reports the process it runs in. It is what the binary does inside a probe.
func ProbeSelf(out io.Writer) error {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	r := Report{Version: 1}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), ":")
		wanted := slices.ContainsFunc(probed, func(p struct {
			id    evidence.ControlID
			names []string
			want  string
		}) bool {
			return slices.Contains(p.names, name)
		})
		if ok && wanted {
			r.Status = append(r.Status, StatusField{name, strings.Join(strings.Fields(value), " ")})
		}
	}
	slices.SortFunc(r.Status, func(a, b StatusField) int { return strings.Compare(a.Name, b.Name) })
	_, err = out.Write(evidence.Marshal(r))
	return err
}

// prove finds the probe that the runtime's stream holds, or makes one. A probe that could not be
// run or didn't show the filter leaves the claim reduced, which refuses unless it was accepted.
func (k *work) prove(ctx context.Context, id evidence.RuntimeIdentity) (*evidence.Basis, error) {
	proof, err := k.Journal.Proof(k.life, id)
	if err != nil || proof != nil || k.Probe == nil || ctx.Err() != nil {
		return proof, err
	}
	k.progress("probe", "this runtime was never probed: running baildock's own probe first")
	if err := k.probe(ctx, id); err != nil {
		k.progress("probe", err.Error())
		return nil, nil
	}
	return k.Journal.Proof(k.life, id)
}

// probe runs a probe attempt and records what it saw.
func (w *Warden) probe(ctx context.Context, id evidence.RuntimeIdentity) error {
	image, err := w.Probe.Image(ctx)
	if err != nil {
		return fmt.Errorf("load the probe's image: %w", err)
	}
	dir, err := os.MkdirTemp("", "baildock-probe-")
	if err != nil {
		return fmt.Errorf("make the probe's source: %w", err)
	}
	defer os.Remove(dir) //nolint:errcheck // an empty directory of the system's own temporary space
	attempt, err := w.registerProbe(ctx, image)
	if err != nil {
		return fmt.Errorf("register the probe: %w", err)
	}
	res, err := w.Run(ctx, RunRequest{Attempt: attempt, Path: dir, Accepted: []evidence.Reduction{evidence.ReducedSeccomp}, probing: true}, nil)
	if err != nil {
		return fmt.Errorf("run the probe: %w", err)
	}
	if res.Verdict.Outcome != evidence.OutcomeSuccess {
		return fmt.Errorf("the probe %s ended %s (%s)", attempt, res.Verdict.Outcome, res.Verdict.Detail)
	}
	if res.Fold.BeforeCreate.Identity.Digest() != id.Digest() {
		return fmt.Errorf("the probe %s ran on another runtime", attempt)
	}
	e, err := w.reported(ctx, res, image)
	if err != nil {
		return fmt.Errorf("read what the probe %s reports: %w", attempt, err)
	}
	return w.Journal.RecordProbe(context.WithoutCancel(ctx), id, e)
}

func (w *Warden) registerProbe(ctx context.Context, image evidence.ImageID) (evidence.AttemptID, error) {
	var nonce evidence.Nonce
	if _, err := io.ReadFull(rand.Reader, nonce[:]); err != nil {
		return "", err
	}
	env := evidence.Environment{Version: 1, Nonce: &nonce, Vars: []evidence.EnvVar{}}
	id := evidence.ProbeID(nonce)
	_, err := w.Journal.Register(ctx, journal.Registration{
		Attempt: id, Subject: evidence.Subject{Kind: evidence.SubjectDirectory}, Environment: env,
		Recipe: evidence.Recipe{
			Version: 1, Profile: evidence.ProfileCommand, Image: image, Executable: w.Probe.Executable, Args: w.Probe.Args,
			Environment: env.Digest(), Nonce: &nonce,
			Limits: evidence.Limits{Wall: probeWall, Output: probeOutput, Memory: probeMemory, Scratch: probeScratch,
				PIDs: probePIDs, NanoCPUs: probeCPUs},
		},
	})
	return id, err
}

// reported turns the probe's output into evidence of kind probed.
func (w *Warden) reported(ctx context.Context, res Result, image evidence.ImageID) (evidence.RuntimeProbed, error) {
	e := evidence.RuntimeProbed{Attempt: res.Attempt, Image: image}
	out, err := w.Journal.Kept(ctx, res.Fold.Run.Output.Stdout.Bytes)
	if err != nil {
		return e, err
	}
	var r Report
	if err := evidence.Unmarshal(out.Bytes, &r); err != nil {
		return e, err
	}
	if r.Version != 1 {
		return e, fmt.Errorf("report version %d is not 1", r.Version)
	}
	lines := map[string]string{}
	for _, f := range r.Status {
		lines[f.Name] = f.Value
	}
	var values []evidence.ControlValue
	for _, p := range probed {
		var found []string
		for _, n := range p.names {
			found = append(found, lines[n])
		}
		v := evidence.ControlValue{ID: p.id, Expected: p.want, Found: strings.Join(found, " ")}
		if _, err := io.ReadFull(w.Random, v.Salt[:]); err != nil {
			return e, fmt.Errorf("draw a salt: %w", err)
		}
		c := evidence.Control{ID: p.id, Kind: evidence.Probed, Equal: v.Found == p.want, Value: evidence.SaltedSum(v.Salt, []byte(v.Found))}
		if !c.Equal {
			c.Reason = "mismatched"
		}
		values, e.Controls = append(values, v), append(e.Controls, c)
	}
	var salt evidence.Salt
	if _, err := io.ReadFull(w.Random, salt[:]); err != nil {
		return e, fmt.Errorf("draw a salt: %w", err)
	}
	blob := evidence.Withhold(salt, evidence.Marshal(values))
	e.Values = blob.Ref
	return e, errors.Join(w.Journal.Keep(ctx, blob))
}
