package docker

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// goldenImage is the image behind the inspect replies: its own labels, an exposed port and a stop
// signal are merged into the container or overruled by the request.
var goldenImage = executor.Image{Labels: map[string]string{"org.example": "image's own"}}

func goldenID(t testing.TB) evidence.ContainerID {
	id, err := parseID("ee3599fd56e344c456d716b7b12be955161e11f3bfa55439400bee5740813609")
	require.NoError(t, err)
	return id
}

func compareRaw(t testing.TB, naming evidence.SeccompNaming, raw []byte) executor.Isolation {
	return (*Driver)(nil).Compare(goldenPlan(naming), goldenImage, executor.Runtime{Seccomp: naming},
		executor.Inspection{ID: goldenID(t), Raw: raw})
}

func held(iso executor.Isolation) bool {
	return len(iso.Findings) > 0 && len(iso.Unknown) == 0 &&
		!slices.ContainsFunc(iso.Findings, func(f executor.Finding) bool { return !f.Equal })
}

// req C5, req C9: real replies of one container through its life, and one of a newer API, equal the
// profile.
func TestCompareHolds(t *testing.T) {
	for file, naming := range map[string]evidence.SeccompNaming{
		"inspect_created.json":       evidence.SeccompReported,
		"inspect_running.json":       evidence.SeccompReported,
		"inspect_exited.json":        evidence.SeccompReported,
		"inspect_created_api51.json": evidence.SeccompNamed,
	} {
		t.Run(file, func(t *testing.T) {
			iso := compareRaw(t, naming, testdata(t, file))
			require.Empty(t, iso.Unknown)
			for i, f := range iso.Findings {
				require.True(t, f.Equal, "%+v", f)
				require.Equal(t, goldenPlan(naming).Profile.Controls[i].ID, f.ID)
				kind := evidence.Observed
				if f.ID == evidence.CtlMountSpace || f.ID == evidence.CtlSeccomp && naming == evidence.SeccompReported {
					kind = evidence.Accepted
				}
				require.Equal(t, kind, f.Kind, "%+v", f)
			}
		})
	}
}

// req A4, req C5, req C6: the reason says in which way a field differs. An image's undeclared environment
// shows as an entry too many.
func TestCompareReasons(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		value  any // nil deletes
		id     evidence.ControlID
		reason string
	}{
		"missing":            {"HostConfig.Memory", nil, evidence.CtlMemory, reasonMissing},
		"limit dropped":      {"HostConfig.Memory", number("0"), evidence.CtlMemory, reasonZero},
		"limit raised":       {"HostConfig.Memory", number("268435457"), evidence.CtlMemory, reasonDowngraded},
		"limit unlimited":    {"HostConfig.PidsLimit", number("-1"), evidence.CtlPIDs, reasonDowngraded},
		"limit lowered":      {"HostConfig.Memory", number("268435455"), evidence.CtlMemory, reasonMismatched},
		"swap allowed":       {"HostConfig.MemorySwap", number("536870912"), evidence.CtlSwap, reasonDowngraded},
		"number as text":     {"HostConfig.Memory", "268435456", evidence.CtlMemory, reasonMalformed},
		"number as exponent": {"HostConfig.Memory", number("2.68435456e8"), evidence.CtlMemory, reasonMismatched},
		"privileged":         {"HostConfig.Privileged", true, evidence.CtlUnprivileged, reasonMismatched},
		"init left open":     {"HostConfig.Init", nil, evidence.CtlNoInit, reasonMissing},
		"host network":       {"HostConfig.NetworkMode", "host", evidence.CtlNetwork, reasonMismatched},
		"root":               {"Config.User", "", evidence.CtlUser, reasonZero},
		"capability":         {"HostConfig.CapAdd", []any{"SYS_ADMIN"}, evidence.CtlCapabilities, reasonMismatched},
		"unconfined":         {"HostConfig.SecurityOpt", []any{"no-new-privileges", "seccomp=unconfined"}, evidence.CtlSeccomp, reasonMismatched},
		"unconfined LSM":     {"AppArmorProfile", "unconfined", evidence.CtlLSM, reasonMismatched},
		"image volume":       {"Config.Volumes", map[string]any{"/data": map[string]any{}}, evidence.CtlNoMounts, reasonMismatched},
		"second tmpfs":       {"HostConfig.Tmpfs", map[string]any{"/scratch": "rw", "/x": ""}, evidence.CtlScratch, reasonMismatched},
		"unmasked":           {"HostConfig.MaskedPaths", []any{"/proc/kcore"}, evidence.CtlMaskedPaths, reasonDowngraded},
		"no masks":           {"HostConfig.MaskedPaths", []any{}, evidence.CtlMaskedPaths, reasonZero},
		"mask over source":   {"HostConfig.ReadonlyPaths", []any{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/source"}, evidence.CtlMaskedPaths, reasonMismatched},
		"image environment":  {"Config.Env", []any{"LANG=C.UTF-8", "MODE=a=b c", "HOME=/scratch", "TMPDIR=/scratch", "PATH=/opt"}, evidence.CtlEnvironment, reasonMismatched},
		"exec":               {"ExecIDs", []any{"ab"}, evidence.CtlNoExec, reasonMismatched},
		"paused":             {"State.Paused", true, evidence.CtlState, reasonMismatched},
		"foreign state":      {"State.Status", "dead", evidence.CtlState, reasonMismatched},
		"renamed":            {"Name", "/other", evidence.CtlOwnership, reasonMismatched},
		"host config gone":   {"HostConfig", nil, evidence.CtlReadOnlyRoot, reasonMissing},
		"host config text":   {"HostConfig", "none", evidence.CtlReadOnlyRoot, reasonMissing},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := parseTree(testdata(t, "inspect_created.json"))
			require.NoError(t, err)
			put(tree.(map[string]any), strings.Split(c.path, "."), c.value)
			iso := compareRaw(t, evidence.SeccompReported, []byte(compact(tree)))
			for _, f := range iso.Findings {
				if f.ID == c.id {
					require.False(t, f.Equal)
					require.Equal(t, c.reason, f.Reason, "%+v", f)
				}
			}
		})
	}
}

func put(m map[string]any, path []string, v any) {
	if len(path) > 1 {
		put(m[path[0]].(map[string]any), path[1:], v)
	} else if v == nil {
		delete(m, path[0])
	} else {
		m[path[0]] = v
	}
}

// A network connected before the start has only zero fields; its key alone must be enough.
func TestCompareSecondNetwork(t *testing.T) {
	tree, err := parseTree(testdata(t, "inspect_created.json"))
	require.NoError(t, err)
	put(tree.(map[string]any), []string{"NetworkSettings", "Networks", "study"}, map[string]any{"NetworkID": ""})
	iso := compareRaw(t, evidence.SeccompReported, []byte(compact(tree)))
	require.False(t, held(iso))
}

// A dot in a key must not pass for a level.
func TestCompareDottedKey(t *testing.T) {
	tree, err := parseTree(testdata(t, "inspect_created.json"))
	require.NoError(t, err)
	put(tree.(map[string]any), []string{"HostConfig.Privileged"}, true)
	iso := compareRaw(t, evidence.SeccompReported, []byte(compact(tree)))
	require.Equal(t, []string{`HostConfig\.Privileged`}, iso.Unknown)
}

// req E2: an image with a label of ours makes ownership ambiguous.
func TestCompareImageLabels(t *testing.T) {
	for _, label := range []string{executor.LabelRequest, executor.LabelHandle, executor.LabelPrefix + "other"} {
		img := goldenImage
		img.Labels = maps.Clone(img.Labels)
		img.Labels[label] = "x"
		iso := (*Driver)(nil).Compare(goldenPlan(evidence.SeccompReported), img, executor.Runtime{Seccomp: evidence.SeccompReported},
			executor.Inspection{ID: goldenID(t), Raw: testdata(t, "inspect_created.json")})
		for _, f := range iso.Findings {
			if f.ID == evidence.CtlOwnership {
				require.False(t, f.Equal)
				require.Equal(t, reasonAmbiguous, f.Reason)
			}
		}
	}
}

// A plan that names the profile on a runtime that can't be told to is unequal.
func TestCompareSeccompNaming(t *testing.T) {
	iso := (*Driver)(nil).Compare(goldenPlan(evidence.SeccompReported), goldenImage, executor.Runtime{Seccomp: evidence.SeccompNamed},
		executor.Inspection{ID: goldenID(t), Raw: testdata(t, "inspect_created.json")})
	require.False(t, held(iso))
}

// req C6: a reply that can't be read makes every control unavailable.
func TestCompareUnreadable(t *testing.T) {
	raw := string(testdata(t, "inspect_created.json"))
	for name, c := range map[string]struct{ raw, reason string }{
		"empty":            {"", reasonMalformed},
		"truncated":        {raw[:len(raw)/2], reasonMalformed},
		"trailing":         {raw + "{}", reasonMalformed},
		"a list":           {"[]", reasonMalformed},
		"null":             {"null", reasonMalformed},
		"not UTF-8":        {strings.Replace(raw, "/subject", "/sub\xffect", 1), reasonMalformed},
		"deep":             {strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), reasonMalformed},
		"repeated key":     {strings.Replace(raw, `"Privileged": false`, `"Privileged": true, "Privileged": false`, 1), reasonAmbiguous},
		"repeated section": {strings.Replace(raw, `"HostConfig": {`, `"HostConfig": {}, "HostConfig": {`, 1), reasonAmbiguous},
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, raw, c.raw)
			iso := compareRaw(t, evidence.SeccompReported, []byte(c.raw))
			require.Len(t, iso.Findings, len(goldenPlan("").Profile.Controls))
			for _, f := range iso.Findings {
				require.Equal(t, evidence.Unavailable, f.Kind)
				require.False(t, f.Equal)
				require.Equal(t, c.reason, f.Reason)
			}
		})
	}
}

// req C5: every change of every field, and every addition, is caught, unless the table says by
// name that the field is the daemon's own or has another good value.
func TestCompareEveryMutation(t *testing.T) {
	for file, naming := range map[string]evidence.SeccompNaming{
		"inspect_created.json":       evidence.SeccompReported,
		"inspect_created_api51.json": evidence.SeccompNamed,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			tree, err := parseTree(testdata(t, file))
			require.NoError(t, err)
			rules := map[string]evidence.FieldRule{}
			for _, r := range goldenPlan(naming).Profile.Fields {
				rules[r.Path] = r
			}
			caught, allowed := 0, map[string]int{}
			mutate(tree, "", func(path string) {
				if !held(compareRaw(t, naming, []byte(compact(tree)))) {
					caught++
					return
				}
				rule, ok := ruleAbove(rules, path)
				require.True(t, ok, "%s: an unruled change passed: %s", file, path)
				switch rule.Rule {
				case evidence.FieldAny:
				case evidence.FieldOneOf:
					require.Contains(t, []string{"AppArmorProfile", "HostConfig.OomKillDisable", "HostConfig.MemorySwappiness", "HostConfig.ConsoleSize", "State.Status"}, rule.Path)
				case evidence.FieldHolds: // a mask that no base names, turned into another
					require.Equal(t, "inspect_created_api51.json HostConfig.MaskedPaths.0", file+" "+path)
				case evidence.FieldKeys: // all its fields dropped, each of which may be absent
					require.Equal(t, "NetworkSettings.Networks.none", path)
				default:
					require.Fail(t, "a compared change passed", "%s: %s by rule %s", file, path, rule.Path)
				}
				allowed[rule.Path]++
			})
			require.Greater(t, caught, 1500)
			require.LessOrEqual(t, allowed["HostConfig.MaskedPaths"], 6)
			require.Equal(t, 3, allowed["NetworkSettings.Networks"]) // to {} and to two with an unheard-of zero
			t.Logf("count: %d mutants of %s caught; allowed under %v", caught, file, slices.Sorted(maps.Keys(allowed)))
		})
	}
}

// ruleAbove finds the rule on a path or on what holds it.
func ruleAbove(rules map[string]evidence.FieldRule, path string) (evidence.FieldRule, bool) {
	for p := path; p != ""; {
		if r, ok := rules[p]; ok {
			return r, true
		}
		i := strings.LastIndexByte(p, '.')
		if i < 0 {
			return evidence.FieldRule{}, false
		}
		p = p[:i]
	}
	return evidence.FieldRule{}, false
}

// mutate changes every place of the tree, one at a time, calls check, and puts it back. Changes
// to another spelling of nothing are left out: they ask for nothing.
func mutate(v any, at string, check func(path string)) {
	join := func(k string) string { return strings.TrimPrefix(at+"."+strings.ReplaceAll(k, ".", `\.`), ".") }
	switch x := v.(type) {
	case map[string]any:
		x["Unheard"] = map[string]any{"Of": number("1")}
		check(join("Unheard"))
		delete(x, "Unheard")
		for _, k := range slices.Sorted(maps.Keys(x)) {
			old := x[k]
			for _, m := range mutants(old) {
				x[k] = m
				check(join(k))
			}
			if !isZero(old) {
				delete(x, k)
				check(join(k))
			}
			x[k] = old
			mutate(old, join(k), check)
		}
	case []any:
		for i, old := range x {
			for _, m := range mutants(old) {
				x[i] = m
				check(join("0"))
			}
			x[i] = old
			mutate(old, join("0"), check)
		}
	}
}

func mutants(v any) []any {
	all := []any{true, number("1"), number("-1"), number("123456789012345678901234567890"), "x",
		[]any{"x"}, []any{nil}, []any{map[string]any{}}, map[string]any{"k": ""}, map[string]any{"k": map[string]any{}}}
	switch x := v.(type) {
	case string:
		all = append(all, x+"x", x+",", "/"+x)
	case number:
		all = append(all, number(string(x)+"0"), number(string(x)+".5"), string(x)+" ")
	case []any:
		all = append(all, append(slices.Clone(x), "/etc/shadow"), append(slices.Clone(x), nil))
	}
	if !isZero(v) {
		all = append(all, nil, false, number("0"), "", []any{}, map[string]any{})
	}
	return slices.DeleteFunc(all, func(m any) bool { return same(m, v) })
}

// The table is sorted, names every control, and can be filled in.
func TestCommandTable(t *testing.T) {
	p := goldenPlan(evidence.SeccompReported)
	values := expect(p, goldenImage, goldenID(t))
	used := map[evidence.ControlID]bool{}
	known := map[evidence.ControlID]bool{}
	for _, c := range p.Profile.Controls {
		known[c.ID] = true
	}
	for _, r := range p.Profile.Fields {
		used[r.Control] = true
		require.True(t, r.Control == 0 || known[r.Control], r.Path)
		if r.Rule == evidence.FieldAny {
			require.Empty(t, r.Want)
			continue
		}
		_, err := values.want(r)
		require.NoError(t, err)
	}
	for id := range known {
		require.True(t, used[id] || id == evidence.CtlMountSpace, "control %d compares nothing", id)
	}
	for name := range values {
		require.Condition(t, func() bool {
			return slices.ContainsFunc(p.Profile.Fields, func(r evidence.FieldRule) bool { return strings.Contains(r.Want, "${"+name+"}") })
		}, "value %s is never used", name)
	}
	_, err := values.want(evidence.FieldRule{Path: "x", Want: "${nothing}"})
	require.Error(t, err)
}

// The comparison never holds for bytes it can't read, and never panics.
func FuzzCompare(f *testing.F) {
	seeds := 0
	for _, file := range []string{"inspect_created.json", "inspect_running.json", "inspect_exited.json", "inspect_created_api51.json"} {
		f.Add(testdata(f, file))
		seeds++
	}
	require.Equal(f, 4, seeds)
	id := goldenID(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		iso := (*Driver)(nil).Compare(goldenPlan(evidence.SeccompReported), goldenImage, executor.Runtime{Seccomp: evidence.SeccompReported},
			executor.Inspection{ID: id, Raw: raw})
		if held(iso) {
			require.True(t, json.Valid(raw))
		}
		if in, err := parseInspection(raw); err == nil {
			require.NotZero(t, in.ID)
		}
	})
}
