package state

import (
	"bytes"
	"os"
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestUpgradeFrom1 restores a state that version 1 stored: a random history
// with nodes, queued, running and ended jobs.
func TestUpgradeFrom1(t *testing.T) {
	old, err := os.ReadFile("testdata/state-v1.bin")
	if err != nil {
		t.Fatal(err)
	}
	store := New()
	if err := store.Restore(bytes.NewReader(old)); err != nil {
		t.Fatal(err)
	}
	snapshot := store.Snapshot()
	if found := CheckInvariants(snapshot); len(found) > 0 {
		t.Fatalf("%q", found)
	}
	queued := 0
	for _, subjob := range snapshot.Queue() {
		if subjob.Place != placeOf(subjob.CreateIndex) {
			t.Errorf("subjob %s/%d stands at %d", subjob.JobID, subjob.Index, subjob.Place)
		}
		queued++
	}
	if held := snapshot.ProjectUsage("default").QuotaUsage[structs.QuotaCPU]; queued == 0 || held == 0 {
		t.Errorf("%d subjobs wait, %d thousandths of cores are held", queued, held)
	}
	for view := range snapshot.Jobs() {
		if events, _ := snapshot.JobEvents(view.Job.ID); len(events) == 0 || events[0].ID != eventSubmitted || events[0].Time == 0 ||
			len(events) > 1 && events[1].ID == eventSubmitted {
			t.Errorf("the history of job %s begins with %+v", view.Job.ID, events[0])
		}
	}
	var again bytes.Buffer
	if err := snapshot.Persist(&again); err != nil {
		t.Fatal(err)
	}
	other := New()
	if err := other.Restore(bytes.NewReader(again.Bytes())); err != nil {
		t.Fatal(err)
	}
	if other.Snapshot().Hash() != snapshot.Hash() {
		t.Error("stored again it is another state")
	}
}
