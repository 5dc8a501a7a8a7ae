package bundle_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/evidencetest"
	"github.com/baildock/baildock/export/bundle"
)

// Every reference that any event type can hold is mentioned: a type or field added later without its
// mention fails here. The types are those of a decoder, each with every optional part set.
func TestMentionsCoverEveryReference(t *testing.T) {
	types := payloadTypes(t)
	require.Len(t, types, len(evidence.EventTypes()))
	references := 0
	for name, typ := range types {
		v := reflect.New(typ).Elem()
		want := fill(v)
		got := 0
		for _, m := range bundle.Mentions(v.Interface().(evidence.Payload)) {
			if m.Ref != nil {
				got++
			}
		}
		require.Equal(t, want, got, "%s holds %d references, %d are mentioned", name, want, got)
		references += want
	}
	require.Greater(t, references, 15)
}

// payloadTypes finds the Go type of each event type by decoding its smallest data.
func payloadTypes(t *testing.T) map[string]reflect.Type {
	t.Helper()
	known := []evidence.Payload{
		evidence.LedgerOpened{}, evidence.KeyAdded{}, evidence.KeyRetired{}, evidence.EpochAdvanced{}, evidence.ChangeOpened{},
		evidence.VersionAdded{}, evidence.ContextSet{}, evidence.AttemptOpened{}, evidence.AttemptRegistered{}, evidence.AttemptClaimed{},
		evidence.ClaimVoided{}, evidence.SourceMaterialized{}, evidence.SourceRefused{}, evidence.RuntimeObserved{}, evidence.CustodyTaken{},
		evidence.CreateRuledOut{}, evidence.ContainerCreated{}, evidence.IsolationObserved{}, evidence.StartOrdered{}, evidence.ContainerStarted{},
		evidence.StartFailed{}, evidence.KernelObserved{}, evidence.StopOrdered{}, evidence.ContainerExited{}, evidence.OutputCaptured{},
		evidence.RemovalOrdered{}, evidence.RemovalObserved{}, evidence.CleanupUnconfirmed{}, evidence.SnapshotRemoved{}, evidence.SnapshotLeft{},
		evidence.AttemptFenced{}, evidence.CustodyAbandoned{}, evidence.AttemptFinished{}, evidence.RuntimeProbed{}, evidence.StreamSealed{},
	}
	out := map[string]reflect.Type{}
	for _, p := range known {
		out[p.EventType()] = reflect.TypeOf(p)
	}
	for _, name := range evidence.EventTypes() {
		require.Contains(t, out, name, "list the new event type here")
	}
	return out
}

// fill sets every pointer and counts the references below v.
func fill(v reflect.Value) (references int) {
	if v.Type() == reflect.TypeFor[evidence.BlobRef]() {
		return 1
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			references += fill(v.Field(i))
		}
	}
	return references
}

// A registration names its profile, recipe and environment by plain digests.
func TestMentionsOfRegistration(t *testing.T) {
	h := evidencetest.Success()
	got := bundle.Mentions(*h.Registered)
	require.Equal(t, []bundle.Mention{
		{Class: bundle.ClassProfile, Plain: bundle.BlobDigest(h.Registered.Table)},
		{Class: bundle.ClassRecipe, Plain: bundle.BlobDigest(h.Registered.Recipe)},
		{Class: bundle.ClassEnv, Plain: bundle.BlobDigest(h.Registered.Environment)},
	}, got)
}

func TestClasses(t *testing.T) {
	for _, c := range bundle.Withholdables() {
		got, err := bundle.ParseWithholdable(string(c))
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
	for _, bad := range []string{"", "profile", "everything", "Output"} {
		_, err := bundle.ParseWithholdable(bad)
		require.Error(t, err)
	}
	_, err := bundle.ParseClass("profile")
	require.NoError(t, err)
}
