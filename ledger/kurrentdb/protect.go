package kurrentdb

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/baildock/baildock/ledger"
)

// By default every user of a cluster may delete every stream and hide its events. An evidence
// ledger needs a cluster where only administrators may: $settings says so for all streams that have
// no list of their own, those that a ledger will make included.
const (
	settingsStream = "$settings"
	userStreamACL  = "$userStreamAcl"
)

// guardedRights are those that let somebody hide or delete events.
var guardedRights = []string{"$d", "$mw"}

// accessSettings are the cluster's default access lists, as they are stored.
type accessSettings struct {
	all      map[string]any
	revision uint64
	stored   bool
}

func (s *Store) readSettings(ctx context.Context) (accessSettings, error) {
	out := accessSettings{all: map[string]any{}}
	r, err := s.readOne(ctx, settingsStream, esdb.Backwards, esdb.End{})
	if err != nil && kindOf(err) == notFound || err == nil && r == nil {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("read the cluster's access settings: %w", s.explain(err))
	}
	out.revision, out.stored = r.EventNumber, true
	if err := json.Unmarshal(r.Data, &out.all); err != nil {
		return out, fmt.Errorf("the cluster's access settings (stream %s) can't be read: %w", settingsStream, err)
	}
	return out, nil
}

// open names the rights that everybody has.
func (a accessSettings) open() []string {
	acl, _ := a.all[userStreamACL].(map[string]any)
	var out []string
	for _, right := range guardedRights {
		if acl[right] == nil || holds("$all", acl[right]) {
			out = append(out, right)
		}
	}
	return out
}

// holds tells whether an access list's entry holds a role.
func holds(role string, entry any) bool {
	if list, ok := entry.([]any); ok {
		return slices.ContainsFunc(list, func(v any) bool { return v == role })
	}
	return entry == role
}

// Protect makes sure that only administrators of the cluster may delete streams or write their
// metadata, where nothing else is said. It changes nothing but those two rights, on a cluster whose
// settings leave them open, and needs the rights of an administrator for that.
func (s *Store) Protect(ctx context.Context) error {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	for {
		now, err := s.readSettings(ctx)
		if err != nil {
			return err
		}
		open := now.open()
		if len(open) == 0 {
			return nil
		}
		acl, ok := now.all[userStreamACL].(map[string]any)
		if !ok {
			acl = map[string]any{"$r": "$all", "$w": "$all", "$mr": "$all"} // the server's own defaults
			now.all[userStreamACL] = acl
		}
		for _, right := range open {
			acl[right] = "$admins"
		}
		if now.all["$systemStreamAcl"] == nil {
			now.all["$systemStreamAcl"] = map[string]any{"$r": "$admins", "$w": "$admins", "$d": "$admins", "$mr": "$admins", "$mw": "$admins"}
		}
		data, err := json.Marshal(now.all)
		if err != nil {
			return err
		}
		opts := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}, RequiresLeader: true}
		if now.stored {
			opts.ExpectedRevision = esdb.Revision(now.revision)
		}
		id := sha256.Sum256(fmt.Appendf(data, " after %d", now.revision))
		e := esdb.EventData{EventID: uuid.UUID(id[:16]), EventType: "update-default-acl", ContentType: esdb.ContentTypeJson, Data: data}
		err = s.link.retrying(ctx, func(ctx context.Context, db *esdb.Client) error {
			_, err := db.AppendToStream(ctx, settingsStream, opts, e)
			return err
		})
		if err == nil {
			return nil
		}
		if kindOf(err) != wrongRevision {
			return fmt.Errorf("protect the cluster's streams from deletion (an administrator may, in stream %s): %w", settingsStream, s.explain(err))
		}
	}
}

// checkProtection fails with *ledger.DamagedError where Protect would have something to do.
func (s *Store) checkProtection(ctx context.Context) error {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	now, err := s.readSettings(ctx)
	if err != nil {
		return err
	}
	if open := now.open(); len(open) > 0 {
		return &ledger.DamagedError{What: fmt.Sprintf(
			"the cluster lets every user delete streams or hide their events: %s of %s in stream %s names $all or nobody; an administrator sets it to $admins",
			open[0], userStreamACL, settingsStream)}
	}
	return nil
}
