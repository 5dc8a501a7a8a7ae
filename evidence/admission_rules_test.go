package evidence_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
)

// pathsBreaks break exactly one rule each of a context that asks for the paths touched and no attempt.
var pathsBreaks = map[evidence.Rule]func(*evidence.Case){
	evidence.RuleBasis:         breaks[evidence.RuleBasis],
	evidence.RulePolicy:        breaks[evidence.RulePolicy],
	evidence.RuleEpoch:         breaks[evidence.RuleEpoch],
	evidence.RuleContextLegal:  breaks[evidence.RuleContextLegal],
	evidence.RuleQualification: breaks[evidence.RuleQualification],
	evidence.RuleApproval:      breaks[evidence.RuleApproval],
	evidence.RulePathsAllowed: func(c *evidence.Case) {
		bent := *c.Change.Paths
		bent.Outside = 1
		c.Change.Paths = &bent
	},
	evidence.RulePaths: func(c *evidence.Case) {
		bent := *c.Change.Paths
		bent.Globs = []string{"other"}
		c.Change.Paths = &bent
	},
}

// req H2 req H4 req H5
func TestEachRuleOfPathsBrokenAloneAndInPairs(t *testing.T) {
	require.True(t, evidence.Admit(pathsBase(t)).Admitted)
	rules := slices.Sorted(maps.Keys(pathsBreaks))
	check := func(apply ...evidence.Rule) {
		c := pathsBase(t)
		for _, r := range apply {
			pathsBreaks[r](&c)
		}
		want := slices.Clone(apply)
		if slices.Contains(want, evidence.RulePaths) { // what wasn't checked against this set is not within it
			want = slices.DeleteFunc(want, func(r evidence.Rule) bool { return r == evidence.RulePathsAllowed })
		}
		if slices.Contains(want, evidence.RulePolicy) { // a policy that isn't there has no present epoch
			want = append(want, evidence.RuleEpoch)
		}
		slices.Sort(want)
		d := evidence.Admit(c)
		require.False(t, d.Admitted, "%v", apply)
		require.Empty(t, d.Relied)
		got := broken(d)
		slices.Sort(got)
		require.Equal(t, slices.Compact(want), got, "%v", apply)
	}
	pairs := 0
	for i, r := range rules {
		check(r)
		for _, o := range rules[i+1:] {
			check(r, o)
			pairs++
		}
	}
	require.Equal(t, len(rules)*(len(rules)-1)/2, pairs)
}

// Every rule there is has been broken by one of these tests, so that a new one can't be forgotten.
//
// req H2
func TestEveryRuleIsBrokenSomewhere(t *testing.T) {
	elsewhere := []evidence.Rule{ // what they break can't be broken without breaking the shape of the case
		evidence.RuleContext,  // TestAContextThatRequiresNothingAdmitsNothing
		evidence.RuleEvidence, // the same
		evidence.RuleKinds,    // TestBothKindsAreNeverAdmitted
		evidence.RuleAttempt,  // TestOneOfManyAttempts
	}
	source, err := os.ReadFile("decision.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^\tRule\w+ +Rule = "(\w+)"$`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(declared), 25)
	for _, d := range declared {
		r := evidence.Rule(d[1])
		_, alone := breaks[r]
		_, paths := pathsBreaks[r]
		require.True(t, alone || paths || slices.Contains(elsewhere, r), "nothing breaks rule %s", r)
	}
}
