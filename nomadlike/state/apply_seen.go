package state

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"nomadlike/nomadlike/structs"
)

// seenPeersMax bounds how many ranks of a gang one is compared with.
const seenPeersMax = 64

// seen keeps what a rank sees of its environment, and makes an event when that
// differs from what the lowest rank sees that was heard. When another rank has
// seen just the same, its difference is known already.
func (tx *txn) seen(before *structs.Allocation, told map[string]string) {
	if len(told) == 0 || len(told) > structs.SeenMax {
		return
	}
	for name, value := range told {
		if len(name) > structs.SeenValueMax || strings.ContainsFunc(name+value, unicode.IsControl) {
			return
		}
	}
	after := *before
	after.Seen = make(map[string]string, len(told))
	for name, value := range told {
		after.Seen[name] = strings.ToValidUTF8(value[:min(len(value), structs.SeenValueMax)], "")
	}
	tx.putAlloc(before, &after)
	row, ok := tx.attempt(after.JobID, after.Subjob, after.Attempt)
	if !ok {
		return
	}
	var first *structs.Allocation
	for _, id := range row.Attempt.Allocs[:min(len(row.Attempt.Allocs), seenPeersMax)] {
		peer, ok := tx.alloc(id)
		if !ok || peer.ID == after.ID || len(peer.Seen) == 0 {
			continue
		}
		if maps.Equal(peer.Seen, after.Seen) {
			return
		}
		if first == nil {
			first = peer
		}
	}
	if first == nil {
		return
	}
	if differs := differences(after.Seen, first.Seen); differs != "" {
		event := allocEvent(structs.EventEnvironmentDiffers, &after)
		event.Severity = severityWarn
		tx.tell(event, "rank", after.Name, "node", after.NodeName, "other", first.Name, "other_node", first.NodeName, "differs", differs)
	}
}

// differences lists facts that both have, and have otherwise, as people read
// them; by name.
func differences(mine, other map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		if value, ok := other[name]; ok && value != mine[name] {
			parts = append(parts, name+"="+mine[name]+" ("+value+")")
		}
	}
	text := strings.Join(parts, ", ")
	return strings.ToValidUTF8(text[:min(len(text), structs.NoteParamMax)], "")
}
