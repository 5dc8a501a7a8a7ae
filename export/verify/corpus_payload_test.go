package verify_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/export/verify"
	"github.com/baildock/baildock/ledger"
)

func (c *corpus) spki(public crypto.PublicKey) []byte {
	b, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(c.t, err)
	return b
}

func (c *corpus) payload() bundle.Payload {
	p, err := bundle.Unmarshal(c.env.Payload)
	require.NoError(c.t, err)
	return p
}

// forged signs a bent payload; nothing checks it.
func (c *corpus) forged(bend func(*bundle.Payload)) []byte {
	p := c.payload()
	bend(&p)
	env := c.env
	env.Protected.Claims.Subject = p.Subject()
	return resign(c.t, c.f, env, rawPayload(c.t, p))
}

func stream(p *bundle.Payload, name string) *bundle.Stream {
	return &p.Streams[slices.IndexFunc(p.Streams, func(s bundle.Stream) bool { return s.Name == name })]
}

func drop(p *bundle.Payload, name string) {
	p.Streams = slices.DeleteFunc(p.Streams, func(s bundle.Stream) bool { return s.Name == name })
}

func payloadAttacks(c *corpus) {
	for name, bend := range map[string]func(*bundle.Payload){
		"another format":            func(p *bundle.Payload) { p.Format = 2 },
		"format 0":                  func(p *bundle.Payload) { p.Format = 0 },
		"malformed origin":          func(p *bundle.Payload) { p.Ledger.Origin = "a b" },
		"keys swapped":              func(p *bundle.Payload) { p.Ledger.Bundle, p.Ledger.Checkpoint = p.Ledger.Checkpoint, p.Ledger.Bundle },
		"no key":                    func(p *bundle.Payload) { p.Ledger.Bundle = nil },
		"ledger without an ID":      func(p *bundle.Payload) { p.Ledger.ID = evidence.LedgerID{} },
		"at lowered":                func(p *bundle.Payload) { p.At-- },
		"at out of range":           func(p *bundle.Payload) { p.At = 1 << 62 },
		"no checkpoint":             func(p *bundle.Payload) { p.Checkpoint = nil },
		"no streams":                func(p *bundle.Payload) { p.Streams = nil },
		"nothing judged":            func(p *bundle.Payload) { p.Streams = []bundle.Stream{*stream(p, "ledger")} },
		"streams reversed":          func(p *bundle.Payload) { slices.Reverse(p.Streams) },
		"a stream twice":            func(p *bundle.Payload) { p.Streams = slices.Insert(p.Streams, 0, p.Streams[0]) },
		"malformed stream name":     func(p *bundle.Payload) { p.Streams[0].Name = "../x" },
		"unknown role":              func(p *bundle.Payload) { p.Streams[0].Role = "boss" },
		"stream without events":     func(p *bundle.Payload) { p.Streams[0].Events = nil },
		"events reversed":           func(p *bundle.Payload) { slices.Reverse(p.Streams[0].Events) },
		"events swapped":            func(p *bundle.Payload) { e := p.Streams[0].Events; e[3], e[4] = e[4], e[3] },
		"an event twice":            func(p *bundle.Payload) { s := &p.Streams[0]; s.Events = slices.Insert(s.Events, 4, s.Events[4]) },
		"an event twice, elsewhere": func(p *bundle.Payload) { s := &p.Streams[0]; s.Events = append(s.Events, s.Events[2]) },
		"index above at":            func(p *bundle.Payload) { e := p.Streams[0].Events; e[len(e)-1].Index = p.At + 1 },
		"huge index":                func(p *bundle.Payload) { e := p.Streams[0].Events; e[len(e)-1].Index = 1 << 63 },
		"blobs reversed":            func(p *bundle.Payload) { slices.Reverse(p.Blobs) },
		"a blob twice":              func(p *bundle.Payload) { p.Blobs = slices.Insert(p.Blobs, 0, p.Blobs[0]) },
		"a blob held and missing": func(p *bundle.Payload) {
			p.Missing = []bundle.Missing{{Digest: p.Blobs[0].Digest, Class: bundle.ClassOutput, Why: bundle.Withheld}}
		},
		"missing of an unknown class": func(p *bundle.Payload) {
			p.Missing = []bundle.Missing{{Digest: bundle.BlobDigest{}, Class: "x", Why: bundle.Withheld}}
		},
		"missing for an unknown reason": func(p *bundle.Payload) {
			p.Missing = []bundle.Missing{{Digest: bundle.BlobDigest{}, Class: bundle.ClassOutput, Why: "lost"}}
		},
		"schemas reversed":           func(p *bundle.Payload) { slices.Reverse(p.Schemas) },
		"schema without a name":      func(p *bundle.Payload) { p.Schemas[0].Name = "" },
		"kept of nothing":            func(p *bundle.Payload) { p.Kept = &bundle.Kept{} },
		"kept of this size":          func(p *bundle.Payload) { p.Kept = &bundle.Kept{Size: p.At + 1} },
		"kept with an endless proof": func(p *bundle.Payload) { p.Kept = &bundle.Kept{Size: 1, Proof: make([]ledger.Hash, 65)} },
		"attempts out of order":      func(p *bundle.Payload) { p.Streams[0], p.Streams[1] = p.Streams[1], p.Streams[0] },
	} {
		c.add("payload: "+name, c.forged(bend), verify.CheckPayload)
	}
	for name, payload := range map[string][]byte{
		"empty":             {},
		"null":              {0xf6},
		"empty map":         {0xa0},
		"list":              {0x80},
		"text":              []byte("\x65hello"),
		"wrapped again":     c.cbor(c.env.Payload),
		"another's payload": c.file,
	} {
		env := c.env
		c.add("payload: "+name, resign(c.t, c.f, env, payload), verify.CheckPayload)
	}
	for name, bend := range map[string]func(*bundle.Payload){
		"other ledger ID":      func(p *bundle.Payload) { p.Ledger.ID[5] ^= 1 },
		"another bundle key":   func(p *bundle.Payload) { p.Ledger.Bundle = c.spki(exporttest.ECDSA(c.t, "stranger").Public()) },
		"without a ledger":     func(p *bundle.Payload) { drop(p, "ledger") },
		"without genesis":      func(p *bundle.Payload) { s := stream(p, "ledger"); s.Events = s.Events[1:] },
		"genesis moved":        func(p *bundle.Payload) { s := stream(p, "ledger"); s.Events = s.Events[:1]; s.Events[0].Index = 1 },
		"ledger's events bent": func(p *bundle.Payload) { s := stream(p, "ledger"); s.Events[0].Leaf = s.Events[0].Leaf[1:] },
	} {
		c.add("payload: "+name, c.forged(bend), verify.CheckIdentity)
	}
}

// checkpointSignature is the checkpoint's own signature where the bundle's belongs.
func (c *corpus) checkpointSignature() []byte {
	line := strings.Fields(strings.TrimSpace(string(c.payload().Checkpoint)))
	raw, err := base64.StdEncoding.DecodeString(line[len(line)-1])
	require.NoError(c.t, err)
	sig := raw[4:]
	sig[32] &= 0x7f // or its spelling is refused already
	return sig
}

func checkpointAttacks(c *corpus) {
	p := c.payload()
	note := string(p.Checkpoint)
	size, root := p.At+1, newOwner(c.t, c.f).root(0, int(p.At+1))
	signed := func(s ledger.CheckpointSigner, size uint64, root ledger.Hash) string {
		cp, err := s.Sign(size, root)
		require.NoError(c.t, err)
		return string(cp.Note)
	}
	text, line, _ := strings.Cut(note, "\n\n")
	fields := strings.Fields(line)
	raw, err := base64.StdEncoding.DecodeString(fields[2])
	require.NoError(c.t, err)
	other := exporttest.New(c.t)
	strangerKey, err := export.GenerateCheckpointKey(seeded("stranger"))
	require.NoError(c.t, err)
	stranger, err := export.ParseCheckpointKey(strangerKey, nil)
	require.NoError(c.t, err)
	strangers, err := stranger.Signer(p.Ledger.Origin)
	require.NoError(c.t, err)
	elsewhere, err := c.f.Checkpoint.Signer("other/origin")
	require.NoError(c.t, err)
	bentSig := bytes.Clone(raw)
	bentSig[20] ^= 1
	withHash := bytes.Clone(raw)
	withHash[0] ^= 1
	signature := func(raw []byte) string {
		return fields[0] + " " + fields[1] + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
	}
	for name, bent := range map[string]string{
		"by a stranger of the same name":   signed(strangers, size, root),
		"of another origin":                signed(elsewhere, size, root),
		"of another size":                  signed(c.f.Signer, size+1, root),
		"rolled back":                      signed(c.f.Signer, size-1, newOwner(c.t, c.f).root(0, int(size-1))),
		"of the empty tree":                signed(c.f.Signer, 0, ledger.EmptyRoot),
		"another size under the signature": strings.Replace(note, fmt.Sprintf("\n%d\n", size), fmt.Sprintf("\n%d\n", size-1), 1),
		"another root under the signature": strings.Replace(note, text[strings.LastIndex(text, "\n")+1:], base64.StdEncoding.EncodeToString(make([]byte, 32)), 1),
		"another origin in the text":       strings.Replace(note, p.Ledger.Origin+"\n", "other/origin\n", 1),
		"an extension line":                strings.Replace(note, "\n\n", "\nextension\n\n", 1),
		"leading zero":                     strings.Replace(note, fmt.Sprintf("\n%d\n", size), fmt.Sprintf("\n0%d\n", size), 1),
		"size with a sign":                 strings.Replace(note, fmt.Sprintf("\n%d\n", size), fmt.Sprintf("\n+%d\n", size), 1),
		"line ends of another system":      strings.ReplaceAll(note, "\n", "\r\n"),
		"no signature":                     text + "\n\n",
		"no empty line":                    strings.Replace(note, "\n\n", "\n", 1),
		"no last line end":                 strings.TrimSuffix(note, "\n"),
		"another line behind":              note + "\n",
		"signed twice":                     note + line,
		"a stranger's signature more":      note + strings.SplitN(signed(strangers, size, root), "\n\n", 2)[1],
		"a hyphen for the dash":            strings.Replace(note, "— ", "- ", 1),
		"signature bent":                   text + "\n\n" + signature(bentSig),
		"key hash bent":                    text + "\n\n" + signature(withHash),
		"signature cut":                    text + "\n\n" + signature(raw[:67]),
		"signature longer":                 text + "\n\n" + signature(append(bytes.Clone(raw), 0)),
		"base64 without padding":           strings.Replace(note, "=\n\n", "\n\n", 1),
		"base64 with stray bits":           text + "\n\n" + strings.Replace(signature(raw), "==\n", "==\n", 1)[:len(signature(raw))-4] + strayed(signature(raw)),
		"not UTF-8":                        "\xff" + note,
		"not a note":                       "hello",
		"another ledger's":                 signed(other.Signer, size+1, root),
	} {
		c.add("checkpoint: "+name, c.forged(func(p *bundle.Payload) { p.Checkpoint = []byte(bent) }), verify.CheckCheckpoint)
	}
	c.add("checkpoint: another root, well signed", c.forged(func(p *bundle.Payload) {
		p.Checkpoint = []byte(signed(c.f.Signer, size, ledger.Hash{1}))
	}), verify.CheckInclusion)
	c.add("checkpoint: size and at raised together", c.forged(func(p *bundle.Payload) {
		p.At++
		p.Checkpoint = []byte(signed(c.f.Signer, size+1, root))
	}), verify.CheckInclusion)
	kept := func(name string, note string) {
		c.attacks = append(c.attacks, attack{name: "kept: " + name, file: c.file, kept: []byte(note), checks: []string{verify.CheckKept}})
	}
	kept("another root of this size", signed(c.f.Signer, size, ledger.Hash{1}))
	kept("a stranger's", signed(strangers, size, root))
	kept("of another origin", signed(elsewhere, size, root))
	kept("not a note", "hello")
	kept("bent", text+"\n\n"+signature(bentSig))
	for name, k := range map[string]bundle.Kept{
		"no proof":        {Size: size - 2, Root: root, Proof: []ledger.Hash{}},
		"invented":        {Size: size - 2, Root: ledger.Hash{1}, Proof: []ledger.Hash{{2}, {3}}},
		"of a later tree": {Size: size + 7, Root: ledger.Hash{1}, Proof: []ledger.Hash{root}},
	} {
		c.add("kept: proof "+name, c.forged(func(p *bundle.Payload) { p.Kept = &k }), verify.CheckKept)
	}
}

// strayed is the end of a signature line with bits set that its padding leaves out.
func strayed(line string) string {
	end := []byte(line[len(line)-4:]) // "X==\n" or "XX=\n"
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	i := strings.IndexByte(string(end), '=') - 1
	end[i] = alphabet[strings.IndexByte(alphabet, end[i])|1]
	return string(end)
}

func streamAttacks(c *corpus) {
	in, st := []string{verify.CheckInclusion}, []string{verify.CheckStreams}
	comp := []string{verify.CheckCompleteness}
	for _, a := range []struct {
		name   string
		checks []string
		bend   func(*bundle.Payload)
	}{
		{"first event dropped", st, func(p *bundle.Payload) { s := stream(p, "attempt-one"); s.Events = s.Events[1:] }},
		{"middle event dropped", st, func(p *bundle.Payload) { s := stream(p, "attempt-one"); s.Events = slices.Delete(s.Events, 5, 6) }},
		{"record dropped", []string{verify.CheckHistory}, func(p *bundle.Payload) { s := stream(p, "attempt-one"); s.Events = s.Events[:len(s.Events)-1] }},
		{"only the registration", []string{verify.CheckHistory}, func(p *bundle.Payload) { s := stream(p, "attempt-one"); s.Events = s.Events[:1] }},
		{"leaves swapped", in, func(p *bundle.Payload) {
			e := stream(p, "attempt-one").Events
			e[5].Leaf, e[6].Leaf = e[6].Leaf, e[5].Leaf
		}},
		{"leaves and proofs swapped", in, func(p *bundle.Payload) {
			e := stream(p, "attempt-one").Events
			e[5].Leaf, e[6].Leaf, e[5].Proof, e[6].Proof = e[6].Leaf, e[5].Leaf, e[6].Proof, e[5].Proof
		}},
		{"another attempt's event at the end", st, func(p *bundle.Payload) {
			s, o := stream(p, "attempt-failed"), stream(p, "attempt-one")
			s.Events = append(s.Events, o.Events[len(o.Events)-1])
		}},
		{"another attempt's record", st, func(p *bundle.Payload) {
			s, o := stream(p, "attempt-failed"), stream(p, "attempt-one")
			s.Events[len(s.Events)-1] = o.Events[len(o.Events)-1]
		}},
		{"another attempt's exit", in, func(p *bundle.Payload) {
			s, o := stream(p, "attempt-failed"), stream(p, "attempt-one")
			s.Events[12].Leaf = o.Events[12].Leaf
		}},
		{"two attempts' streams swapped", st, func(p *bundle.Payload) {
			a, b := stream(p, "attempt-failed"), stream(p, "attempt-one")
			a.Events, b.Events = b.Events, a.Events
		}},
		{"a stream under another name", st, func(p *bundle.Payload) { stream(p, "attempt-one").Name = "attempt-onf" }},
		{"proof of another event", in, func(p *bundle.Payload) { e := stream(p, "attempt-one").Events; e[4].Proof = e[7].Proof }},
		{"proof of another bundle's place", in, func(p *bundle.Payload) {
			e := stream(p, "attempt-one").Events
			e[4].Index, e[4].Proof = e[5].Index-1, e[5].Proof
		}},
		{"proof shortened", in, func(p *bundle.Payload) { e := stream(p, "attempt-one").Events; e[4].Proof = e[4].Proof[1:] }},
		{"proof lengthened", in, func(p *bundle.Payload) {
			e := stream(p, "attempt-one").Events
			e[4].Proof = append(e[4].Proof, ledger.Hash{})
		}},
		{"proof reversed", in, func(p *bundle.Payload) { slices.Reverse(stream(p, "attempt-one").Events[4].Proof) }},
		{"proof emptied", in, func(p *bundle.Payload) { stream(p, "attempt-one").Events[4].Proof = []ledger.Hash{} }},
		{"all proofs emptied", in, func(p *bundle.Payload) {
			for i := range p.Streams {
				for j := range p.Streams[i].Events {
					p.Streams[i].Events[j].Proof = []ledger.Hash{}
				}
			}
		}},
		{"an inner node as a leaf", in, func(p *bundle.Payload) {
			e := stream(p, "attempt-one").Events
			h := leafHash(e[4].Leaf)
			e[4].Leaf = append(bytes.Clone(h[:]), e[4].Proof[0][:]...)
			e[4].Proof = e[4].Proof[1:]
		}},
		{"leaf cut", in, func(p *bundle.Payload) {
			e := stream(p, "attempt-one").Events
			e[4].Leaf = e[4].Leaf[:len(e[4].Leaf)-1]
		}},
		{"leaf emptied", in, func(p *bundle.Payload) { stream(p, "attempt-one").Events[4].Leaf = nil }},
		{"exit code bent", in, func(p *bundle.Payload) {
			e := &stream(p, "attempt-failed").Events[12]
			e.Leaf = bytes.Clone(e.Leaf)
			e.Leaf[len(e.Leaf)-1] ^= 1
		}},
		{"index moved", in, func(p *bundle.Payload) { stream(p, "ledger").Events[1].Index-- }},
		{"change left out", st, func(p *bundle.Payload) { drop(p, "change-fix") }},
		{"policy left out", st, func(p *bundle.Payload) { drop(p, "policy-main") }},
		{"a stream too many", st, func(p *bundle.Payload) { stream(p, "attempt-alone").Role = bundle.Cited }},
		{"basis called cited", st, func(p *bundle.Payload) { stream(p, "policy-main").Role = bundle.Cited }},
		{"the failed attempt called basis", st, func(p *bundle.Payload) { stream(p, "attempt-failed").Role = bundle.Basis }},
		{"policy called judged", []string{verify.CheckStreams, verify.CheckHistory}, func(p *bundle.Payload) { stream(p, "policy-main").Role = bundle.Judged }},
		{"ledger called judged", []string{verify.CheckStreams, verify.CheckHistory}, func(p *bundle.Payload) { stream(p, "ledger").Role = bundle.Judged }},
		{"policy cut at the judgement", comp, func(p *bundle.Payload) { s := stream(p, "policy-main"); s.Events = s.Events[:1] }},
		{"change cut at the judgement", comp, func(p *bundle.Payload) { s := stream(p, "change-fix"); s.Events = s.Events[:len(s.Events)-1] }},
		{"change without the failed attempt", st, func(p *bundle.Payload) { s := stream(p, "change-fix"); s.Events = slices.Delete(s.Events, 4, 5) }},
		{"change without its context", st, func(p *bundle.Payload) { s := stream(p, "change-fix"); s.Events = slices.Delete(s.Events, 2, 3) }},
		{"ledger cut at the judgement", comp, func(p *bundle.Payload) { s := stream(p, "ledger"); s.Events = s.Events[:1] }},
	} {
		c.add("stream: "+a.name, c.forged(a.bend), a.checks...)
	}
}

func blobAttacks(c *corpus) {
	blob := func(p *bundle.Payload, class bundle.Class, n int) *bundle.Blob {
		for _, s := range p.Streams {
			events, err := s.Open()
			require.NoError(c.t, err)
			placed, err := bundle.Decode(events)
			require.NoError(c.t, err)
			for _, e := range placed {
				for _, m := range bundle.Mentions(e.Payload) {
					if m.Class != class {
						continue
					}
					for _, d := range m.Digests() {
						if n--; n < 0 {
							return &p.Blobs[slices.IndexFunc(p.Blobs, func(b bundle.Blob) bool { return b.Digest == d })]
						}
					}
				}
			}
		}
		c.t.Fatalf("no blob of class %s", class)
		return nil
	}
	remove := func(p *bundle.Payload, d bundle.BlobDigest) {
		p.Blobs = slices.DeleteFunc(p.Blobs, func(b bundle.Blob) bool { return b.Digest == d })
	}
	for _, class := range []bundle.Class{bundle.ClassRecipe, bundle.ClassEnv, bundle.ClassProfile, bundle.ClassSource, bundle.ClassControls, bundle.ClassOutput} {
		c.add("blob: a byte more, "+string(class), c.forged(func(p *bundle.Payload) { b := blob(p, class, 0); b.Data = append(bytes.Clone(b.Data), 0) }), verify.CheckBlobs)
		c.add("blob: emptied, "+string(class), c.forged(func(p *bundle.Payload) { blob(p, class, 0).Data = []byte{} }), verify.CheckBlobs)
		c.add("blob: left out, "+string(class), c.forged(func(p *bundle.Payload) { remove(p, blob(p, class, 0).Digest) }), verify.CheckBlobs)
		c.add("blob: missing under another class, "+string(class), c.forged(func(p *bundle.Payload) {
			d := blob(p, class, 0).Digest
			remove(p, d)
			other := bundle.ClassDetail
			p.Missing = []bundle.Missing{{Digest: d, Class: other, Why: bundle.Withheld}}
		}), verify.CheckBlobs)
		if class == bundle.ClassSource || class == bundle.ClassControls || class == bundle.ClassOutput {
			c.add("blob: descriptor bent, "+string(class), c.forged(func(p *bundle.Payload) {
				b := blob(p, class, 1)
				b.Data = bytes.Clone(b.Data)
				b.Data[len(b.Data)-1] ^= 1
			}), verify.CheckBlobs)
			c.add("blob: descriptor alone withheld, "+string(class), c.forged(func(p *bundle.Payload) {
				d := blob(p, class, 1).Digest
				remove(p, d)
				p.Missing = []bundle.Missing{{Digest: d, Class: class, Why: bundle.Withheld}}
			}), verify.CheckBlobs)
		}
	}
	c.add("blob: stdout and stderr swapped", c.forged(func(p *bundle.Payload) {
		a, b := blob(p, bundle.ClassOutput, 0), blob(p, bundle.ClassOutput, 2)
		a.Data, b.Data = b.Data, a.Data
	}), verify.CheckBlobs)
	c.add("blob: descriptors swapped", c.forged(func(p *bundle.Payload) {
		a, b := blob(p, bundle.ClassOutput, 1), blob(p, bundle.ClassOutput, 3)
		a.Data, b.Data = b.Data, a.Data
	}), verify.CheckBlobs)
	c.add("blob: smuggled in", c.forged(func(p *bundle.Payload) {
		p.Blobs = slices.Insert(p.Blobs, 0, bundle.Blob{Data: []byte("x")})
	}), verify.CheckBlobs)
	c.add("blob: smuggled in under its digest", c.forged(func(p *bundle.Payload) {
		d := bundle.BlobDigest(sum([]byte("x")))
		i, _ := slices.BinarySearchFunc(p.Blobs, d, func(b bundle.Blob, d bundle.BlobDigest) int { return bytes.Compare(b.Digest[:], d[:]) })
		p.Blobs = slices.Insert(p.Blobs, i, bundle.Blob{Digest: d, Data: []byte("x")})
	}), verify.CheckBlobs)
	c.add("blob: missing and named by nobody", c.forged(func(p *bundle.Payload) {
		p.Missing = []bundle.Missing{{Class: bundle.ClassOutput, Why: bundle.Absent}}
	}), verify.CheckBlobs)
}
