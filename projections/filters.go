package projections

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/ledger"
)

// Filterable names a filter.
type Filterable string

const (
	ByAttempt  Filterable = "attempt" // ID, a prefix that only one has, or @last
	ByChange   Filterable = "change"
	ByRevision Filterable = "revision" // of a commit or a manifest: whole, or its first hex digits
	ByRecipe   Filterable = "recipe"   // digest: whole, or its first hex digits
	ByRuntime  Filterable = "runtime"  // digest: whole, or its first hex digits
	ByOutcome  Filterable = "outcome"
	ByClaim    Filterable = "claim"
	ByStream   Filterable = "stream"
	ByPolicy   Filterable = "policy"
	ByType     Filterable = "type"
	ByActor    Filterable = "actor"
	ByState    Filterable = "state"   // of an attempt: pending, running, finished; of custody: open, closed, abandoned
	ByKind     Filterable = "kind"    // of a daemon object, or of a judgement
	ByStands   Filterable = "stands"  // of an admission: yes, no
	ByCanary   Filterable = "canary"  // what was tried
	ByVerdict  Filterable = "verdict" // how that went
)

// filter is one condition of a view. args turns a value into the condition's parameters, or says why it
// is no such value.
type filter struct {
	condition string
	args      func(value string) ([]any, error)
	words     []string // all values, where they are few
}

// one is a filter whose value is compared as it is, once parse has accepted it.
func one[T ~string](condition string, parse func(string) (T, error)) filter {
	return filter{condition: condition, args: func(value string) ([]any, error) {
		v, err := parse(value)
		return []any{string(v)}, err
	}}
}

// oneOf is a filter by one of a few words.
func oneOf[T ~string](condition string, words ...T) filter {
	f := one(condition, func(value string) (T, error) {
		if slices.Contains(words, T(value)) {
			return T(value), nil
		}
		return "", fmt.Errorf("%q is none of %s", value, list(words))
	})
	for _, w := range words {
		f.words = append(f.words, string(w))
	}
	return f
}

func list[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// digest is a filter by a digest or its first digits. The condition has two parameters: from, and below.
func digest(condition string) filter {
	return filter{condition: condition, args: func(value string) ([]any, error) {
		digits, err := hexDigits(strings.TrimPrefix(value, "sha256:"))
		if err != nil {
			return nil, err
		}
		low, high := prefixRange("sha256:" + digits)
		return []any{low, high}, nil
	}}
}

// revision is a filter by a commit's object name or a manifest's digest, or the first digits of either. The
// condition has four parameters.
func revision(condition string) filter {
	return filter{condition: condition, args: func(value string) ([]any, error) {
		digits, err := hexDigits(strings.TrimPrefix(value, "sha256:"))
		if err != nil {
			return nil, err
		}
		low, high := prefixRange(value)
		manifestLow, manifestHigh := prefixRange("sha256:" + digits)
		return []any{low, high, manifestLow, manifestHigh}, nil
	}}
}

func hexDigits(s string) (string, error) {
	if s == "" || len(s) > 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is not 1 to 64 digits of 0-9 a-f, with or without sha256: before them", s)
	}
	return s, nil
}

// prefixRange bounds the texts that begin with a prefix of ASCII: from low on, below high.
func prefixRange(prefix string) (low, high string) { return prefix, prefix + "\x7f" }

// attemptName accepts what may stand for an attempt.
func attemptName(s string) (string, error) {
	if s == Last {
		return s, nil
	}
	id, err := evidence.ParseAttemptID(s)
	return string(id), err
}

// word accepts a name that somebody gave: printable, of at most so many bytes.
func word(what string, most int) func(string) (string, error) {
	return func(s string) (string, error) {
		if s == "" || len(s) > most || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return "", fmt.Errorf("%q is no %s: 1 to %d printable bytes", s, what, most)
		}
		return s, nil
	}
}

var (
	actorName = word("actor", evidence.MaxActor)
	typeName  = word("event type", ledger.MaxType)
	codeName  = word("name", evidence.MaxCode)
)

// Conditions on the attempt a row belongs to.
const ofAttempt = "attempt IN (SELECT attempt FROM attempt_rows WHERE "
