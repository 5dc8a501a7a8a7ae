package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/evidence/journal"
	"github.com/baildock/baildock/export"
	"github.com/baildock/baildock/ledger"
)

// keyView is one key of the ledger.
type keyView struct {
	Role    evidence.KeyRole `json:"role"`
	Key     evidence.KeyID   `json:"key"`
	State   string           `json:"state"` // live, retired
	Added   ledger.Index     `json:"added"` // index of the event
	Retired *ledger.Index    `json:"retired,omitempty"`
	Held    string           `json:"held"` // file, kms or no
	Signs   bool             `json:"signs"`
}

func (p *program) keyList(c *cli.Context) error {
	if _, err := p.positional(); err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		keys, err := h.journal.KeyHistory(c.Context)
		if err != nil {
			return err
		}
		views := make([]keyView, len(keys))
		signs := map[evidence.KeyRole]int{evidence.RoleBundle: -1, evidence.RoleCheckpoint: -1}
		for i, k := range keys {
			held, ok, err := h.held(k)
			if err != nil {
				return err
			}
			views[i] = keyView{Role: k.Role, Key: k.ID(), State: "live", Added: k.Added, Retired: k.Retired, Held: "no"}
			switch {
			case ok && held.reference:
				views[i].Held = "kms"
			case ok:
				views[i].Held = "file"
			}
			if k.Retired != nil {
				views[i].State = "retired"
			} else if ok {
				signs[k.Role] = i
			}
		}
		for _, i := range signs {
			if i >= 0 {
				views[i].Signs = true
			}
		}
		if p.ui.json {
			return p.ui.printJSON(views)
		}
		for _, v := range views {
			since := fmt.Sprintf("from index %d", v.Added)
			if v.Retired != nil {
				since += fmt.Sprintf(" to %d", *v.Retired)
			}
			signs := ""
			if v.Signs {
				signs = ", signs"
			}
			if err := p.printf("%-10s  %s  %-7s  %s; held here: %s%s\n", v.Role, v.Key, v.State, since, v.Held, signs); err != nil {
				return err
			}
		}
		return nil
	})
}

// keyAdd keeps the private key in the home, then adds it to the ledger: a crash between the two leaves
// a file that nothing uses and that doing it again completes.
func (p *program) keyAdd(c *cli.Context) error {
	args, err := p.positional("bundle|checkpoint", "FILE or REFERENCE")
	if err != nil {
		return err
	}
	role, err := parseRole(args[0])
	if err != nil {
		return err
	}
	return withHome(c, actorOperator, func(h *home) error {
		spki, content, suffix, err := p.newKey(c, role, args[1])
		if err != nil {
			return err
		}
		endorser, err := p.endorser(c, h, role, nil)
		if err != nil {
			return err
		}
		k := journal.Key{Role: role, SPKI: spki, Added: 1}
		keys, err := h.journal.KeyHistory(c.Context)
		if err != nil {
			return err
		}
		for _, have := range keys {
			if have.Role == role && have.ID() == k.ID() {
				k = have
			}
		}
		if k.Retired != nil {
			return fail(exitUsage, "key_retired", "key %s was retired at index %d and doesn't come back", k.ID(), *k.Retired).
				hint("make a new one: baildock key generate %s -o FILE", role)
		}
		if err := keepKey(h.path(keysName, keyStem(k)+suffix), content); err != nil {
			return err
		}
		done, err := h.journal.AddKey(c.Context, role, spki, endorser)
		if err != nil {
			return err
		}
		return p.keyChanged(role, k.ID(), "live", done)
	})
}

// newKey reads the key that is to be added: its public half, and what the home keeps of it.
func (p *program) newKey(c *cli.Context, role evidence.KeyRole, name string) (spki, content []byte, suffix string, err error) {
	if export.IsKMSReference(name) {
		if role != evidence.RoleBundle {
			return nil, nil, "", usage("a checkpoint key is a file, not a reference")
		}
		key, err := p.kmsKey(c, name)
		if err != nil {
			return nil, nil, "", keyFailure(name, err)
		}
		return key.SPKI(), []byte(name + "\n"), referenceSuffix, nil
	}
	if content, err = export.ReadKeyFile(name); err == nil {
		spki, err = publicHalf(role, content, p.keyPassword)
	}
	if err != nil {
		return nil, nil, "", keyFailure(name, err)
	}
	return spki, content, keySuffix, nil
}

// keepKey stores a key's file in the home, if it isn't there yet.
func keepKey(path string, content []byte) error {
	err := export.WriteKey(path, content)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("keep the key: %w", err)
	}
	if !bytes.Equal(have, content) {
		return fail(exitUsage, "file_exists", "file %q holds this key in another form", path).hint("remove it if it is damaged")
	}
	return nil
}

// endorser is the key that signs for a change of the keys of its role, apart from one.
func (p *program) endorser(c *cli.Context, h *home, role evidence.KeyRole, apart *evidence.KeyID) (journal.Endorser, error) {
	held, err := h.signingKey(c, role, apart)
	if err != nil {
		return nil, err
	}
	if role == evidence.RoleCheckpoint {
		return p.loadCheckpointKey(held)
	}
	return p.loadBundleKey(c, held)
}

func (p *program) keyRetire(c *cli.Context) error {
	args, err := p.positional("bundle|checkpoint", "KEY")
	if err != nil {
		return err
	}
	role, err := parseRole(args[0])
	if err != nil {
		return err
	}
	var id evidence.KeyID
	if err := id.UnmarshalText([]byte(args[1])); err != nil {
		return usage("%w", err).hint("baildock key list shows the keys")
	}
	return withHome(c, actorOperator, func(h *home) error {
		endorser, err := p.endorser(c, h, role, &id)
		if err != nil {
			// No other is here: the key may endorse its own end, if the role has another one somewhere.
			if endorser, err = p.endorser(c, h, role, nil); err != nil {
				return err
			}
		}
		done, err := h.journal.RetireKey(c.Context, role, id, endorser)
		var (
			none    *journal.NoLiveKeyError
			illegal *evidence.IllegalEventError
		)
		switch {
		case errors.As(err, &none):
			return fail(exitUsage, "key_not_found", "%w", err).hint("baildock key list shows the keys")
		case errors.As(err, &illegal):
			return fail(exitUsage, "key_last", "%s", illegal.Why).hint("add its successor first: baildock key add %s FILE", role)
		case err != nil:
			return err
		}
		return p.keyChanged(role, id, "retired", done)
	})
}

// keyChanged says what became of a key.
func (p *program) keyChanged(role evidence.KeyRole, id evidence.KeyID, state string, done *ledger.Event) error {
	var index *ledger.Index
	said := "already"
	if done != nil {
		index, said = &done.Index, fmt.Sprintf("at index %d", done.Index)
	}
	if p.ui.json {
		return p.ui.printJSON(struct {
			Role  evidence.KeyRole `json:"role"`
			Key   evidence.KeyID   `json:"key"`
			State string           `json:"state"`
			Index *ledger.Index    `json:"index"` // null: it was so already
		}{role, id, state, index})
	}
	return p.printf("%s  %s  %s %s\n", role, id, state, said)
}
