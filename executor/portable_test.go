package executor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// req P2: no host path goes into evidence.
func TestHostPathsStayOut(t *testing.T) {
	r := &run{plan: Plan{Source: `/home/a <b>/execution/one/1/snapshot-00`}}
	require.Equal(t, `Mounts=[{"Source":"${SNAPSHOT}"}]`, r.portable(`Mounts=[{"Source":"/home/a <b>/execution/one/1/snapshot-00"}]`))
	require.Equal(t, `Mounts=[{"Source":"${SNAPSHOT}"}]`, r.portable(`Mounts=[{"Source":"/home/a \u003cb\u003e/execution/one/1/snapshot-00"}]`))
	require.Equal(t, "unequal", (&run{}).portable("unequal"))
}
