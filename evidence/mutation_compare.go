package evidence

import (
	"slices"
	"strings"
)

// CompareWorkspaces lists what differs between two valid manifests (req O5). It depends on nothing
// else: the same two manifests always give the same list.
//
// A rename is a file that was deleted and one that was added with the same non-empty content, where
// that content lies at no other path before and at none after. Any other pair is a guess, and stays a
// deletion and an addition.
func CompareWorkspaces(before, after WorkspaceManifest) Mutations {
	var l, added, deleted Mutations
	i, j := 0, 0
	for i < len(before.Entries) || j < len(after.Entries) {
		switch {
		case j == len(after.Entries) || i < len(before.Entries) && before.Entries[i].Path < after.Entries[j].Path:
			s := before.Entries[i].EntryState
			deleted = append(deleted, Mutation{Path: before.Entries[i].Path, Kind: MutationDeleted, Before: &s})
			i++
		case i == len(before.Entries) || before.Entries[i].Path > after.Entries[j].Path:
			s := after.Entries[j].EntryState
			added = append(added, Mutation{Path: after.Entries[j].Path, Kind: MutationAdded, After: &s})
			j++
		default:
			if b, a := before.Entries[i].EntryState, after.Entries[j].EntryState; b != a {
				l = append(l, Mutation{Path: before.Entries[i].Path, Kind: MutationModified, Before: &b, After: &a})
			}
			i++
			j++
		}
	}
	l = append(l, pairRenames(before, after, added, deleted)...)
	slices.SortFunc(l, func(a, b Mutation) int { return strings.Compare(a.Path, b.Path) })
	return l
}

// pairRenames returns the added and deleted entries, with the pairs that are renames joined.
func pairRenames(before, after WorkspaceManifest, added, deleted Mutations) Mutations {
	was, is := contentCounts(before), contentCounts(after)
	gone := map[ContentDigest]int{} // deleted files whose content was unique
	for i, m := range deleted {
		if m.Before.Type == EntryFile && m.Before.Size > 0 && was[m.Before.SHA256] == 1 {
			gone[m.Before.SHA256] = i
		}
	}
	joined := map[int]bool{}
	for i := range added {
		m := &added[i]
		if m.After.Type != EntryFile || is[m.After.SHA256] != 1 {
			continue
		}
		from, found := gone[m.After.SHA256]
		if !found || deleted[from].Before.Size != m.After.Size {
			continue
		}
		joined[from] = true
		m.Kind, m.From, m.Before = MutationRenamed, deleted[from].Path, deleted[from].Before
	}
	for i, m := range deleted {
		if !joined[i] {
			added = append(added, m)
		}
	}
	return added
}

func contentCounts(m WorkspaceManifest) map[ContentDigest]int {
	n := map[ContentDigest]int{}
	for _, e := range m.Entries {
		if e.Type == EntryFile {
			n[e.SHA256]++
		}
	}
	return n
}
