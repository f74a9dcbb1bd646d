package state

import (
	"bytes"
	"fmt"
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestJournalForgets makes sure that a reader that looks too seldom is told everything,
// and one that looks often is not.
func TestJournalForgets(t *testing.T) {
	store := New()
	const each = 1_000
	var last uint64
	for i := range JournalMax/each + 2 {
		job := testJob(fmt.Sprintf("b%d", i), 1)
		job.Batch = &structs.Batch{Count: each}
		store.Apply(uint64(i+1), encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: job}))
		changes := store.Snapshot().Changes(last)
		if changes.Full != (i == 0) || len(changes.Subjobs) != each {
			t.Fatalf("after job %d: full is %t, %d subjobs", i, changes.Full, len(changes.Subjobs))
		}
		last = uint64(i + 1)
	}
	snapshot := store.Snapshot()
	if n := len(snapshot.meta().journal); n > JournalMax {
		t.Errorf("%d notes are kept", n)
	}
	if changes := snapshot.Changes(1); !changes.Full {
		t.Error("what was dropped is not missed")
	}
	if changes := snapshot.Changes(snapshot.meta().journalFrom); changes.Full {
		t.Error("what is kept is not used")
	}
	if changes := snapshot.Changes(last + 1); !changes.Full {
		t.Error("a reader from another history is told nothing")
	}
	if changes := snapshot.Changes(last); changes.Full || len(changes.Subjobs) != 0 {
		t.Errorf("nothing changed, and that is %+v", changes)
	}
}

// TestJournalOfAnotherHistory makes sure that whoever followed a state that was
// given up is told everything about the one that came back, also when its log
// has long passed the index that the follower had.
func TestJournalOfAnotherHistory(t *testing.T) {
	submit := func(store *Store, index uint64) {
		job := testJob(fmt.Sprintf("b%d", index), 1)
		store.Apply(index, encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: job}))
	}
	store := New()
	submit(store, 1)
	var archive bytes.Buffer
	if err := store.Snapshot().Persist(&archive); err != nil {
		t.Fatal(err)
	}
	submit(store, 2)
	submit(store, 3)
	if err := store.Restore(&archive); err != nil {
		t.Fatal(err)
	}
	submit(store, 5) // the restore itself took index 4
	submit(store, 6)
	for since := uint64(1); since <= 3; since++ {
		if changes := store.Snapshot().Changes(since); !changes.Full {
			t.Errorf("who was at index %d of what was given up is told %+v", since, changes)
		}
	}
	if changes := store.Snapshot().Changes(5); changes.Full || len(changes.Subjobs) != 1 {
		t.Errorf("who follows the new state is told %+v", changes)
	}
}
