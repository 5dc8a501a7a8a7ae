package evidence

// commandProfile is the whole of `command/v1`.
var commandProfile = Profile{
	Version:     1,
	Name:        ProfileCommand,
	UID:         65532,
	GID:         65532,
	Hostname:    "baildock",
	WorkDir:     "/source",
	SourcePath:  "/source",
	ScratchPath: "/scratch",
	Environment: []EnvVar{{"HOME", "/scratch"}, {"TMPDIR", "/scratch"}},
	Injected:    []string{"HOSTNAME", "PATH"},
	Network:     "none",
	Nofile:      128,
	Core:        0,
}
