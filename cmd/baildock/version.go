package main

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// version is the module's version as the toolchain recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func versionCommand(p *program) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Action: func(*cli.Context) error {
			if _, err := p.positional(); err != nil {
				return err
			}
			v := struct {
				Version  string `json:"version"`
				Revision string `json:"revision,omitempty"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{Version: version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Revision = s.Value
					}
				}
			}
			if p.ui.json {
				return p.ui.printJSON(v)
			}
			if v.Revision != "" {
				return p.printf("baildock %s (%s, %s, %s)\n", v.Version, v.Revision, v.Go, v.Platform)
			}
			return p.printf("baildock %s (%s, %s)\n", v.Version, v.Go, v.Platform)
		},
	}
}
