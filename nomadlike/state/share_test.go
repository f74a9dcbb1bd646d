package state

import (
	"bytes"
	"testing"

	"nomadlike/nomadlike/structs"
)

// say lets a node tell of count checkpoints, each in a batch of its own or in
// batches of a hundred.
func say(s *Store, node string, count, at int) {
	for at < count {
		tx := s.begin()
		tx.shares, s.shares = s.shares, nil
		for range min(100, count-at) {
			tx.meta.Index++
			tx.seq = 0
			tx.tell(structs.Event{Topic: topicAlloc, ID: eventCheckpoint, NodeID: node, AllocID: "a"}, "path", decimal(at))
			at++
		}
		tx.commit()
		s.shares = tx.shares
	}
}

// TestNodeCannotWipeEvents: a node that reports checkpoints without end loses
// its own events and nobody else's, on every server alike, also on one that has
// read the state anew.
func TestNodeCannotWipeEvents(t *testing.T) {
	s := New()
	tx := s.begin()
	const others = 300
	for i := range others {
		tx.meta.Index++
		tx.seq = 0
		tx.tell(structs.Event{Topic: topicPool, ID: "event.pool.changed"}, "pool", decimal(i))
	}
	tx.commit()
	say(s, "rogue", 2*EventsMax, 0)
	count := func(s *Store) (pools, rogue int) {
		for _, event := range s.Snapshot().meta().ring {
			switch event.NodeID {
			case "":
				pools++
			case "rogue":
				rogue++
			}
		}
		return pools, rogue
	}
	if pools, rogue := count(s); pools != others || rogue > NodeEventsShare+nodeEventsSlack || rogue < NodeEventsShare {
		t.Errorf("%d events of others, %d of the node are left", pools, rogue)
	}
	var stored bytes.Buffer
	if err := s.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&stored); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*Store{s, again} {
		say(one, "rogue", 1234, 0)
		say(one, "n2", 700, 0)
	}
	if s.Snapshot().Hash() != again.Snapshot().Hash() {
		t.Error("a server that has read the state anew keeps other events")
	}
}
