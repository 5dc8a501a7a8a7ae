package sigstore

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/stretchr/testify/require"
)

const predicateType = "https://github.com/baildock/baildock/predicate/bundle/v1"

// exported is a bundle made by the program in a fresh home, with what stands beside it.
type exported struct {
	file     []byte // the bundle
	sigstore []byte
	key      *ecdsa.PublicKey // the ledger's bundle key, from ledger.pub
}

func export(t *testing.T, flags ...string) exported {
	t.Helper()
	program := os.Getenv("BAILDOCK")
	require.NotEmpty(t, program, "BAILDOCK names the program to test; make test-interop sets it")
	dir := t.TempDir()
	run := func(code int, args ...string) {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if code != 0 {
			require.ErrorAs(t, err, &exit, "%s", out)
			require.Equal(t, code, exit.ExitCode(), "%s", out)
			return
		}
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "src"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "src", "a.txt"), []byte("text\n"), 0o644))
	run(0, "init")
	// There is no daemon: the refusal is evidence too, and exported like any other outcome.
	run(4, "run", "--quiet", "--image", "sha256:"+strings.Repeat("01", 32), "--source", "src",
		"--docker-socket", filepath.Join(dir, "none.sock"), "--attempt", "one", "--", "/bin/tool")
	run(0, append([]string{"export", "one", "-o", "one.cbor", "--sigstore"}, flags...)...)
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return b
	}
	block, _ := pem.Decode(read(".baildock/ledger.pub"))
	require.NotNil(t, block)
	key, err := cryptoutils.UnmarshalPEMToPublicKey(pem.EncodeToMemory(block))
	require.NoError(t, err)
	return exported{file: read("one.cbor"), sigstore: read("one.cbor.sigstore.json"), key: key.(*ecdsa.PublicKey)}
}

// check asks sigstore-go for its verdict, with a key that somebody gave us and nothing from a network.
func check(file, sigstoreBundle []byte, key crypto.PublicKey) (*verify.VerificationResult, error) {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(sigstoreBundle); err != nil {
		return nil, err
	}
	v, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(v, time.Time{}, time.Time{}), nil
	})
	verifier, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps())
	if err != nil {
		return nil, err
	}
	r, err := verifier.Verify(&b, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(file)), verify.WithKey()))
	if err == nil && r.Statement.PredicateType != predicateType {
		return nil, fmt.Errorf("predicate type %q", r.Statement.PredicateType)
	}
	return r, err
}

// req T5: sigstore-go accepts what export writes.
func TestAccepted(t *testing.T) {
	for _, flags := range [][]string{nil, {"--withhold", "recipe,env"}} {
		e := export(t, flags...)
		r, err := check(e.file, e.sigstore, e.key)
		require.NoError(t, err)
		digest := sha256.Sum256(e.file)
		require.Len(t, r.Statement.Subject, 1)
		require.Equal(t, "one.cbor", r.Statement.Subject[0].Name)
		require.Equal(t, hex.EncodeToString(digest[:]), r.Statement.Subject[0].Digest["sha256"])
		require.Equal(t, "unavailable", r.Statement.Predicate.Fields["attempts"].GetListValue().Values[0].GetStructValue().Fields["outcome"].GetStringValue())
	}
}

// req T5: it refuses every change: of the file, of the statement, of the envelope, of the key.
func TestTamperingIsRefused(t *testing.T) {
	e := export(t)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tried := 0
	refused := func(name string, file, sigstoreBundle []byte, key crypto.PublicKey) {
		t.Helper()
		_, err := check(file, sigstoreBundle, key)
		require.Error(t, err, name)
		tried++
	}
	_, err = check(e.file, e.sigstore, e.key)
	require.NoError(t, err)

	for bit := 0; bit < len(e.file)*8; bit += len(e.file)*8/200 + 1 {
		bent := bytes.Clone(e.file)
		bent[bit/8] ^= 1 << (bit % 8)
		refused(fmt.Sprintf("bit %d of the file", bit), bent, e.sigstore, e.key)
	}
	refused("file cut", e.file[:len(e.file)-1], e.sigstore, e.key)
	refused("file longer", append(bytes.Clone(e.file), 0), e.sigstore, e.key)
	refused("no file", nil, e.sigstore, e.key)
	refused("another key", e.file, e.sigstore, &other.PublicKey)

	// The statement and the signature, bit by bit, inside their base64.
	for _, field := range []string{"payload", "sig"} {
		raw := decoded(t, e.sigstore, field)
		for bit := 0; bit < len(raw)*8; bit += len(raw)*8/200 + 1 {
			bent := bytes.Clone(raw)
			bent[bit/8] ^= 1 << (bit % 8)
			refused(fmt.Sprintf("bit %d of %s", bit, field), e.file, replaced(t, e.sigstore, field, bent), e.key)
		}
	}

	edit := func(change func(doc, envelope map[string]any)) []byte {
		var doc map[string]any
		require.NoError(t, json.Unmarshal(e.sigstore, &doc))
		change(doc, doc["dsseEnvelope"].(map[string]any))
		b, err := json.Marshal(doc)
		require.NoError(t, err)
		return b
	}
	_, err = check(e.file, edit(func(_, _ map[string]any) {}), e.key)
	require.NoError(t, err)
	first := func(envelope map[string]any) map[string]any {
		return envelope["signatures"].([]any)[0].(map[string]any)
	}
	signedBy := func(key *ecdsa.PrivateKey, payload string) func(_, envelope map[string]any) {
		return func(_, envelope map[string]any) {
			const kind = "application/vnd.in-toto+json"
			digest := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload))
			sig, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
			require.NoError(t, err)
			envelope["payload"] = base64.StdEncoding.EncodeToString([]byte(payload))
			first(envelope)["sig"] = base64.StdEncoding.EncodeToString(sig)
		}
	}
	statement := string(decoded(t, e.sigstore, "payload"))
	for name, change := range map[string]func(doc, envelope map[string]any){
		"other payload type":     func(_, v map[string]any) { v["payloadType"] = "application/json" },
		"no signature":           func(_, v map[string]any) { v["signatures"] = []any{} },
		"two signatures":         func(_, v map[string]any) { v["signatures"] = []any{first(v), first(v)} },
		"empty signature":        func(_, v map[string]any) { first(v)["sig"] = "" },
		"unknown field":          func(d, _ map[string]any) { d["extra"] = 1 },
		"unknown envelope field": func(_, v map[string]any) { v["extra"] = 1 },
		"no media type":          func(d, _ map[string]any) { delete(d, "mediaType") },
		"unknown media type":     func(d, _ map[string]any) { d["mediaType"] = "application/vnd.dev.sigstore.bundle.v9+json" },
		"no key material":        func(d, _ map[string]any) { delete(d, "verificationMaterial") },
		"no envelope":            func(d, _ map[string]any) { delete(d, "dsseEnvelope") },
		"message signature": func(d, v map[string]any) {
			d["messageSignature"] = map[string]any{"signature": first(v)["sig"]}
			delete(d, "dsseEnvelope")
		},
		"signed by another key":      signedBy(other, statement),
		"outcome changed, by others": signedBy(other, strings.Replace(statement, "unavailable", "success", 1)),
		"not a statement, by others": signedBy(other, "{}"),
	} {
		refused(name, e.file, edit(change), e.key)
	}
	refused("not JSON", e.file, e.file, e.key)
	refused("two documents", e.file, append(bytes.Clone(e.sigstore), e.sigstore...), e.key)
	again := export(t)
	refused("another bundle's", again.file, e.sigstore, e.key)
	refused("another ledger's", e.file, again.sigstore, e.key)
	require.Greater(t, tried, 400)
	t.Logf("%d changes refused", tried)
}

// decoded returns the bytes of the first base64 string field of that name.
func decoded(t *testing.T, doc []byte, field string) []byte {
	t.Helper()
	text, _ := located(t, doc, field)
	b, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return b
}

func replaced(t *testing.T, doc []byte, field string, with []byte) []byte {
	t.Helper()
	text, at := located(t, doc, field)
	return bytes.Join([][]byte{doc[:at], []byte(base64.StdEncoding.EncodeToString(with)), doc[at+len(text):]}, nil)
}

func located(t *testing.T, doc []byte, field string) (text string, at int) {
	t.Helper()
	open := []byte(`"` + field + `":"`)
	i := bytes.Index(doc, open)
	require.GreaterOrEqual(t, i, 0, field)
	at = i + len(open)
	end := bytes.IndexByte(doc[at:], '"')
	return string(doc[at : at+end]), at
}
