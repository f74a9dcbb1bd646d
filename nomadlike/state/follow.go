package state

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sort"

	"nomadlike/nomadlike/structs"
)

// ErrEventsDropped is returned when a follower asks for events that the ring
// does not keep any more: there would be a gap. It must read the state anew
// and follow from there.
var ErrEventsDropped = errors.New("events after this place are not kept any more")

// followBatch bounds the events that one call of Next returns.
const followBatch = 512

// Follower reads the change stream: all events after a place, in the order
// in which they happened, none twice and none left out. It holds no buffer
// that could overflow; a slow reader that falls out of the ring is told so. Use
// it from one goroutine.
type Follower struct {
	store *Store
	after structs.Cursor // everything up to here was given
}

// Follow returns the events after a place; behind the newest index it returns only
// what is still to come.
func (s *Store) Follow(after structs.Cursor) *Follower { return &Follower{store: s, after: after} }

// Next returns the next events, all those of an index together, and waits when
// there are none; index is that up to which all are given then. Events is empty
// when the state moved on without any, so that the reader learns the index. The
// error is ErrEventsDropped or the context's.
func (f *Follower) Next(ctx context.Context) (events []*structs.Event, index uint64, err error) {
	snapshot, err := f.store.Block(ctx, func(snapshot *Snapshot) (bool, <-chan struct{}) {
		return snapshot.Index() >= f.after.Index, snapshot.WatchIndex()
	})
	if err != nil {
		return nil, 0, err
	}
	events, index, err = snapshot.EventsAfter(f.after)
	if err != nil {
		return nil, 0, err
	}
	f.after = structs.CursorAfter(index)
	return events, index, nil
}

// EventsAfter returns the oldest events after a place, all those of a log index
// together, and the index up to which they are complete. It fails with
// ErrEventsDropped when some are not kept any more.
func (s *Snapshot) EventsAfter(after structs.Cursor) ([]*structs.Event, uint64, error) {
	meta := s.meta()
	if after.Index <= meta.EventsDropped && meta.EventsDropped > 0 {
		return nil, 0, ErrEventsDropped
	}
	from := sort.Search(len(meta.ring), func(i int) bool { return meta.ring[i].Cursor().Compare(after) > 0 })
	events := meta.ring[from:]
	if len(events) > followBatch {
		// Up to the end of the index in which the batch ends.
		last := events[followBatch-1].Index
		end := sort.Search(len(events), func(i int) bool { return events[i].Index > last })
		if end < len(events) {
			return slices.Clip(events[:end]), last, nil
		}
	}
	return slices.Clip(events), meta.Index, nil
}

// RecentEvents iterates the events that are kept from a time on, oldest first.
func (s *Snapshot) RecentEvents(since structs.UnixNano) iter.Seq[*structs.Event] {
	ring := s.meta().ring
	from := sort.Search(len(ring), func(i int) bool { return ring[i].Time >= since })
	return slices.Values(slices.Clip(ring[from:]))
}

// NodeEventsMax bounds the history of one node.
const NodeEventsMax = 200

// NodeEvents returns the newest events of a node and its devices that are kept,
// oldest first, or those of one device; those of the work on it are in the
// histories of its jobs.
func (s *Snapshot) NodeEvents(nodeID, deviceID string) []*structs.Event {
	var events []*structs.Event
	for _, event := range slices.Backward(s.meta().ring) {
		if event.NodeID == nodeID && event.Topic == topicNode && (deviceID == "" || event.Params["device"] == deviceID) {
			if events = append(events, event); len(events) == NodeEventsMax {
				break
			}
		}
	}
	slices.Reverse(events)
	return events
}

// WatchEvents is the Watch twin of EventsAfter.
func (s *Snapshot) WatchEvents() <-chan struct{} { return s.WatchIndex() }
