package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"

	"github.com/baildock/baildock/evidence"
	"github.com/baildock/baildock/executor"
)

// FindLabelled lists objects of one kind that carry an ownership label, whatever its value. The daemon
// filters by a label's whole name and by all of several at once, so it is asked once for each.
func (d *Driver) FindLabelled(ctx context.Context, kind evidence.CustodyKind) ([]executor.Labelled, error) {
	list := d.listContainers
	switch kind {
	case evidence.CustodyContainer:
	case evidence.CustodyNetwork:
		list = d.listNetworks
	default:
		return nil, fmt.Errorf("objects of kind %q can't be listed", kind)
	}
	found := map[evidence.ContainerID]executor.Labelled{}
	for _, label := range []string{executor.LabelRequest, executor.LabelHandle} {
		_, err := d.control(ctx, "list", d.by.control, func(ctx context.Context) error {
			return list(ctx, label, func(id string, l executor.Labelled) error {
				if _, ok := l.Labels[label]; !ok {
					return errors.New("the daemon listed an object without the label asked for")
				}
				maps.DeleteFunc(l.Labels, func(name, _ string) bool { return !strings.HasPrefix(name, executor.LabelPrefix) })
				var err error
				if l.ID, err = parseID(id); err != nil {
					return err
				}
				l.Kind = kind
				if found[l.ID] = l; len(found) > maxLabelled {
					return fmt.Errorf("%w: more than %d objects carry label %s", errTooLarge, maxLabelled, label)
				}
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b executor.Labelled) int { return strings.Compare(a.ID.Hex(), b.ID.Hex()) }), nil
}

func (d *Driver) listContainers(ctx context.Context, label string, take func(id string, l executor.Labelled) error) error {
	all, err := d.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return err
	}
	for _, s := range all {
		l := executor.Labelled{Labels: s.Labels, Status: clip(s.State, maxFact), Created: time.Unix(s.Created, 0).UnixNano()}
		if len(s.Names) > 0 { // the first is its own; others are links
			l.Name = clip(strings.TrimPrefix(s.Names[0], "/"), maxMessage)
		}
		if err := take(s.ID, l); err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) listNetworks(ctx context.Context, label string, take func(id string, l executor.Labelled) error) error {
	all, err := d.api.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return err
	}
	for _, s := range all {
		l := executor.Labelled{Labels: s.Labels, Name: clip(s.Name, maxMessage)}
		if !s.Created.IsZero() {
			l.Created = s.Created.UnixNano()
		}
		if err := take(s.ID, l); err != nil {
			return err
		}
	}
	return nil
}
