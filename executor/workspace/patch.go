package workspace

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/baildock/baildock/evidence"
)

// Modes as git writes them.
const (
	gitFile = "100644"
	gitExec = "100755"
	gitLink = "120000"
)

func gitMode(s *evidence.EntryState) string {
	switch {
	case s == nil || s.Type == evidence.EntryDirectory:
		return ""
	case s.Type == evidence.EntryLink:
		return gitLink
	case s.Mode&0o100 != 0:
		return gitExec
	}
	return gitFile
}

// render is the change in git's extended unified format. For a patch nothing is written that says nothing
// to git; for people it is named.
func (c change) render(patch bool) []byte {
	before, after := gitMode(c.Before), gitMode(c.After)
	var b bytes.Buffer
	switch {
	case c.Kind == evidence.MutationRenamed:
		c.rename(&b, before, after)
	case before != "" && after != "" && (before == gitLink) != (after == gitLink):
		// A file that became a link, or the other way round: one goes and the other comes.
		c.part(&b, before, "", c.before, nil)
		c.part(&b, "", after, nil, c.after)
	case before != after || c.hidden() || !bytes.Equal(c.before, c.after):
		c.part(&b, before, after, c.before, c.after)
	case !patch:
		fmt.Fprintf(&b, "# %s: permissions %04o, before %04o\n", gitQuote(c.Path), c.After.Mode, c.Before.Mode)
	}
	return b.Bytes()
}

func (c change) rename(b *bytes.Buffer, before, after string) {
	fmt.Fprintf(b, "diff --git %s %s\n", gitQuote("a/"+c.From), gitQuote("b/"+c.Path))
	if before != after {
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", before, after)
	}
	fmt.Fprintf(b, "similarity index 100%%\nrename from %s\nrename to %s\n", gitQuote(c.From), gitQuote(c.Path))
}

// part is one path that comes (no before), goes (no after) or changes.
func (c change) part(b *bytes.Buffer, before, after string, was, is []byte) {
	from, to := gitQuote("a/"+c.Path), gitQuote("b/"+c.Path)
	fmt.Fprintf(b, "diff --git %s %s\n", from, to)
	switch {
	case before == "":
		fmt.Fprintf(b, "new file mode %s\n", after)
		from = "/dev/null"
	case after == "":
		fmt.Fprintf(b, "deleted file mode %s\n", before)
		to = "/dev/null"
	case before != after:
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", before, after)
	}
	if c.hidden() {
		fmt.Fprintf(b, "Binary files %s and %s differ (%s)\n", from, to, c.opaque)
		return
	}
	if h := hunks(was, is); len(h) > 0 {
		fmt.Fprintf(b, "--- %s\n+++ %s\n%s", nameLine(from), nameLine(to), h)
	}
}

// nameLine ends a name that holds a space with a tab, or readers would take what follows for a time.
func nameLine(name string) string {
	if strings.Contains(name, " ") && name[0] != '"' {
		return name + "\t"
	}
	return name
}

// gitQuote writes a name as git does with core.quotePath: what isn't plain ASCII is quoted as in C, so that
// any bytes are one printable line.
func gitQuote(name string) string {
	plain := true
	for i := range len(name) {
		plain = plain && name[i] >= ' ' && name[i] < 0x7f && name[i] != '"' && name[i] != '\\'
	}
	if plain {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c >= ' ' && c < 0x7f:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
