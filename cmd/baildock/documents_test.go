package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/baildock/baildock/schemas"
)

// documentsEnv names a directory that gets every JSON document a script made the program print.
const documentsEnv = "BAILDOCK_TEST_DOCUMENTS"

// exitDocument is how the program under test ends when it printed a document that is not what its
// schema says.
const exitDocument = 97

// documentOf names the schema of what each verb prints with --json.
var documentOf = map[string]string{
	"append": "append", "audit": "audit", "export": "export", "init": "init", "inspect": "inspect", "preflight": "preflight", "report": "report", "rerun": "rerun",
	"run": "attempt", "contained-run": "contained-run", "schema": "schemas", "supervise": "supervise", "verify": "verify", "version": "version", "why": "why",
	"check register": "attempt", "check run": "attempt", "check show": "attempt", "check cancel": "attempt", "check recover": "attempt",
	"check candidate": "candidate",
	"change open":     "change", "change version": "change", "change context": "change", "change show": "change",
	"change approve": "judgement", "change integrate": "judgement",
	"policy show": "policy", "policy advance": "policy",
	"query attempts": "attempts", "change list": "rows", "query custody": "rows", "query admissions": "rows", "query runtimes": "rows", "query qualifications": "rows",
	"query timeline": "rows", "query outcomes": "rows", "query sql": "rows",
	"checkpoint sign": "checkpoint", "checkpoint show": "checkpoint", "checkpoint cosign": "checkpoint",
	"checkpoint verify": "checkpoint-verify", "checkpoint cosigner": "cosigner",
	"key generate": "key", "key import": "key", "key add": "key-change", "key retire": "key-change", "key public": "key-public", "key list": "keys",
	"image make": "image", "image canary": "image", "image list": "images",
	"canary list":  "canaries",
	"recipe check": "recipe-check", "recipe digest": "recipe-check", "recipe new": "recipe-check",
	"source digest": "source-digest",
	"ledger copy":   "ledger-copy",
	"replay":        "replay",
}

// checkedMain is the program, with every JSON document it prints held to its schema.
func checkedMain() {
	ledgerOfHome()
	dir := os.Getenv(documentsEnv)
	if dir == "" {
		main()
		return
	}
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var out, errOut bytes.Buffer
	code := run(ctx, os.Args[1:], os.Stdin, io.MultiWriter(os.Stdout, &out), io.MultiWriter(os.Stderr, &errOut))
	if err := checkDocuments(dir, os.Args[1:], out.Bytes(), errOut.String()); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n", err)
		code = exitDocument
	}
	os.Exit(code)
}

// checkDocuments holds what a command line printed to the schemas and keeps it.
func checkDocuments(dir string, args []string, out []byte, errOut string) error {
	for line := range strings.Lines(errOut) {
		if strings.HasPrefix(line, `{"error":`) {
			if err := checkDocument(dir, "error", []byte(line)); err != nil {
				return err
			}
		}
	}
	l, err := arrange((&program{ui: newUI(io.Discard, io.Discard)}).app(), args)
	if err != nil || len(bytes.TrimSpace(out)) == 0 || slices.Contains(l.argv, "--help") {
		return nil
	}
	var verbs []string
	for _, a := range l.argv[1:] {
		if !strings.HasPrefix(a, "-") {
			verbs = append(verbs, a)
		}
	}
	verb := strings.Join(verbs, " ")
	asJSON := l.global("json") || slices.Contains(l.argv, "--format=json")
	name, known := documentOf[verb]
	switch {
	case slices.Contains(l.argv, "--print-request=true"):
		return checkDocument(dir, "request", out)
	case verb == "recipe new" && (!asJSON || !slices.ContainsFunc(l.argv, func(a string) bool { return strings.HasPrefix(a, "--output=") })):
		if slices.ContainsFunc(l.argv, func(a string) bool { return strings.HasPrefix(a, "--output=") }) {
			return nil
		}
		return checkDocument(dir, "recipe-file", out)
	case verb == "replay" && slices.Contains(l.argv, "--format=ndjson"):
		for line := range bytes.Lines(out) {
			if err := checkDocument(dir, "event", line); err != nil {
				return err
			}
		}
		return nil
	case !asJSON || verb == "supervise" && !slices.Contains(l.argv, "--once=true"):
		return nil
	case !known:
		return fmt.Errorf("`%s` prints JSON, and no schema is named for it", verb)
	}
	return checkDocument(dir, name, out)
}

func checkDocument(dir, name string, document []byte) error {
	if err := validate(name, document); err != nil {
		return fmt.Errorf("what was printed is not what schema %s says: %w\n%s", name, err, document)
	}
	f, err := os.CreateTemp(dir, name+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(document)
	return errors.Join(err, f.Close())
}

func validate(name string, document []byte) error {
	s, err := schemas.Find(name)
	if err != nil {
		return err
	}
	text, err := jsonschema.UnmarshalJSON(strings.NewReader(s.Text))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", text); err != nil {
		return err
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return compiled.Validate(v)
}

// holdDocuments gives scripts a directory for what they print and, when all have ended, requires at
// least the named documents to be there, and each to fail its schema once it is bent.
func holdDocuments(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		seen := map[string]bool{}
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		for _, path := range found {
			name, _, _ := strings.Cut(filepath.Base(path), ".")
			document, err := os.ReadFile(path)
			require.NoError(t, err)
			if !seen[name] || name == "rows" {
				bend(t, name, document)
			}
			seen[name] = true
		}
		for _, name := range names {
			require.True(t, seen[name], "no script printed a document of schema %s", name)
		}
		t.Logf("count: %d documents held, of schemas %v", len(found), slices.Sorted(maps.Keys(seen)))
	})
	return dir
}

// bend requires a schema to refuse a document that lacks a member, has one more, or is of another
// kind.
func bend(t *testing.T, name string, document []byte) {
	t.Helper()
	require.Error(t, validate(name, []byte(`"text"`)), name)
	require.Error(t, validate(name, []byte(`null`)), name)
	s, err := schemas.Find(name)
	require.NoError(t, err)
	var schema struct {
		Required []string
		Items    struct {
			Required []string
			Ref      string `json:"$ref"`
		}
		Defs map[string]struct{ Required []string } `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.Text), &schema))
	required := slices.Concat(schema.Required, schema.Items.Required, schema.Defs[strings.TrimPrefix(schema.Items.Ref, "#/$defs/")].Required)
	var list []map[string]any
	object := map[string]any{}
	isList := json.Unmarshal(document, &list) == nil
	if isList {
		if len(list) == 0 {
			return
		}
		object = list[0]
	} else {
		require.NoError(t, json.Unmarshal(document, &object), name)
	}
	refused := func(what string) {
		var v any = object
		if isList {
			v = []any{object}
		}
		b, err := json.Marshal(v)
		require.NoError(t, err)
		require.Error(t, validate(name, b), "%s: %s", name, what)
	}
	if name == "rows" {
		object["unheard_of"] = []any{}
		refused("a cell that is a list")
		return
	}
	require.NotEmpty(t, required, name)
	for _, member := range required {
		kept, ok := object[member]
		require.True(t, ok, "%s: %s", name, member)
		delete(object, member)
		refused("without " + member)
		object[member] = kept
	}
	object["unheard_of"] = 1
	refused("with one member more")
}

// req T8: every schema is one that a verb's document is held to, and every verb that prints JSON has one.
func TestEverySchemaIsUsed(t *testing.T) {
	used := map[string]bool{"error": true, "request": true, "recipe-file": true, "event": true,
		"contained-config":     true, /* a YAML file's; executor/config holds its loader to it */
		"containment-evidence": true, /* inside a verification; evidence/containment holds it to its schema */
		"verification-policy":  true /* read, never printed; export/verify holds its parser to it */}
	for verb, name := range documentOf {
		_, err := schemas.Find(name)
		require.NoError(t, err, verb)
		used[name] = true
	}
	all := schemas.JSON()
	require.Greater(t, len(all), 30)
	names := map[string]bool{}
	for _, s := range append(all, schemas.CDDL()...) {
		require.False(t, names[s.Name], "two schemas are named %s", s.Name)
		names[s.Name] = true
		if s.Kind == schemas.KindJSON {
			require.True(t, used[s.Name], "nothing is held to schema %s", s.Name)
			require.Contains(t, s.Text, `"$schema": "https://json-schema.org/draft/2020-12/schema"`)
		}
	}
}
