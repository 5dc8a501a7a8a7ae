package redact

// automaton finds many patterns at once (Aho and Corasick, 1975). Node 0 is the root. Children
// hang in a list, since nearly every node of a secret has one; the root has a table.
type automaton struct {
	nodes   []node
	root    [256]int32
	longest int // symbols of the longest pattern
}

type node struct {
	child, sibling, fail int32
	depth                int32
	// match is the length in symbols of the longest pattern that ends here, zero for none. Shorter
	// ones that end here lie inside it.
	match int32
	left  *class // what may stand before that pattern and goes with it; nil for nothing
	b     byte
}

// class is a set of bytes.
type class [256]bool

func newAutomaton() *automaton { return &automaton{nodes: make([]node, 1)} }

// add must not be called after link.
func (a *automaton) add(pattern []byte, left *class) {
	n := int32(0)
	for _, b := range pattern {
		next := a.child(n, b)
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{b: b, depth: a.nodes[n].depth + 1})
			if n == 0 {
				a.root[b] = next
			} else {
				a.nodes[next].sibling = a.nodes[n].child
			}
			a.nodes[n].child = next
		}
		n = next
	}
	a.nodes[n].match, a.nodes[n].left = int32(len(pattern)), left
	a.longest = max(a.longest, len(pattern))
}

// link sets where each node goes on when no child fits: the longest proper suffix that begins a
// pattern. Nodes are visited by depth.
func (a *automaton) link() {
	var queue []int32
	for _, n := range a.root {
		if n != 0 {
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for c := a.nodes[n].child; c != 0; c = a.nodes[c].sibling {
			queue = append(queue, c)
			f := a.next(a.nodes[n].fail, a.nodes[c].b)
			a.nodes[c].fail = f
			if a.nodes[c].match == 0 {
				a.nodes[c].match, a.nodes[c].left = a.nodes[f].match, a.nodes[f].left
			}
		}
	}
}

func (a *automaton) child(n int32, b byte) int32 {
	if n == 0 {
		return a.root[b]
	}
	c := a.nodes[n].child
	for c != 0 && a.nodes[c].b != b {
		c = a.nodes[c].sibling
	}
	return c
}

// next is the node after one more symbol.
func (a *automaton) next(n int32, b byte) int32 {
	for {
		if c := a.child(n, b); c != 0 || n == 0 {
			return c
		}
		n = a.nodes[n].fail
	}
}
