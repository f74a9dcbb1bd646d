package state

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// The rings of a stored state, each written like a table.
const (
	sectionEvents = "events"
	sectionRuns   = "runs"
)

func writeRing[T any](w io.Writer, section string, ring []*T) error {
	if err := writeFrame(w, &dumpTable{Table: section, Rows: len(ring)}); err != nil {
		return err
	}
	for _, item := range ring {
		if err := writeFrame(w, item); err != nil {
			return err
		}
	}
	return nil
}

// readRing reads a ring, whose items must stand in order.
func readRing[T any](frames *frameReader, section string, before func(a, b *T) bool) ([]*T, error) {
	var head dumpTable
	if err := frames.decode(&head); err != nil {
		return nil, err
	}
	if head.Table != section || head.Rows < 0 {
		return nil, fmt.Errorf("%w: found table %q", ErrBadState, head.Table)
	}
	var ring []*T
	for range head.Rows {
		item := new(T)
		if err := frames.decode(item); err != nil {
			return nil, err
		}
		if n := len(ring); n > 0 && !before(ring[n-1], item) {
			return nil, fmt.Errorf("%w: its %s are out of order", ErrBadState, section)
		}
		ring = append(ring, item)
	}
	return ring, nil
}

func earlier(a, b *structs.Event) bool {
	return a.Index < b.Index || a.Index == b.Index && a.Seq < b.Seq
}

// putRings puts the rings into the state, and lets histories point into that
// of events: most events are in both, and one copy of them is enough.
func putRings(tx *memdb.Txn, events []*structs.Event, runs []*structs.PastRun) {
	meta := *mustFirst[*metaRow](tx, tableMeta, indexID, metaKey())
	meta.ring, meta.runs = events, runs
	keys := withPrefix[*keyRow](tx, tableIdempotency, indexID, nil)
	slices.SortFunc(keys, func(a, b *keyRow) int { return cmp.Compare(a.Index, b.Index) })
	for _, row := range keys {
		meta.keys = append(meta.keys, row.Key)
	}
	mustInsert(tx, tableMeta, &meta)
	for _, row := range withPrefix[*jobStatusRow](tx, tableJobStatuses, indexID, nil) {
		for i, event := range row.History {
			at := sort.Search(len(events), func(i int) bool { return !earlier(events[i], event) })
			if at < len(events) && events[at].Index == event.Index && events[at].Seq == event.Seq {
				row.History[i] = events[at] // the row was decoded just now: nobody else has it
			}
		}
	}
}
