package kurrentdb

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// schemes are those a connection string may have, with the client's word for them.
var schemes = map[string]string{
	"esdb": "esdb", "esdb+discover": "esdb+discover",
	"kurrentdb": "esdb", "kurrentdb+discover": "esdb+discover",
}

// settings are what a connection string may say beside ledger. The client ignores what it doesn't
// know, so that a misspelled tls=true would pass unnoticed.
var settings = []string{
	"tls", "tlsverifycert", "tlscafile", "usercertfile", "userkeyfile", "defaultdeadline", "nodepreference", "gossiptimeout",
	"discoveryinterval", "maxdiscoverattempts", "keepaliveinterval", "keepalivetimeout", "connectionname",
}

// DefaultLedger is the ledger's name on the cluster where the connection string gives none.
const DefaultLedger = "main"

// Is tells whether a ledger's address is a connection string of this backend.
func Is(address string) bool {
	scheme, _, ok := strings.Cut(address, "://")
	return ok && schemes[strings.ToLower(scheme)] != ""
}

// Redacted is the connection string without its password, for messages.
func Redacted(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	host, query, asked := strings.Cut(rest, "?")
	user, hosts, named := cutLast(host, "@")
	if !ok || !named {
		return address
	}
	name, _, _ := strings.Cut(user, ":")
	out := scheme + "://" + name + ":xxxxx@" + hosts
	if asked {
		out += "?" + query
	}
	return out
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// target is a parsed connection string.
type target struct {
	config   *esdb.Configuration
	ledger   string
	redacted string
}

// parseURL takes ?ledger=NAME out of a connection string and translates the rest for the client.
func parseURL(address string) (target, error) {
	t := target{redacted: Redacted(address), ledger: DefaultLedger}
	refused := func(format string, args ...any) (target, error) {
		return target{}, fmt.Errorf("connection string %s: %w", t.redacted, fmt.Errorf(format, args...))
	}
	scheme, rest, ok := strings.Cut(address, "://")
	translated := schemes[strings.ToLower(scheme)]
	if !ok || translated == "" {
		return refused("use esdb://, esdb+discover://, kurrentdb:// or kurrentdb+discover://")
	}
	hosts, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return refused("its settings can't be read: %w", err)
	}
	kept := url.Values{}
	for key, v := range values {
		switch lower := strings.ToLower(key); {
		case len(v) != 1:
			return refused("it gives %s %d times", key, len(v))
		case lower == "ledger":
			t.ledger = v[0]
		case !contains(settings, lower):
			return refused("it has the unknown setting %q; known are ledger, %s", key, strings.Join(settings, ", "))
		case lower != "connectionname": // for logs of other clients; this one has none
			kept[key] = v
		}
	}
	if err := checkLedgerName(t.ledger); err != nil {
		return refused("%w", err)
	}
	translated += "://" + strings.TrimSuffix(hosts, "/")
	if len(kept) > 0 {
		translated += "?" + kept.Encode()
	}
	config, err := esdb.ParseConnectionString(translated)
	if err != nil {
		return refused("%w", withoutSecret(err, translated))
	}
	if err := config.Validate(); err != nil {
		return refused("%w", err)
	}
	config.Logger = esdb.NoopLogging() // it would write to standard error
	t.config = config
	return t, nil
}

// withoutSecret is a parser's error that may quote the string it parsed.
func withoutSecret(err error, parsed string) error {
	user, _, ok := strings.Cut(parsed, "@")
	if _, secret, found := strings.Cut(strings.TrimPrefix(user[strings.Index(user, "://")+1:], "//"), ":"); ok && found && secret != "" && strings.Contains(err.Error(), secret) {
		return errors.New("it can't be parsed")
	}
	return err
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// checkLedgerName allows what can't be taken for a part of a stream's name.
func checkLedgerName(name string) error {
	if name == "" || len(name) > maxLedgerName {
		return fmt.Errorf("ledger name has %d bytes; 1 to %d are allowed", len(name), maxLedgerName)
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if plain := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'; !plain && (i == 0 || c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("ledger name %q has %q at byte %d; use a-z, 0-9, '.', '_' and '-', starting with a letter or digit", name, c, i)
		}
	}
	return nil
}

// Check tells what is wrong with a connection string, without connecting.
func Check(address string) error {
	_, err := parseURL(address)
	return err
}

// LedgerName is the ledger that a connection string names, for a name of the cache's file.
func LedgerName(address string) (string, error) {
	t, err := parseURL(address)
	return t.ledger, err
}
