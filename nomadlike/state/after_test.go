package state

import (
	"bytes"
	"fmt"
	"testing"

	"nomadlike/nomadlike/structs"
)

// applied puts one command into a store, whose log is as long as its index.
func applied(t testing.TB, store *Store, kind structs.CommandKind, body any) {
	index := store.Snapshot().Index() + 1
	if result := store.Apply(index, encode(kind, structs.UnixNano(index), body)); result.Err != nil {
		t.Fatal(result.Err)
	}
}

// waitingOn makes a store with a job and count that wait for it, or each for the one before it.
func waitingOn(t testing.TB, count int, chain bool) *Store {
	store := New()
	log := []Entry{{Index: 1, Command: encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: testJob("j0", 1), Numbered: true})}}
	for i := 1; i <= count; i++ {
		job, other := testJob(fmt.Sprintf("j%d", i), 1), "job-j0"
		if chain {
			other = fmt.Sprintf("job-j%d", i-1)
		}
		job.After = []structs.After{{Job: "other", When: structs.UntilSucceeded, ID: other}}
		index := uint64(len(log) + 1)
		log = append(log, Entry{Index: index, Command: encode(structs.CommandJobSubmit, structs.UnixNano(index), &structs.JobSubmit{Job: job, Numbered: true})})
	}
	for _, result := range store.ApplyBatch(log) {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	return store
}

// TestLongChain: a chain ends in the entry that ends its first, without a stack that grows
// with it.
func TestLongChain(t *testing.T) {
	const count = 2000
	store := waitingOn(t, count, true)
	applied(t, store, structs.CommandJobStop, &structs.JobStop{JobID: "job-j0"})
	snapshot := store.Snapshot()
	if live := snapshot.LiveCount(); live != 0 {
		t.Fatalf("%d of %d jobs still wait", live, count)
	}
	last, _ := snapshot.JobNumbered(count + 1)
	if subjob := snapshot.Subjob(last.Job.ID, 0); subjob.State != structs.JobStopped || subjob.Reason == nil || subjob.Reason.ID != "reason.after_succeeded" {
		t.Errorf("the last one is %s because of %v", subjob.State, subjob.Reason)
	}
}

// TestFollowersAreStored: what waits for what is there again after a restore.
func TestFollowersAreStored(t *testing.T) {
	var stored bytes.Buffer
	if err := waitingOn(t, 3, false).Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	restored := New()
	if err := restored.Restore(&stored); err != nil {
		t.Fatal(err)
	}
	count := 0
	for subjob := range restored.Snapshot().Followers("job-j0") {
		if count++; subjob.Wait.ID != "scheduler.after_succeeded" {
			t.Errorf("%s waits because of %s", subjob.JobID, subjob.Wait.ID)
		}
	}
	if count != 3 {
		t.Errorf("%d jobs wait, want 3", count)
	}
	applied(t, restored, structs.CommandJobSubmit, &structs.JobSubmit{Job: testJob("next", 1), Numbered: true})
	if view, ok := restored.Snapshot().JobNumbered(5); !ok || view.Job.Name != "next" {
		t.Errorf("number 5 is of %v", view.Job)
	}
	applied(t, restored, structs.CommandJobStop, &structs.JobStop{JobID: "job-j0"})
	if live := restored.Snapshot().LiveCount(); live != 1 {
		t.Errorf("%d jobs are left, want the new one", live)
	}
}

// BenchmarkFollowers ends a job that so many wait for; one op is one end.
func BenchmarkFollowers(b *testing.B) {
	for _, count := range []int{0, 1, 10_000} {
		b.Run(fmt.Sprintf("followers=%d", count), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				store := waitingOn(b, count, false)
				b.StartTimer()
				applied(b, store, structs.CommandJobStop, &structs.JobStop{JobID: "job-j0"})
			}
		})
	}
}
