package ledger

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// EmptyRoot is the root of the tree without leaves: SHA-256 of nothing (RFC 6962 §2.1).
var EmptyRoot = Hash(sha256.Sum256(nil))

// Errors of a proof that doesn't hold.
var (
	ErrInclusionProof   = errors.New("inclusion proof doesn't hold")
	ErrConsistencyProof = errors.New("consistency proof doesn't hold")
)

// VerifyInclusion checks that `leaf` is leaf number `index` of the tree with `size` leaves and
// root `root` (RFC 6962 §2.1.1).
func VerifyInclusion(leaf Hash, index Index, size uint64, proof []Hash, root Hash) error {
	if err := checkSize(size); err != nil {
		return err
	}
	if uint64(index) >= size {
		return fmt.Errorf("%w: index %d is outside a tree of %d leaves", ErrInclusionProof, index, size)
	}
	if err := tlog.CheckRecord(toTlog(proof), int64(size), tlog.Hash(root), int64(index), tlog.Hash(leaf)); err != nil {
		return fmt.Errorf("%w: index %d, size %d", ErrInclusionProof, index, size)
	}
	return nil
}

// VerifyConsistency checks that the tree with `oldSize` leaves and root `oldRoot` is a prefix of
// the tree with `size` leaves and root `root` (RFC 6962 §2.1.2). The empty tree is a prefix of
// every tree, with an empty proof; so is a tree of itself.
func VerifyConsistency(oldSize uint64, oldRoot Hash, size uint64, root Hash, proof []Hash) error {
	if err := checkSize(size); err != nil {
		return err
	}
	if oldSize > size {
		return fmt.Errorf("%w: size %d comes after size %d", ErrConsistencyProof, oldSize, size)
	}
	if oldSize == 0 {
		if len(proof) != 0 || oldRoot != EmptyRoot || size == 0 && root != EmptyRoot {
			return fmt.Errorf("%w: from size 0 to %d", ErrConsistencyProof, size)
		}
		return nil
	}
	if err := tlog.CheckTree(toTlog(proof), int64(size), tlog.Hash(root), int64(oldSize), tlog.Hash(oldRoot)); err != nil {
		return fmt.Errorf("%w: from size %d to %d", ErrConsistencyProof, oldSize, size)
	}
	return nil
}

// Node names a complete subtree: its Number-th at Level, covering 2^Level leaves. Level 0 are the
// leaves.
type Node struct {
	Level  uint
	Number uint64
}

// Completed returns the leaf that completes the subtree. Appending leaf i completes the nodes of
// levels 0 to TrailingOnes(i), and a store that keeps just those hashes with leaf i holds every
// complete subtree, each at a place that can be computed.
func (n Node) Completed() Index { return Index((n.Number+1)<<n.Level - 1) }

// NodeCount returns how many nodes appending leaf i completes, the leaf included.
func NodeCount(i Index) int { return bits.TrailingZeros64(^uint64(i)) + 1 }

// NodeReader returns the hashes of complete subtrees, in the order asked for. It is asked for
// O(log n) at a time.
type NodeReader func(nodes []Node) ([]Hash, error)

func (r NodeReader) tlog() tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		nodes := make([]Node, len(indexes))
		for i, x := range indexes {
			level, n := tlog.SplitStoredHashIndex(x)
			nodes[i] = Node{Level: uint(level), Number: uint64(n)}
		}
		hashes, err := r(nodes)
		if err != nil {
			return nil, err
		}
		return toTlog(hashes), nil
	})
}

// RootFrom computes the root of the tree with `size` leaves.
func RootFrom(size uint64, r NodeReader) (Hash, error) {
	if err := checkSize(size); err != nil {
		return Hash{}, err
	}
	if size == 0 {
		return EmptyRoot, nil
	}
	h, err := tlog.TreeHash(int64(size), r.tlog())
	return Hash(h), err
}

// InclusionFrom computes the audit path of leaf `index` in the tree with `size` leaves.
func InclusionFrom(index Index, size uint64, r NodeReader) ([]Hash, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	if uint64(index) >= size {
		return nil, fmt.Errorf("index %d is outside a tree of %d leaves", index, size)
	}
	p, err := tlog.ProveRecord(int64(size), int64(index), r.tlog())
	return fromTlog(p), err
}

// ConsistencyFrom computes the proof that the tree with `old` leaves is a prefix of the tree with
// `size` leaves. It is empty for 0 and for `size`.
func ConsistencyFrom(old, size uint64, r NodeReader) ([]Hash, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	if old > size {
		return nil, fmt.Errorf("size %d comes after size %d", old, size)
	}
	if old == 0 || old == size {
		return []Hash{}, nil
	}
	p, err := tlog.ProveTree(int64(size), int64(old), r.tlog())
	return fromTlog(p), err
}

// Frontier is the right edge of a tree: the roots of its largest complete subtrees. It is all a
// writer needs to append. The zero value is the empty tree.
type Frontier struct {
	size  uint64
	roots []Hash // one for each bit of size, largest subtree first

	scratch []Hash // of Append
}

// FrontierFrom reads the frontier of the tree with `size` leaves.
func FrontierFrom(size uint64, r NodeReader) (Frontier, error) {
	if err := checkSize(size); err != nil {
		return Frontier{}, err
	}
	if size == 0 {
		return Frontier{}, nil
	}
	var nodes []Node
	for start, level := uint64(0), 63; level >= 0; level-- {
		if width := uint64(1) << level; size&width != 0 {
			nodes = append(nodes, Node{Level: uint(level), Number: start >> level})
			start += width
		}
	}
	roots, err := r(nodes)
	if err != nil {
		return Frontier{}, err
	}
	return Frontier{size: size, roots: roots}, nil
}

// Size returns the number of leaves.
func (f *Frontier) Size() uint64 { return f.size }

// Append adds a leaf.
func (f *Frontier) Append(leaf Hash) { f.scratch = f.AppendNodes(f.scratch[:0], leaf) }

// AppendNodes adds a leaf and appends to dst the nodes it completes, from the leaf itself upwards:
// NodeCount of them.
func (f *Frontier) AppendNodes(dst []Hash, leaf Hash) []Hash {
	node := leaf
	dst = append(dst, node)
	for rest := f.size; rest&1 == 1; rest >>= 1 {
		node = nodeHash(f.roots[len(f.roots)-1], node)
		f.roots = f.roots[:len(f.roots)-1]
		dst = append(dst, node)
	}
	f.roots = append(f.roots, node)
	f.size++
	return dst
}

// Root returns the tree's root.
func (f *Frontier) Root() Hash {
	if f.size == 0 {
		return EmptyRoot
	}
	root := f.roots[len(f.roots)-1]
	for i := len(f.roots) - 2; i >= 0; i-- {
		root = nodeHash(f.roots[i], root)
	}
	return root
}

// Clone returns an independent copy.
func (f *Frontier) Clone() Frontier {
	return Frontier{size: f.size, roots: append([]Hash(nil), f.roots...)}
}

func nodeHash(left, right Hash) Hash {
	return Hash(tlog.NodeHash(tlog.Hash(left), tlog.Hash(right)))
}

// checkSize keeps sizes inside what every layer can count.
func checkSize(size uint64) error {
	if size > math.MaxInt64>>1 {
		return fmt.Errorf("tree size %d is out of range", size)
	}
	return nil
}

func toTlog(in []Hash) []tlog.Hash {
	out := make([]tlog.Hash, len(in))
	for i, h := range in {
		out[i] = tlog.Hash(h)
	}
	return out
}

func fromTlog(in []tlog.Hash) []Hash {
	out := make([]Hash, len(in))
	for i, h := range in {
		out[i] = Hash(h)
	}
	return out
}
