package tree

import "slices"

// What may have become of a name from one tree to another.
const (
	ChangeAdded   = "added"
	ChangeRemoved = "removed"
	ChangeContent = "content" // other bytes, another kind, or a link that says something else
	ChangeMode    = "mode"    // other permissions, and nothing else
)

// Change is a name of which two trees think differently.
type Change struct {
	Path string `json:"path"`
	What string `json:"what"` // added, removed, content or mode
}

// Compare lists what differs from one tree to the next, in the order of the paths. What
// lies below a directory that only one of them has is listed, too. Pure.
func Compare(before, after Manifest) []Change {
	var changes []Change
	i, k := 0, 0
	for i < len(before.Entries) || k < len(after.Entries) {
		switch {
		case k == len(after.Entries) || i < len(before.Entries) && before.Entries[i].Path < after.Entries[k].Path:
			changes = append(changes, Change{before.Entries[i].Path, ChangeRemoved})
			i++
		case i == len(before.Entries) || before.Entries[i].Path > after.Entries[k].Path:
			changes = append(changes, Change{after.Entries[k].Path, ChangeAdded})
			k++
		default:
			a, b := &before.Entries[i], &after.Entries[k]
			switch {
			case a.Kind != b.Kind || a.Target != b.Target || !slices.Equal(a.Chunks, b.Chunks):
				changes = append(changes, Change{a.Path, ChangeContent})
			case a.Mode != b.Mode:
				changes = append(changes, Change{a.Path, ChangeMode})
			}
			i, k = i+1, k+1
		}
	}
	return changes
}
