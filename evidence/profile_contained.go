package evidence

import (
	"slices"
	"strings"
)

// Controls that `command/v1` doesn't have.
const (
	CtlWorkspace ControlID = 47 // the one writable tree, a bind of the prepared workspace
)

// containedProfile is the whole of `contained/v1` with one network. User, group and limits stand in
// the recipe; everything else is here. The two variants differ in the network alone.
func containedProfile(n Network) Profile {
	ranges := containedRanges
	return Profile{
		Version:     1,
		Name:        ProfileContained,
		Hostname:    "baildock",
		WorkDir:     "/workspace",
		SourcePath:  "/workspace",
		ScratchPath: "/tmp",
		Environment: []EnvVar{ // req L4
			{"HOME", "/tmp/baildock-home"}, {"LANG", "C.UTF-8"}, {"LC_ALL", "C.UTF-8"},
			{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		Injected: []string{"HOSTNAME"},
		Network:  n,
		Nofile:   1024,
		Core:     0,
		Controls: containedControls(),
		Fields:   containedFields(n),
		Writable: true,
		Limits:   &ranges,
	}
}

// containedControls are those of `command/v1` with the workspace in the place of the source.
func containedControls() []ControlSpec {
	specs := slices.DeleteFunc(slices.Clone(commandControls), func(c ControlSpec) bool { return c.ID == CtlSource })
	return append(specs, ControlSpec{CtlWorkspace, "workspace_mount", byInspection})
}

// bridgeFields are what the daemon chooses for a container on its bridge: empty before the start,
// addresses while it runs. Nothing of it is asked for.
var bridgeFields = []string{
	"NetworkSettings.EndpointID", "NetworkSettings.Gateway", "NetworkSettings.GlobalIPv6Address",
	"NetworkSettings.GlobalIPv6PrefixLen", "NetworkSettings.IPAddress", "NetworkSettings.IPPrefixLen",
	"NetworkSettings.IPv6Gateway", "NetworkSettings.MacAddress",
	"NetworkSettings.Networks.bridge.EndpointID", "NetworkSettings.Networks.bridge.Gateway",
	"NetworkSettings.Networks.bridge.GlobalIPv6Address", "NetworkSettings.Networks.bridge.GlobalIPv6PrefixLen",
	"NetworkSettings.Networks.bridge.IPAddress", "NetworkSettings.Networks.bridge.IPPrefixLen",
	"NetworkSettings.Networks.bridge.IPv6Gateway", "NetworkSettings.Networks.bridge.MacAddress",
	"NetworkSettings.Networks.bridge.NetworkID",
}

// containedFields are those of `command/v1`, each for the control it decides here.
func containedFields(n Network) []FieldRule {
	fields := slices.Clone(commandFields)
	for i := range fields {
		if fields[i].Control == CtlSource {
			fields[i].Control = CtlWorkspace
		}
	}
	if n == NetworkBridge {
		fields = slices.DeleteFunc(fields, func(f FieldRule) bool { return strings.HasPrefix(f.Path, "NetworkSettings.Networks.none.") })
		for _, path := range bridgeFields {
			fields = append(fields, FieldRule{Path: path, Rule: FieldAny})
		}
		// While it runs, the ports that an image exposes stand here: unbound, unless they were published.
		fields = append(fields, FieldRule{"NetworkSettings.Ports", FieldNulls, `{}`, CtlPorts})
		slices.SortStableFunc(fields, func(a, b FieldRule) int { return strings.Compare(a.Path, b.Path) })
	}
	return fields
}
