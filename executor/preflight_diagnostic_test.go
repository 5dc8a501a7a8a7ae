package executor

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestDiagnostic(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"the daemon reports no support for swap limits; it would drop them": "the daemon reports no support for swap limits; it would drop them",
		"docker info refused (status 500): no":                              "docker info refused (status 500): no",
		"dial unix /var/run/docker.sock: connect: permission denied":        "dial unix (withheld) connect: permission denied",
		`open "/home/joe smith/x": no such file`:                            `open (withheld) no such file`,
		"open /home/joe smith/x failed for everybody":                       "open (withheld)",
		"tcp://10.1.2.3:2375 is down; sorry":                                "(withheld) sorry",
		"10.1.2.3 is down; sorry":                                           "(withheld) sorry",
		"db.internal.example: refused":                                      "(withheld) refused",
		"invalid environment variable: API_TOKEN=two words; more":           "invalid environment variable: (withheld)",
		"the password hunter2 is wrong; sorry":                              "the password (withheld)",
		"Authorization: Bearer abc":                                         "Authorization: (withheld)",
		"key AKIAIOSFODNN7EXAMPLE, sorry":                                   "key (withheld) sorry",
		"HostConfig.Privileged, HostConfig.Binds":                           "HostConfig.Privileged, HostConfig.Binds",
		"65532:65532, /tmp of 4096 bytes, engine 20.10.24":                  "65532:65532, /tmp of 4096 bytes, engine 20.10.24",
		"line one\nline two\x00\x1b[31m; end":                               "line one line (withheld) end",
		"grüße; end":                                                        "(withheld) end",
	} {
		require.Equal(t, want, Diagnostic(in), "%q", in)
	}
	long := Diagnostic(strings.Repeat("word ", 10_000))
	require.LessOrEqual(t, len(long), MaxDiagnostic)
	require.True(t, strings.HasSuffix(long, "word (cut)"), long)
}

// req M5: whatever a daemon's or a system's text holds, nothing private of it is left, and it is bounded:
// a thousand texts with a private path, an endpoint, a credential and an environment value each, planted
// between words in every order.
func TestDiagnosticsHoldNothingPrivate(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	token := func(n int) string {
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[draw.IntN(len(letters))]
		}
		b[draw.IntN(n)] = byte('0' + draw.IntN(10))
		return string(b)
	}
	pick := func(of ...string) string { return of[draw.IntN(len(of))] }
	planted, words := 0, strings.Fields("the daemon said that: create refused (status 500); no such file, again. while reading it")
	for range 1000 {
		secrets := map[string]string{ // what must not be seen → how it stands in the text
			"x" + token(12): "path", "y" + token(12): "host", "z" + token(24): "token", "w" + token(12): "value",
		}
		var parts []string
		for s, kind := range secrets {
			switch kind {
			case "path":
				parts = append(parts, fmt.Sprintf(pick("/home/%s/x", "/root/a b/%s", `"/srv/%s/c d"`, `C:\%s\x`, "~/%s", "../%s/y", "'/%s'"), s))
			case "host":
				parts = append(parts, fmt.Sprintf(pick("tcp://%s:2375", "unix:///run/%s.sock", "https://joe:%s@example.org/", "%s.internal.example", "ssh://root@%s", "npipe:////./pipe/%s", "fd://%s"), s))
			case "token":
				parts = append(parts, fmt.Sprintf(pick("%s", "Bearer %s", "token: %s", "password=%s", "--secret %s", `{"auth":"%s"}`, "Basic %s==", "[%s]", "(%s)"), s))
			case "value":
				parts = append(parts, fmt.Sprintf(pick("NAME=%s", "NAME=two words %s", `"NAME=%s"`, "-e NAME=a,%s", "NAME: a=%s", "env NAME='%s x'"), s))
			}
			for range draw.IntN(6) {
				parts = append(parts, pick(words...))
			}
		}
		draw.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		text := strings.Join(parts, pick(" ", "  ", "\n", "\t"))
		out := Diagnostic(text)
		for s := range secrets {
			require.NotContains(t, out, s, "%q → %q", text, out)
			planted++
		}
		require.LessOrEqual(t, len(out), MaxDiagnostic)
		require.True(t, utf8.ValidString(out))
		for _, word := range strings.Fields(out) {
			require.True(t, word == Withheld || ordinary(strings.Trim(word, edges)), "%q of %q", word, out)
		}
		require.False(t, strings.ContainsFunc(out, func(r rune) bool { return r < ' ' || r > '~' }), "%q", out)
	}
	t.Logf("count: %d secrets planted in 1000 texts", planted)
	require.Equal(t, 4000, planted)
}

// req M5: what a check says passes through the same place, whoever makes it.
func TestFindingsAreSanitised(t *testing.T) {
	var f Findings
	f.Add(CheckDaemon, "unavailable", RefusedUnreachable, "docker info unanswered: dial unix /run/user/1000/docker.sock: connect: no")
	require.Equal(t, "docker info unanswered: dial unix (withheld) connect: no", f.Checks[0].Reason)
	require.Equal(t, []string{"daemon: unavailable: daemon_unreachable: docker info unanswered: dial unix (withheld) connect: no"}, f.Lines())
}
