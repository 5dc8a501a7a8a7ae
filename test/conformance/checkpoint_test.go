package conformance

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/export/bundle"
	"github.com/baildock/baildock/export/exporttest"
	"github.com/baildock/baildock/ledger"
	"github.com/baildock/baildock/ledger/witness"
)

func noteKeys(t *testing.T, origin string, spkis [][]byte) note.Verifiers {
	t.Helper()
	var keys []ed25519.PublicKey
	for _, spki := range spkis {
		k, err := evidence.ParseCheckpointKey(spki)
		require.NoError(t, err)
		keys = append(keys, k)
	}
	v, err := ledger.Ed25519Verifiers(origin, keys...)
	require.NoError(t, err)
	return v
}

func checkpoints() family {
	return family{
		name: "checkpoints", least: 37,
		about: "Checkpoints (C2SP tlog-checkpoint, ledger/FORMAT.md). Input: note, the signed note; origin; keys, the checkpoint keys trusted for it, DER SubjectPublicKeyInfo. Accepted: size and root, hex. A line of a key that is not trusted is ignored; at least one trusted key must have signed, and none of a trusted key may fail.",
		make: func(t *testing.T) []vector {
			f := exporttest.New(t)
			root := ledger.Hash(rootOf(treeLeaves(7)))
			signed := func(size uint64) string {
				c, err := f.Signer.Sign(size, root)
				require.NoError(t, err)
				return string(c.Note)
			}
			good := signed(7)
			in := values{"note": good, "origin": f.Identity.Origin, "keys": []string{hexOf(f.Identity.Checkpoint)}}
			lines := strings.SplitAfter(good, "\n")
			stranger := witnessOf("stranger", 1)
			cosigned, err := withDir(t, stranger).Cosign(witness.Request{Note: []byte(good)}, f.Identity.Origin, noteKeys(t, f.Identity.Origin, [][]byte{f.Identity.Checkpoint}))
			require.NoError(t, err)
			var out []vector
			ok := func(name, n string, size uint64) {
				out = append(out, vector{Name: name, Class: accept, Input: in.with("note", n), Output: values{"size": size, "root": hexOf(root[:])}})
			}
			ok("one signature", good, 7)
			ok("size 1", signed(1), 1)
			ok("largest size", signed(1<<62-1), 1<<62-1)
			ok("a cosignature by somebody unknown", string(cosigned), 7)
			bad := map[string]string{
				"empty": "", "no signature": strings.Join(lines[:4], ""), "text only": strings.Join(lines[:3], ""),
				"no last newline": strings.TrimSuffix(good, "\n"), "a byte behind": good + "x", "a newline behind": good + "\n",
				"carriage returns": strings.ReplaceAll(good, "\n", "\r\n"), "no empty line": strings.Replace(good, "\n\n", "\n", 1),
				"another size": strings.Replace(good, "\n7\n", "\n8\n", 1), "leading zero": strings.Replace(good, "\n7\n", "\n07\n", 1),
				"signed size": strings.Replace(good, "\n7\n", "\n+7\n", 1), "size in hex": strings.Replace(good, "\n7\n", "\n0x7\n", 1),
				"size with a space": strings.Replace(good, "\n7\n", "\n7 \n", 1), "another origin": strings.Replace(good, f.Identity.Origin, "other.example", 1),
				"another root": strings.Replace(good, lines[2], lines[2][:1]+flip64(lines[2][1:2])+lines[2][2:], 1), "hyphen for the dash": strings.Replace(good, "—", "-", 1),
				"signature with a bit off": bendSignature(good), "signature of another key name": strings.Replace(good, "— "+f.Identity.Origin, "— other", 1),
				"a tab": strings.Replace(good, "\n7\n", "\n7\t\n", 1), "only an unknown signature": strings.Join(lines[:4], "") + lastLine(string(cosigned)),
			}
			for _, name := range sorted(bad) {
				out = append(out, vector{Name: name, Class: refuse, Kind: "note", Input: in.with("note", bad[name])})
			}
			// Texts that the ledger's own key signed, and that are no checkpoints.
			texts := map[string]string{
				"a line more":           strings.Join(lines[:3], "") + "extension\n",
				"a line less":           strings.Join(lines[:2], ""),
				"root of 31 bytes":      lines[0] + lines[1] + base64.StdEncoding.EncodeToString(root[:31]) + "\n",
				"root without padding":  lines[0] + lines[1] + base64.RawStdEncoding.EncodeToString(root[:]) + "\n",
				"root with stray bits":  lines[0] + lines[1] + strayBits(root[:]) + "\n",
				"size past its bound":   lines[0] + "4611686018427387904\n" + lines[2],
				"size of twenty digits": lines[0] + "99999999999999999999\n" + lines[2],
				"negative size":         lines[0] + "-7\n" + lines[2],
				"empty size":            lines[0] + "\n" + lines[2],
			}
			for _, name := range sorted(texts) {
				out = append(out, vector{Name: "signed: " + name, Class: refuse, Kind: "text", Input: in.with("note", signNote(t, f.Identity.Origin, texts[name]))})
			}
			out = append(out,
				vector{Name: "nobody is trusted", Class: refuse, Kind: "trust", Input: in.with("keys", []string{})},
				vector{Name: "another key is trusted", Class: refuse, Kind: "trust", Input: in.with("keys", []string{hexOf(otherKey(t))})},
				vector{Name: "another origin is asked for", Class: refuse, Kind: "trust", Input: in.with("origin", "other.example")},
				vector{Name: "two keys are trusted", Class: accept, Input: in.with("keys", []string{hexOf(otherKey(t)), hexOf(f.Identity.Checkpoint)}), Output: values{"size": 7, "root": hexOf(root[:])}},
			)
			return sortedVectors(out)
		},
		run: func(t *testing.T, in values) (string, values, error) {
			origin := in.text(t, "origin")
			c, err := ledger.OpenCheckpoint([]byte(in.text(t, "note")), origin, noteKeys(t, origin, in.byteList(t, "keys")))
			return settled(values{"size": c.Size, "root": hexOf(c.Root[:])}, err)
		},
	}
}

func witnesses() family {
	return family{
		name: "witnesses", least: 12,
		about: "Cosignatures (C2SP tlog-cosignature, cosignature/v1) under a quorum. Input: note, origin and keys as in checkpoints.json; witnesses, each a vkey; quorum. Accepted: cosigned, the names that count and their times, in whole seconds since the epoch.",
		make: func(t *testing.T) []vector {
			f := exporttest.New(t)
			keys := noteKeys(t, f.Identity.Origin, [][]byte{f.Identity.Checkpoint})
			c, err := f.Signer.Sign(7, ledger.Hash(rootOf(treeLeaves(7))))
			require.NoError(t, err)
			by := func(note []byte, of ...witness.Cosigner) string {
				for _, w := range of {
					note, err = withDir(t, w).Cosign(witness.Request{Note: note}, f.Identity.Origin, keys)
					require.NoError(t, err)
				}
				return string(note)
			}
			const day = 1_767_300_000
			alice, bob, carol := witnessOf("alice", day+100), witnessOf("bob", day), witnessOf("carol", day+50)
			vkey := func(w witness.Cosigner) string { k, err := w.Key(); require.NoError(t, err); return k.String() }
			all := []string{vkey(alice), vkey(bob), vkey(carol)}
			in := values{"origin": f.Identity.Origin, "keys": []string{hexOf(f.Identity.Checkpoint)}, "witnesses": all, "quorum": 2}
			two := by(c.Note, alice, bob)
			said := func(of ...witness.Cosigner) values {
				var l []any
				for _, w := range of {
					l = append(l, map[string]any{"name": w.Name, "time": w.Now().Unix()})
				}
				return values{"cosigned": l}
			}
			other, err := f.Signer.Sign(7, ledger.Hash{1})
			require.NoError(t, err)
			forged := string(c.Note) + lastLine(by(other.Note, bob))
			return []vector{
				{Name: "two of three", Class: accept, Input: in.with("note", two), Output: said(alice, bob)},
				{Name: "all three", Class: accept, Input: in.with("note", by([]byte(two), carol)), Output: said(alice, bob, carol)},
				{Name: "one is enough", Class: accept, Input: in.with("note", two).with("quorum", 1).with("witnesses", all[:1]), Output: said(alice)},
				{Name: "a stranger beside them", Class: accept, Input: in.with("note", by([]byte(two), witnessOf("mallory", 1))), Output: said(alice, bob)},
				{Name: "one only", Class: refuse, Kind: "quorum", Input: in.with("note", by(c.Note, alice))},
				{Name: "nobody", Class: refuse, Kind: "quorum", Input: in.with("note", string(c.Note))},
				{Name: "a stranger counted as one", Class: refuse, Kind: "quorum", Input: in.with("note", by(c.Note, alice, witnessOf("mallory", 1)))},
				{Name: "one line twice", Class: refuse, Kind: "quorum", Input: in.with("note", by(c.Note, alice)+lastLine(by(c.Note, alice)))},
				{Name: "one's line under another's name", Class: refuse, Kind: "quorum", Input: in.with("note", by(c.Note, alice)+strings.Replace(lastLine(by(c.Note, alice)), "alice", "bob", 1))},
				{Name: "a cosignature of another tree", Class: refuse, Kind: "signature", Input: in.with("note", forged)},
				{Name: "a cosignature with a bit off", Class: refuse, Kind: "signature", Input: in.with("note", bendSignature(two))},
				{Name: "without the ledger's own", Class: refuse, Kind: "signature", Input: in.with("note", strings.Replace(two, ownLine(two), "", 1))},
				{Name: "quorum 0", Class: refuse, Kind: "policy", Input: in.with("note", two).with("quorum", 0)},
				{Name: "quorum beyond the witnesses", Class: refuse, Kind: "policy", Input: in.with("note", two).with("quorum", 4)},
				{Name: "a witness twice", Class: refuse, Kind: "policy", Input: in.with("note", two).with("witnesses", append(all[:1:1], all...))},
				{Name: "a vkey with another hash", Class: refuse, Kind: "policy", Input: in.with("note", two).with("witnesses", []string{bendHash(all[0]), all[1]})},
				{Name: "a checkpoint key as witness", Class: refuse, Kind: "policy", Input: in.with("note", two).with("witnesses", []string{strings.Replace(all[0], "+B", "+A", 1), all[1]})},
			}
		},
		run: func(t *testing.T, in values) (string, values, error) {
			origin := in.text(t, "origin")
			policy := witness.Policy{Quorum: int(in.number(t, "quorum"))}
			for _, s := range in.list(t, "witnesses") {
				k, err := witness.ParseKey(s)
				if err != nil {
					return refuse, nil, err
				}
				policy.Witnesses = append(policy.Witnesses, k)
			}
			_, seen, err := policy.Check([]byte(in.text(t, "note")), origin, noteKeys(t, origin, in.byteList(t, "keys")))
			var l []any
			for _, s := range seen {
				l = append(l, map[string]any{"name": s.Name, "time": s.Time.Unix()})
			}
			return settled(values{"cosigned": l}, err)
		},
	}
}

func identities() family {
	return family{
		name: "identities", least: 20,
		about: "ledger.pub and bare keys (export/bundle/FORMAT.md). Input: text. Accepted: id, origin and the keys as DER, or, for one PEM block, bundle alone.",
		make: func(t *testing.T) []vector {
			f := exporttest.New(t)
			good, err := bundle.FormatIdentity(f.Identity)
			require.NoError(t, err)
			pem := string(bundle.FormatKey(f.Identity.Bundle))
			lines := strings.SplitAfter(good, "\n")
			head, blocks := strings.Join(lines[:3], ""), strings.SplitAfter(good, "-----END PUBLIC KEY-----\n")
			checkpoint := string(bundle.FormatKey(f.Identity.Checkpoint))
			out := []vector{
				{Name: "a ledger", Class: accept, Input: values{"text": good}, Output: values{"id": f.Identity.ID.String(), "origin": f.Identity.Origin, "bundle": hexOf(f.Identity.Bundle), "checkpoint": hexOf(f.Identity.Checkpoint)}},
				{Name: "a bundle key", Class: accept, Input: values{"text": pem}, Output: values{"bundle": hexOf(f.Identity.Bundle)}},
			}
			bad := map[string]string{
				"empty": "", "header only": lines[0], "another version": strings.Replace(good, "/v1", "/v2", 1), "upper-case ID": strings.Replace(good, "id: ba", "id: BA", 1),
				"short ID": strings.Replace(good, "id: ba", "id: ", 1), "zero ID": strings.Replace(good, f.Identity.ID.String(), strings.Repeat("0", 32), 1),
				"origin with a space": strings.Replace(good, "origin: baildock", "origin: bail dock", 1), "empty origin": lines[0] + lines[1] + "origin: \n" + strings.Join(lines[3:], ""),
				"lines exchanged": lines[0] + lines[2] + lines[1] + strings.Join(lines[3:], ""), "carriage returns": strings.ReplaceAll(good, "\n", "\r\n"),
				"a line behind": good + "\n", "a space in front": " " + good, "no last newline": strings.TrimSuffix(good, "\n"), "one key": blocks[0],
				"keys exchanged": head + checkpoint + pem, "three keys": good + checkpoint, "PEM header": strings.Replace(good, "KEY-----\n", "KEY-----\nA: b\n\n", 1),
				"text between": head + pem + "hello\n" + checkpoint, "private type": strings.ReplaceAll(good, "PUBLIC KEY", "PRIVATE KEY"),
				"bare checkpoint key": checkpoint, "two bare keys": pem + pem, "a bare key and a line": pem + "\n", "longer than allowed": good + strings.Repeat("\n", bundle.MaxIdentity),
			}
			for _, name := range sorted(bad) {
				out = append(out, vector{Name: name, Class: refuse, Kind: "form", Input: values{"text": bad[name]}})
			}
			return out
		},
		run: func(t *testing.T, in values) (string, values, error) {
			text := []byte(in.text(t, "text"))
			if !bundle.IsIdentity(text) {
				spki, err := bundle.ParseKey(text)
				return settled(values{"bundle": hexOf(spki)}, err)
			}
			i, err := bundle.ParseIdentity(text)
			return settled(values{"id": i.ID.String(), "origin": i.Origin, "bundle": hexOf(i.Bundle), "checkpoint": hexOf(i.Checkpoint)}, err)
		},
	}
}

func witnessOf(name string, at int64) witness.Cosigner {
	seed := sha256.Sum256([]byte("conformance witness " + name))
	return witness.Cosigner{Name: name + ".example", Private: ed25519.NewKeyFromSeed(seed[:]), Now: func() time.Time { return time.Unix(at, 0) }}
}

func withDir(t *testing.T, w witness.Cosigner) witness.Cosigner {
	w.Dir = t.TempDir() // a witness that has seen nothing yet
	return w
}

func otherKey(t *testing.T) []byte {
	t.Helper()
	seed := sha256.Sum256([]byte("conformance other checkpoint key"))
	spki, err := x509.MarshalPKIXPublicKey(ed25519.NewKeyFromSeed(seed[:]).Public())
	require.NoError(t, err)
	return spki
}

// signNote signs a text that is no checkpoint with the fixture's checkpoint key.
func signNote(t *testing.T, origin, text string) string {
	t.Helper()
	seed := sha256.Sum256([]byte("exporttest checkpoint"))
	key := ed25519.NewKeyFromSeed(seed[:])
	hash := sha256.Sum256(append([]byte(origin+"\n\x01"), key.Public().(ed25519.PublicKey)...))
	return text + "\n— " + origin + " " + base64.StdEncoding.EncodeToString(append(hash[:4:4], ed25519.Sign(key, []byte(text))...)) + "\n"
}

func lastLine(note string) string {
	l := strings.SplitAfter(strings.TrimSuffix(note, "\n"), "\n")
	return l[len(l)-1] + "\n"
}

func ownLine(note string) string {
	_, signatures, _ := strings.Cut(note, "\n\n")
	return strings.SplitAfter(signatures, "\n")[0]
}

func flip64(s string) string {
	if s == "A" {
		return "B"
	}
	return "A"
}

// bendSignature changes one bit in the middle of the last signature.
func bendSignature(note string) string {
	at := len(note) - 30
	return note[:at] + flip64(note[at:at+1]) + note[at+1:]
}

func bendHash(vkey string) string {
	parts := strings.SplitN(vkey, "+", 3)
	return parts[0] + "+" + flip(parts[1]) + "+" + parts[2]
}

// strayBits is base64 of 32 bytes whose last letter has bits that no byte holds.
func strayBits(b []byte) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	s := base64.StdEncoding.EncodeToString(b)
	last := strings.IndexByte(letters, s[len(s)-2])
	return s[:len(s)-2] + string(letters[last|1]) + "="
}
