package redact

import "unicode/utf8"

// interval is the bytes [from, to) of a stream.
type interval struct{ from, to int64 }

// scanner looks for one form in a stream.
type scanner struct {
	form   *form
	chains []*chain // those that have matched something; no two agree on what comes next
	free   []*chain
	pos    int64 // everything before it was looked at
	found  []interval
}

// chain is one alignment: symbols read one after another, each where the last one ended. Its
// course depends on the text alone, so two chains that meet differ only in what they matched.
type chain struct {
	at     int64 // where the next symbol begins
	node   int32
	count  int
	places []int64 // a ring: where each of the last symbols began
	broken bool    // the last thing read was the end of a line
	fell   bool    // the last step lost the beginning of what had matched
}

func newScanner(f *form) *scanner { return &scanner{form: f} }

// scan looks at buf, which begins at byte base of the stream, as far as can be told.
func (s *scanner) scan(buf []byte, base int64, end bool) {
	limit := base + int64(len(buf))
	var symbols [utf8.UTFMax]byte
	for {
		if len(s.chains) == 0 {
			s.pos += int64(s.form.skip(buf[s.pos-base:]))
		}
		if s.pos >= limit {
			return
		}
		length, n := s.form.read(buf[s.pos-base:], end, &symbols)
		if length == 0 {
			return
		}
		stepped := false
		for _, c := range s.chains {
			if c.at == s.pos {
				s.step(c, length, symbols[:n], buf, base)
				stepped = true
			}
		}
		if !stepped && n > 0 {
			// Every chain begins at the root, so one that is here already stands for this one too.
			c := s.fresh()
			s.step(c, length, symbols[:n], buf, base)
			s.chains = append(s.chains, c)
		}
		s.prune()
		if len(s.chains) > maxChains {
			s.giveUp(s.chains[0])
		}
		s.pos++
	}
}

// skip is how many bytes can't begin a pattern; of the last one that can't be told.
func (f *form) skip(b []byte) int {
	for i := range len(b) - 1 {
		if f.start[pair(b[i], b[i+1])] {
			return i
		}
	}
	return max(0, len(b)-1)
}

// step feeds what was read at the chain's place.
func (s *scanner) step(c *chain, length int, symbols []byte, buf []byte, base int64) {
	here := c.at
	c.at += int64(length)
	c.fell = false
	if len(symbols) == 0 {
		if c.broken { // an empty line ends a printed value
			c.node = 0
		}
		c.broken = true
		return
	}
	c.broken = false
	for _, b := range symbols {
		depth := s.depth(c)
		c.node = s.form.find.next(c.node, b)
		c.fell = c.fell || s.depth(c) <= depth
		c.places[c.count%len(c.places)] = here
		c.count++
		n := &s.form.find.nodes[c.node]
		if n.match == 0 {
			continue
		}
		from := c.place(int(n.match))
		if n.left != nil && from > base && n.left[buf[from-1-base]] {
			from--
		}
		s.report(interval{from, c.at})
	}
}

// place is where the symbol began that was read n symbols ago.
func (c *chain) place(n int) int64 {
	return c.places[(c.count-n)%len(c.places)]
}

// prune drops chains that match nothing, and of two that met the one whose match lies inside the
// other's. Chains begin inside each other's escapes, so that comes only when one loses its beginning.
func (s *scanner) prune() {
	kept := s.chains[:0]
	for i, c := range s.chains {
		if c.node == 0 || c.fell && (s.covered(c, kept) || s.covered(c, s.chains[i+1:])) {
			s.free = append(s.free, c)
			continue
		}
		kept = append(kept, c)
	}
	s.chains = kept
}

// giveUp takes out what the oldest chain has matched and follows it no further: whatever the text goes
// on with, the secret isn't in it whole.
func (s *scanner) giveUp(c *chain) {
	s.report(interval{c.place(s.depth(c)), c.at})
	s.chains = append(s.chains[:0], s.chains[1:]...)
	s.free = append(s.free, c)
}

func (s *scanner) covered(c *chain, by []*chain) bool {
	depth := s.depth(c)
	for _, o := range by {
		if o.at == c.at && s.depth(o) >= depth &&
			o.place(depth) == c.place(depth) {
			return true
		}
	}
	return false
}

func (s *scanner) depth(c *chain) int { return int(s.form.find.nodes[c.node].depth) }

func (s *scanner) fresh() *chain {
	var c *chain
	if n := len(s.free); n > 0 {
		c, s.free = s.free[n-1], s.free[:n-1]
	} else {
		c = &chain{places: make([]int64, s.form.find.longest)}
	}
	*c = chain{at: s.pos, places: c.places}
	return c
}

// report adds a find; most extend the last one.
func (s *scanner) report(i interval) {
	if n := len(s.found); n > 0 && i.from >= s.found[n-1].from && i.from <= s.found[n-1].to {
		s.found[n-1].to = max(s.found[n-1].to, i.to)
		return
	}
	s.found = append(s.found, i)
}

// settled is the place before which no find can begin any more.
func (s *scanner) settled(buf []byte, base int64) int64 {
	p := s.pos
	for _, c := range s.chains {
		p = min(p, c.place(s.depth(c)))
	}
	if p > base && s.form.before[buf[p-1-base]] {
		p--
	}
	return p
}
