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
// mention fails here.
func TestMentionsCoverEveryReference(t *testing.T) {
	references := 0
	for _, zero := range evidence.ZeroPayloads() {
		name, v := zero.EventType(), reflect.New(reflect.TypeOf(zero)).Elem()
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
	require.Equal(t, []bundle.Class{"output"}, bundle.WithThem([]bundle.Class{"output"}))
	require.Equal(t, []bundle.Class{"controls", "detail", "env"}, bundle.WithThem([]bundle.Class{"env", "detail"}))
	require.Equal(t, []bundle.Class{"controls", "detail", "recipe"}, bundle.WithThem([]bundle.Class{"recipe"}))
	require.Equal(t, []bundle.Class{"detail", "source"}, bundle.WithThem([]bundle.Class{"source"}))
	require.Equal(t, []bundle.Class{"changes", "detail"}, bundle.WithThem([]bundle.Class{"changes"}))
	_, err := bundle.ParseClass("profile")
	require.NoError(t, err)
}
