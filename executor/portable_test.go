package executor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// req P2: no host path goes into evidence.
func TestHostPathsStayOut(t *testing.T) {
	r := &run{plan: Plan{Source: `/home/a <b>/execution/one/1/snapshot-00`}}
	require.Equal(t, `Mounts=[{"Source":"${SNAPSHOT}"}]`, r.portable(`Mounts=[{"Source":"/home/a <b>/execution/one/1/snapshot-00"}]`))
	require.Equal(t, `Mounts=[{"Source":"${SNAPSHOT}"}]`, r.portable(`Mounts=[{"Source":"/home/a \u003cb\u003e/execution/one/1/snapshot-00"}]`))
	require.Equal(t, "unequal", (&run{}).portable("unequal"))

	home, src := Place{Path: "/home/u/.baildock", Role: "${HOME}"}, Place{Path: "/src", Role: "${SOURCE}"}
	for in, want := range map[string]string{
		"open /home/u/.baildock/execution: denied": "open ${HOME}/execution: denied",
		"/src":                            "${SOURCE}",
		"look at \"/src/a\", not /source": "look at \"${SOURCE}/a\", not /source",
		"/opt/src and x/src stay":         "/opt/src and x/src stay",
		"/src:/src":                       "${SOURCE}:${SOURCE}",
		"unix:///src. Is it there? /src":  "unix://${SOURCE}. Is it there? ${SOURCE}",
		"/src.git and /src... /src":       "/src.git and ${SOURCE}... ${SOURCE}",
	} {
		require.Equal(t, want, Portable(in, home, src, Place{Path: "/", Role: "${ROOT}"}, Place{}))
	}
}

// What the daemon says of a refused create, a failed start or a lost reply names mounts as it sees
// them.
//
// req P2
func TestDaemonTextsAreMadePortable(t *testing.T) {
	for step, event := range map[string]string{"create": "CreateRuledOut", "start": "StartFailed"} {
		play(t, step, func(t *testing.T, s *scene) {
			text := "bind source path does not exist: " + s.job.Source + " (asked by /run/private.sock)"
			s.job.Places = []Place{{Path: "/run/private.sock", Role: "${DOCKER_SOCKET}"}}
			s.script.before[step] = func() error { return &Fault{Call: step, Answered: true, Status: 400, Err: errors.New(text)} }
			_, err := s.perform()
			require.NoError(t, err)
			seen := 0
			for _, kept := range s.book.blobs {
				require.NotContains(t, string(kept), s.job.Source)
				require.NotContains(t, string(kept), "private.sock")
				if string(kept) == "docker "+step+" refused (status 400): bind source path does not exist: ${SNAPSHOT} (asked by ${DOCKER_SOCKET})\n" {
					seen++
				}
			}
			require.Positive(t, seen, event)
		})
	}
}
