package canary_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor/canary"
)

// The table has a legal shape, and says where a step can come out right for more than one reason.
func TestTable(t *testing.T) {
	all := canary.All()
	require.GreaterOrEqual(t, len(all), 25)
	corpus := canary.Corpus()
	require.NoError(t, corpus.Check())
	require.Equal(t, corpus, canary.Corpus(), "the same table gives the same digest")
	areas := map[string]bool{}
	for i, c := range all {
		require.Equal(t, c.Name, corpus.Canaries[i].Name)
		require.Equal(t, c.Outcome, corpus.Canaries[i].Outcome)
		require.NotEmpty(t, c.Shows, c.Name)
		require.NotEmpty(t, c.Steps, c.Name)
		areas[c.Area] = true
		found, ok := canary.Find(c.Name)
		require.True(t, ok)
		require.Equal(t, c, found)
		for _, s := range c.Steps {
			if !c.Reports() {
				require.Nil(t, s.Value)
				continue
			}
			ways := len(s.Errnos)
			if s.Value != nil {
				ways++
			}
			require.Positive(t, ways, "%s: nothing must come of %s %s", c.Name, s.Action, s.On)
			require.True(t, ways == 1 || s.Why != "", "%s: %s %s can come out right in two ways", c.Name, s.Action, s.On)
		}
	}
	for _, area := range []string{"network", "filesystem", "privileges", "processes", "namespaces", "devices", "bounds"} {
		require.True(t, areas[area], area)
	}
	_, ok := canary.Find("nothing")
	require.False(t, ok)
	p, err := evidence.ProfileByName(evidence.ProfileCommand)
	require.NoError(t, err)
	require.NoError(t, canary.Limits().Check(p))
}

// perfect is a report in which every step comes out right.
func perfect(c canary.Canary) canary.Report {
	r := canary.Report{Version: 1, Canary: c.Name}
	for _, s := range c.Steps {
		seen := canary.Seen{Action: s.Action, On: s.On}
		if s.Value != nil {
			seen.Value = *s.Value
		} else {
			seen.Errno = s.Errnos[0]
		}
		r.Steps = append(r.Steps, seen)
	}
	return r
}

// Every step of every canary can fail: whatever comes of it but what the table names trips its canary. Nothing
// that a canary says of itself lets it pass.
//
// toward K2: each must fail with its specific error, not merely fail.
func TestEveryStepCanTrip(t *testing.T) {
	steps := 0
	for _, c := range canary.All() {
		if !c.Reports() {
			v, code := canary.Judge(c, []byte("canary canary"))
			require.Equal(t, evidence.CanaryPassed, v, c.Name)
			require.Empty(t, code)
			v, code = canary.Judge(c, evidence.Marshal(canary.Report{Version: 1, Canary: c.Name}))
			require.Equal(t, evidence.CanaryFailed, v, c.Name)
			require.Equal(t, canary.CodeUnwanted, code)
			continue
		}
		v, code := canary.Judge(c, evidence.Marshal(perfect(c)))
		require.Equal(t, evidence.CanaryPassed, v, "%s: %s", c.Name, code)
		trip := func(want string, bend func(*canary.Report)) {
			t.Helper()
			r := perfect(c)
			bend(&r)
			v, code := canary.Judge(c, evidence.Marshal(r))
			require.Equal(t, evidence.CanaryFailed, v, c.Name)
			require.Equal(t, want, code, c.Name)
		}
		for i, s := range c.Steps {
			steps++
			other, allowed := canary.CodeErrno, canary.CodeValue
			if len(s.Errnos) == 0 {
				other = canary.CodeBroken
			}
			if s.Value == nil {
				allowed = canary.CodeAllowed
			}
			trip(other, func(r *canary.Report) { r.Steps[i].Errno = "ENOSYS" })
			trip(allowed, func(r *canary.Report) { r.Steps[i].Errno, r.Steps[i].Value = "", "something else" })
			trip(canary.CodeOther, func(r *canary.Report) { r.Steps[i].On += "x" })
			trip(canary.CodeOther, func(r *canary.Report) { r.Steps[i].Action = canary.Sleep })
			trip(canary.CodeOther, func(r *canary.Report) { r.Steps = slices.Delete(r.Steps, i, i+1) })
		}
		trip(canary.CodeOther, func(r *canary.Report) { r.Canary = "other" })
		trip(canary.CodeOther, func(r *canary.Report) { r.Steps = append(r.Steps, r.Steps[0]) })
		trip(canary.CodeNoReport, func(r *canary.Report) { r.Version = 2 })
		for _, b := range [][]byte{nil, {0xa0}, append(evidence.Marshal(perfect(c)), 0), bytes.Repeat([]byte{0}, 1<<20)} {
			v, code = canary.Judge(c, b)
			require.Equal(t, evidence.CanaryFailed, v)
			require.Equal(t, canary.CodeNoReport, code)
		}
	}
	require.Greater(t, steps, 50)
}

// The program does the steps in order and reports what came of each. Outside of a container these are what
// trips: it is another user, it sees more, and its environment is its own. Only steps that change nothing run here.
func TestProgramOutside(t *testing.T) {
	t.Setenv("BAILDOCK_CANARY", "planted")
	ran := 0
	for _, name := range []evidence.CanaryName{"privileges.environment", "privileges.identity", "processes.view", "filesystem.mounts"} {
		c, ok := canary.Find(name)
		require.True(t, ok)
		var out bytes.Buffer
		require.NoError(t, canary.Run(c, &out))
		r, err := canary.ParseReport(out.Bytes())
		require.NoError(t, err)
		require.Len(t, r.Steps, len(c.Steps))
		for _, s := range r.Steps {
			require.Empty(t, s.Errno, "%s: %s %s", name, s.Action, s.On)
		}
		v, code := canary.Judge(c, out.Bytes())
		require.Equal(t, evidence.CanaryFailed, v, name)
		require.Equal(t, canary.CodeValue, code, name)
		ran++
	}
	require.Equal(t, 4, ran)
}

// Errors have the names of the table, also where several come together.
func TestErrorsByName(t *testing.T) {
	dir := t.TempDir()
	steps := []canary.Step{
		{Action: canary.Stat, On: dir + "/none"}, {Action: canary.Create, On: dir + "/none/file"}, {Action: canary.Create, On: dir + "/file"},
		{Action: canary.Mkdir, On: dir}, {Action: canary.Connect, On: "tcp4 nonsense 1"}, {Action: "unheard"}, {Action: canary.Status, On: "Nothing"},
	}
	want := []string{"ENOENT", "ENOENT", "", "EEXIST", "EINVAL", "EUNKNOWN", "ENODATA"}
	var out bytes.Buffer
	require.NoError(t, canary.Run(canary.Canary{Name: "test", Steps: steps}, &out))
	r, err := canary.ParseReport(out.Bytes())
	require.NoError(t, err)
	var got []string
	for _, s := range r.Steps {
		got = append(got, s.Errno)
	}
	require.Equal(t, want, got)
}

func FuzzParseReport(f *testing.F) {
	for _, c := range canary.All() {
		if c.Reports() {
			f.Add(evidence.Marshal(perfect(c)))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := canary.ParseReport(b)
		if err == nil {
			require.Equal(t, b, evidence.Marshal(r), "one spelling")
		}
		for _, c := range canary.All() {
			if v, code := canary.Judge(c, b); v == evidence.CanaryPassed {
				require.Empty(t, code)
			} else {
				require.NotEmpty(t, code)
			}
		}
	})
}
