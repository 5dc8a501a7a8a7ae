package ledger

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"
)

// vectors is testdata/ledger-v1.txt.
type vectors struct {
	events      []Event
	cbor        [][]byte
	leaves      []Hash
	ids         []string
	roots       []Hash
	inclusion   map[[2]int][]Hash // by index and size
	consistency map[[2]int][]Hash // by old and new size
	origin      string
	seed, pub   []byte
	note        string
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	f, err := os.Open("testdata/ledger-v1.txt")
	require.NoError(t, err)
	defer f.Close()
	v := vectors{inclusion: map[[2]int][]Hash{}, consistency: map[[2]int][]Hash{}}
	bin := func(s string) []byte {
		if s == "-" {
			return []byte{}
		}
		b, err := hex.DecodeString(s)
		require.NoError(t, err)
		return b
	}
	hash := func(s string) Hash {
		b := bin(s)
		require.Len(t, b, 32)
		return Hash(b)
	}
	var proof func(Hash)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		key, value, _ := strings.Cut(line, " ")
		if key != "note" {
			if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) == "" {
				continue
			}
			key, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		var e *Event
		if len(v.events) > 0 {
			e = &v.events[len(v.events)-1]
		}
		pair := func(into map[[2]int][]Hash) {
			var at [2]int
			_, err := fmt.Sscan(value, &at[0], &at[1])
			require.NoError(t, err)
			into[at] = []Hash{}
			proof = func(h Hash) { into[at] = append(into[at], h) }
		}
		switch key {
		case "event":
			require.Equal(t, strconv.Itoa(len(v.events)), value)
			v.events = append(v.events, Event{Index: Index(len(v.events))})
			v.cbor = append(v.cbor, nil)
		case "stream":
			e.Stream = StreamID(value)
		case "version":
			n, err := strconv.ParseInt(value, 10, 64)
			require.NoError(t, err)
			e.Version = Version(n)
		case "type":
			e.Type = value
		case "time":
			e.Time, err = strconv.ParseInt(value, 10, 64)
			require.NoError(t, err)
		case "prev":
			e.Prev = bin(value)
		case "media":
			e.Media = value
		case "meta":
			e.Meta = bin(value)
		case "data":
			e.Data = bin(value)
		case "cbor":
			last := len(v.cbor) - 1
			v.cbor[last] = append(v.cbor[last], bin(value)...)
		case "leaf":
			v.leaves = append(v.leaves, hash(value))
		case "id":
			v.ids = append(v.ids, value)
		case "root":
			size, root, _ := strings.Cut(value, " ")
			require.Equal(t, strconv.Itoa(len(v.roots)), size)
			v.roots = append(v.roots, hash(root))
		case "inclusion":
			pair(v.inclusion)
		case "consistency":
			pair(v.consistency)
		case "hash":
			if value != "-" {
				proof(hash(value))
			}
		case "origin":
			v.origin = value
		case "seed":
			v.seed = bin(value)
		case "public":
			v.pub = bin(value)
		case "note":
			v.note += value + "\n"
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	require.Len(t, v.events, 5)
	require.Len(t, v.leaves, 5)
	require.Len(t, v.ids, 5)
	require.Len(t, v.roots, 6)
	require.Len(t, v.inclusion, 9)
	require.Len(t, v.consistency, 8)
	require.NotEmpty(t, v.note)
	return v
}

// req R4
func TestGoldenLeaves(t *testing.T) {
	v := readVectors(t)
	check := NewChecker()
	for i, e := range v.events {
		require.Equal(t, hex.EncodeToString(v.cbor[i]), hex.EncodeToString(MarshalLeaf(e)))
		require.Equal(t, v.leaves[i], e.Leaf())
		require.Equal(t, v.ids[i], e.ID().String())
		back, err := UnmarshalLeaf(v.cbor[i])
		require.NoError(t, err)
		back.Index = e.Index
		require.Equal(t, e, back)
		leaf, err := check.Check(e)
		require.NoError(t, err)
		require.Equal(t, v.leaves[i], leaf)
		require.Equal(t, v.roots[i+1], check.Root())
	}
	// Preparing and chaining the same events makes the same leaves.
	first, second := v.events[0].Prepared(), v.events[1].Prepared()
	events, leaves := Chain("notes", EmptyHead, first, second)
	require.Equal(t, v.leaves[:2], leaves)
	_, leaves = Chain("notes", events[1].Head(), v.events[3].Prepared())
	require.Equal(t, v.leaves[3:4], leaves)
}

// req R4
func TestGoldenTree(t *testing.T) {
	v := readVectors(t)
	read := nodesOf(v.leaves)
	for size, root := range v.roots {
		got, err := RootFrom(uint64(size), read)
		require.NoError(t, err)
		require.Equal(t, root, got)
	}
	for at, proof := range v.inclusion {
		index, size := Index(at[0]), uint64(at[1])
		got, err := InclusionFrom(index, size, read)
		require.NoError(t, err)
		require.Equal(t, proof, got)
		require.NoError(t, VerifyInclusion(v.leaves[index], index, size, proof, v.roots[size]))
	}
	for at, proof := range v.consistency {
		old, size := uint64(at[0]), uint64(at[1])
		got, err := ConsistencyFrom(old, size, read)
		require.NoError(t, err)
		require.Equal(t, proof, got)
		require.NoError(t, VerifyConsistency(old, v.roots[old], size, v.roots[size], proof))
	}
}

// req R4
func TestGoldenCheckpoint(t *testing.T) {
	v := readVectors(t)
	key := ed25519.NewKeyFromSeed(v.seed)
	require.Equal(t, v.pub, []byte(key.Public().(ed25519.PublicKey)))
	signer, err := NewEd25519Signer(v.origin, key)
	require.NoError(t, err)
	c, err := CheckpointSigner{Origin: v.origin, Signer: signer}.Sign(5, v.roots[5])
	require.NoError(t, err)
	require.Equal(t, v.note, string(c.Note))
	verifier, err := NewEd25519Verifier(v.origin, v.pub)
	require.NoError(t, err)
	opened, err := OpenCheckpoint([]byte(v.note), v.origin, note.VerifierList(verifier))
	require.NoError(t, err)
	require.Equal(t, c, opened)
	require.True(t, bytes.HasPrefix(c.Note, []byte(FormatCheckpoint(v.origin, 5, v.roots[5]))))
}

// FORMAT.md shows the tables as they are, and its example is right.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	schema, err := os.ReadFile("sqlite/schema.sql")
	require.NoError(t, err)
	require.Contains(t, string(page), "```sql\n"+string(schema)+"```\n")

	_, example, found := strings.Cut(string(page), "The smallest leaf")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "\n## ")
	var leaf []byte
	for _, line := range strings.Split(example, "\n") {
		for _, word := range strings.Fields(line) {
			b, err := hex.DecodeString(word)
			if !strings.HasPrefix(line, "    ") || err != nil {
				break
			}
			leaf = append(leaf, b...)
		}
	}
	require.Equal(t, MarshalLeaf(Event{Stream: "a", Type: "T", Media: "a/b"}), leaf)
}
