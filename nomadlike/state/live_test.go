package state

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLiveOf: what is counted by user and project is what there is, whatever
// happens, also on a server that has read the state anew.
func TestLiveOf(t *testing.T) {
	counted := func(s *Store) [2]map[string]int {
		s.live.mu.Lock()
		defer s.live.mu.Unlock()
		return [2]map[string]int{s.live.mu.byUser, s.live.mu.byProject}
	}
	most := 0
	for seed := range uint64(6) {
		w := &world{chance: seeded{rand.New(rand.NewPCG(seed, 7))}, now: 1, calm: seed%2 == 1}
		s := New()
		for i := range 300 {
			s.ApplyBatch([]Entry{{Index: uint64(i + 1), Command: w.next(s.Snapshot())}})
		}
		var anew liveCounts
		anew.count(s.Snapshot())
		if diff := cmp.Diff([2]map[string]int{anew.mu.byUser, anew.mu.byProject}, counted(s)); diff != "" {
			t.Errorf("seed %d: (-there are +counted):\n%s", seed, diff)
		}
		var stored bytes.Buffer
		if err := s.Snapshot().Persist(&stored); err != nil {
			t.Fatal(err)
		}
		again := New()
		if err := again.Restore(&stored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(counted(s), counted(again)); diff != "" {
			t.Errorf("seed %d, restored: %s", seed, diff)
		}
		user, _ := s.LiveOf("ann", "")
		most = max(most, user)
	}
	if most == 0 {
		t.Error("no history has a live job of ann")
	}
}
