package executor

import (
	"regexp"
	"slices"
	"strings"
)

// Bounds of what a preflight says to people (req M5).
const (
	// MaxDiagnostic is the longest reason, in bytes.
	MaxDiagnostic = 512
	// maxDiagnosed is how much of a text is looked at: a reply's own bound is far larger.
	maxDiagnosed = 8 << 10
)

// Withheld stands in a diagnostic for words that could be somebody's own.
const Withheld = "(withheld)"

// What a diagnostic may be made of. It is a list of what is harmless, because what is not has no end:
// paths, hosts, addresses, sockets, tokens and values all have a character or a length that an ordinary
// word hasn't.
var (
	ordinaryWord   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_'-]{0,31}$`)
	ordinaryNumber = regexp.MustCompile(`^[0-9]{1,20}([.:/][0-9]{1,12}){0,2}$`)
	ordinaryField  = regexp.MustCompile(`^(HostConfig|Config|NetworkSettings|State)(\.[A-Za-z0-9]{1,40}){1,4}$`)
	ordinaryImage  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	tokenish       = regexp.MustCompile(`^[A-Za-z0-9_'-]{17,}$`)
	insidePaths    = []string{"/", "/tmp", "/workspace", "/proc/self/status"} // every container has them
	secretWords    = []string{"authorization", "basic", "bearer", "credential", "credentials", "passphrase", "passwd", "password", "secret", "token", "apikey", "api-key"}
)

const (
	edges = `"'` + "`" + `()[]{}<>,.;:!?` // around a word
	stops = `:;,)]}`                      // end what a withheld word began
)

// Diagnostic makes a text fit for a report that leaves this host: one line, at most MaxDiagnostic bytes,
// without private paths, credentials, environment values and endpoints of daemons (req M5). Whatever
// isn't an ordinary word, a number or an image's ID is withheld; so is what follows it up to the next
// punctuation, and all that follows an assignment or a word like "password". It fails towards silence.
func Diagnostic(text string) string {
	if len(text) > maxDiagnosed {
		text = text[:maxDiagnosed]
	}
	var out []string
	hiding, forGood := false, false
	for _, word := range strings.Fields(text) {
		core := strings.Trim(word, edges)
		switch {
		case forGood:
		case ordinary(core) && !hiding:
			out = append(out, word)
			forGood = slices.Contains(secretWords, strings.ToLower(core))
			continue
		case strings.Contains(word, "="):
			forGood = true
		}
		if len(out) == 0 || out[len(out)-1] != Withheld {
			out = append(out, Withheld)
		}
		hiding = !strings.ContainsAny(word[len(word)-1:], stops)
	}
	line := strings.Join(out, " ")
	const cut = " (cut)"
	if len(line) > MaxDiagnostic {
		line = line[:MaxDiagnostic-len(cut)]
		line = line[:max(strings.LastIndexByte(line, ' '), 0)] + cut
	}
	return line
}

// ordinary reports whether a word, without what stands around it, can be nobody's secret by its shape.
// A long one of letters and digits may be a key. Every ordinary shape is plain ASCII.
func ordinary(core string) bool {
	switch {
	case core == "" || ordinaryNumber.MatchString(core) || ordinaryField.MatchString(core) || ordinaryImage.MatchString(core):
		return true
	case slices.Contains(insidePaths, core):
		return true
	}
	return ordinaryWord.MatchString(core) && !(tokenish.MatchString(core) && strings.ContainsAny(core, "0123456789"))
}
