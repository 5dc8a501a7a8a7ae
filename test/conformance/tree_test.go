package conformance

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/ledger"
)

// The tree of RFC 6962 §2.1, as its recursion reads: it shares nothing with the code under test.

func treeLeaves(n int) [][32]byte {
	out := make([][32]byte, n)
	for i := range out {
		out[i] = sha256.Sum256(fmt.Appendf([]byte{0}, "%d", i))
	}
	return out
}

func split(n int) int {
	k := 1
	for 2*k < n {
		k *= 2
	}
	return k
}

func rootOf(l [][32]byte) [32]byte {
	switch len(l) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return l[0]
	}
	k := split(len(l))
	left, right := rootOf(l[:k]), rootOf(l[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

func pathOf(m int, l [][32]byte) [][32]byte {
	if len(l) == 1 {
		return nil
	}
	k := split(len(l))
	if m < k {
		return append(pathOf(m, l[:k]), rootOf(l[k:]))
	}
	return append(pathOf(m-k, l[k:]), rootOf(l[:k]))
}

func consistencyOf(m int, l [][32]byte, whole bool) [][32]byte {
	if m == len(l) {
		if whole {
			return nil
		}
		return [][32]byte{rootOf(l)}
	}
	k := split(len(l))
	if m <= k {
		return append(consistencyOf(m, l[:k], whole), rootOf(l[k:]))
	}
	return append(consistencyOf(m-k, l[k:], false), rootOf(l[:k]))
}

// sizes are those at which trees and stored tiles change their shape.
var sizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 511, 513, 1000, 1025}

func trees() family {
	return family{
		name: "trees", least: 500,
		about: "Merkle trees (RFC 6962 section 2.1). Leaf hash number i of every tree here is SHA-256(0x00, i in decimal). Three kinds of input: {size}: accepted, root is the tree's; {leaf, index, size, root, proof}: an inclusion proof, nearest to the leaf first; {old_size, old_root, size, root, proof}: a consistency proof.",
		make: func(t *testing.T) []vector {
			all := treeLeaves(1025)
			var out []vector
			add := func(class, name, kind string, in, o values) {
				out = append(out, vector{Name: name, Class: class, Kind: kind, Input: in, Output: o})
			}
			root := func(n int) string { r := rootOf(all[:n]); return hexOf(r[:]) }
			for _, n := range append([]int{0}, sizes...) {
				add(accept, fmt.Sprintf("root of %d", n), "", values{"size": n}, values{"root": root(n)})
			}
			for _, n := range sizes {
				indexes := map[int]bool{0: true, n / 2: true, n - 1: true, split(n) - 1: true, min(split(n), n-1): true}
				for _, i := range slices.Sorted(maps.Keys(indexes)) {
					in := values{"leaf": hexOf(all[i][:]), "index": i, "size": n, "root": root(n), "proof": hexList(pathOf(i, all[:n]))}
					add(accept, fmt.Sprintf("inclusion of %d in %d", i, n), "", in, nil)
				}
				for _, m := range sizes {
					if m > n {
						break
					}
					in := values{"old_size": m, "old_root": root(m), "size": n, "root": root(n), "proof": hexList(consistencyOf(m, all[:n], true))}
					add(accept, fmt.Sprintf("consistency of %d with %d", m, n), "", in, nil)
				}
			}
			badInclusion(all, root, add)
			badConsistency(all, root, add)
			return sortedVectors(out)
		},
		run: func(t *testing.T, in values) (string, values, error) {
			size := in.number(t, "size")
			if _, ok := in["proof"]; !ok {
				var f ledger.Frontier
				for _, l := range treeLeaves(int(size)) {
					f.Append(l)
				}
				r := f.Root()
				return accept, values{"root": hexOf(r[:])}, nil
			}
			var proof []ledger.Hash
			for _, h := range in.byteList(t, "proof") {
				proof = append(proof, ledger.Hash(h))
			}
			root := ledger.Hash(in.bytes(t, "root"))
			if _, ok := in["leaf"]; ok {
				return settled(nil, ledger.VerifyInclusion(ledger.Hash(in.bytes(t, "leaf")), ledger.Index(in.number(t, "index")), size, proof, root))
			}
			return settled(nil, ledger.VerifyConsistency(in.number(t, "old_size"), ledger.Hash(in.bytes(t, "old_root")), size, root, proof))
		},
	}
}

// bentProofs are the ways to spoil a proof.
func bentProofs(proof []string) map[string][]string {
	out := map[string][]string{"a hash more": append(slices.Clone(proof), hexOf(make([]byte, 32)))}
	if n := len(proof); n > 0 {
		out["first hash missing"], out["last hash missing"] = proof[1:], proof[:n-1]
		out["first hash twice"] = append([]string{proof[0]}, proof...)
		flipped := slices.Clone(proof)
		flipped[n/2] = flip(flipped[n/2])
		out["a bit off"] = flipped
		if n > 1 {
			out["reversed"] = reversed(proof)
		}
	}
	return out
}

func flip(s string) string {
	if s[0] == '0' {
		return "1" + s[1:]
	}
	return "0" + s[1:]
}

func badInclusion(all [][32]byte, root func(int) string, add func(class, name, kind string, in, o values)) {
	for _, at := range [][2]int{{0, 1}, {0, 2}, {2, 3}, {5, 7}, {7, 8}, {8, 9}, {200, 257}, {999, 1000}, {1024, 1025}} {
		i, n := at[0], at[1]
		in := values{"leaf": hexOf(all[i][:]), "index": i, "size": n, "root": root(n), "proof": hexList(pathOf(i, all[:n]))}
		bad := map[string]values{
			"another leaf":    in.with("leaf", hexOf(all[(i+1)%1025][:])),
			"another root":    in.with("root", root(n-1)),
			"a node as leaf":  in.with("leaf", root(n)).with("root", root(n-1)),
			"index at size":   in.with("index", n),
			"index beyond":    in.with("index", uint64(1)<<61),
			"size 0":          in.with("size", 0),
			"size past bound": in.with("size", uint64(1)<<63),
		}
		if n > 1 {
			bad["another index"] = in.with("index", (i+1)%n)
		}
		for name, proof := range bentProofs(hexList(pathOf(i, all[:n]))) {
			bad[name] = in.with("proof", proof)
		}
		for _, name := range sorted(bad) {
			add(refuse, fmt.Sprintf("inclusion of %d in %d: %s", i, n, name), "inclusion", bad[name], nil)
		}
	}
}

func badConsistency(all [][32]byte, root func(int) string, add func(class, name, kind string, in, o values)) {
	for _, at := range [][2]int{{1, 2}, {2, 3}, {3, 7}, {4, 8}, {6, 8}, {7, 8}, {8, 9}, {64, 65}, {255, 257}, {256, 1000}, {1000, 1025}} {
		m, n := at[0], at[1]
		in := values{"old_size": m, "old_root": root(m), "size": n, "root": root(n), "proof": hexList(consistencyOf(m, all[:n], true))}
		bad := map[string]values{
			"another old root": in.with("old_root", root(m+1)),
			"another root":     in.with("root", root(n-1)),
			"sizes exchanged":  in.with("old_size", n).with("size", m),
			"roots exchanged":  in.with("old_root", root(n)).with("root", root(m)),
			"from nothing":     in.with("old_size", 0),
			"size past bound":  in.with("size", uint64(1)<<63),
		}
		for name, proof := range bentProofs(hexList(consistencyOf(m, all[:n], true))) {
			bad[name] = in.with("proof", proof)
		}
		for _, name := range sorted(bad) {
			add(refuse, fmt.Sprintf("consistency of %d with %d: %s", m, n, name), "consistency", bad[name], nil)
		}
	}
	same := values{"old_size": 5, "old_root": root(5), "size": 5, "root": root(6), "proof": []string{}}
	add(refuse, "consistency of 5 with 5: two roots", "consistency", same, nil)
	empty := values{"old_size": 0, "old_root": root(0), "size": 5, "root": root(5), "proof": []string{}}
	add(accept, "consistency of 0 with 5", "", empty, nil)
	add(refuse, "consistency of 0 with 5: a proof", "consistency", empty.with("proof", []string{root(1)}), nil)
	add(refuse, "consistency of 0 with 5: another empty root", "consistency", empty.with("old_root", root(1)), nil)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sortedVectors keeps accepted vectors first, so that a reader meets what is right before what is wrong.
func sortedVectors(v []vector) []vector {
	rank := map[string]int{accept: 0, valid: 0, newer: 1, notChecked: 1}
	order := func(v vector) int {
		if r, ok := rank[v.Class]; ok {
			return r
		}
		return 2
	}
	slices.SortStableFunc(v, func(a, b vector) int { return cmp.Compare(order(a), order(b)) })
	return v
}

// The recursion itself is held to the one tree that everybody knows: RFC 6962's empty one, and a pair.
func TestRecursion(t *testing.T) {
	empty := rootOf(nil)
	require.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", hexOf(empty[:]))
	l := treeLeaves(2)
	pair := sha256.Sum256(append(append([]byte{1}, l[0][:]...), l[1][:]...))
	require.Equal(t, pair, rootOf(l))
}
