package peer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

func withLeader(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "requires-leader", "true")
}

func TestAccess(t *testing.T) {
	serve, ca := Certificate(t)
	c, err := Start(Options{TLS: serve, Users: map[string]User{"admin": {Password: "a", Admin: true}, "user": {Password: "u"}}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	as := func(who string) *esdb.Client {
		return connect(t, "esdb://"+who+"@"+c.Node(0).Address()+"?tls=true&tlsCAFile="+ca)
	}
	admin, user, stranger := as("admin:a"), as("user:u"), as("user:wrong")
	_, err = read(t, stranger, "s", esdb.ReadStreamOptions{}) // not a write, of which the client may see the end only
	require.Equal(t, esdb.ErrorCodeUnauthenticated, code(t, err))
	mustPut(t, user, "s", "a")
	r, err := user.ReadAll(t.Context(), esdb.ReadAllOptions{}, 10)
	require.NoError(t, err)
	_, err = r.Recv()
	require.Equal(t, esdb.ErrorCodeAccessDenied, code(t, err))
	r.Close()
	require.Len(t, readAll(t, admin, esdb.ReadAllOptions{}), 1)

	mustPut(t, user, "t", "a")
	_, err = user.TombstoneStream(t.Context(), "t", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}})
	require.NoError(t, err, "by default everybody may")
	e := event("settings")
	e.Data = []byte(`{"$userStreamAcl":{"$r":"$all","$w":"$all","$d":"$admins","$mr":"$all","$mw":["$admins"]}}`)
	_, err = user.AppendToStream(t.Context(), "$settings", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, e)
	require.Error(t, err)
	_, err = admin.AppendToStream(t.Context(), "$settings", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, e)
	require.NoError(t, err)
	_, err = user.DeleteStream(t.Context(), "s", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
	require.Error(t, err)
	_, err = user.SetStreamMetadata(t.Context(), "s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, esdb.StreamMetadata{})
	require.Error(t, err)
	var open esdb.StreamMetadata
	var acl esdb.Acl
	acl.AddDeleteRoles("$all")
	open.SetAcl(acl)
	_, err = admin.SetStreamMetadata(t.Context(), "s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, open)
	require.NoError(t, err)
	_, err = user.DeleteStream(t.Context(), "s", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
	require.NoError(t, err, "a stream's own list wins")
}
