package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

// TestLiveOf: what is counted by user and project is what there is, whatever
// happens, also on a server that has read the state anew.
func TestLiveOf(t *testing.T) {
	counted := func(s *Store) [2]map[string]live {
		s.live.mu.Lock()
		defer s.live.mu.Unlock()
		return [2]map[string]live{s.live.mu.byUser, s.live.mu.byProject}
	}
	same := cmp.AllowUnexported(live{})
	most := 0
	for seed := range uint64(6) {
		w := &generator{chance: seeded{rand.New(rand.NewPCG(seed, 7))}, now: 1, calm: seed%2 == 1}
		s := New()
		for i := range 300 {
			s.ApplyBatch([]Entry{{Index: uint64(i + 1), Command: w.next(s.Snapshot())}})
		}
		var anew liveCounts
		anew.count(s.Snapshot())
		if diff := cmp.Diff([2]map[string]live{anew.mu.byUser, anew.mu.byProject}, counted(s), same); diff != "" {
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
		if diff := cmp.Diff(counted(s), counted(again), same); diff != "" {
			t.Errorf("seed %d, restored: %s", seed, diff)
		}
		if all := anew.mu.all; all != s.live.mu.all || all != again.live.mu.all {
			t.Errorf("seed %d: all are %+v, %+v, %+v", seed, all, s.live.mu.all, again.live.mu.all)
		}
		user, _ := s.LiveOf("ann", "")
		most = max(most, user)
	}
	if most == 0 {
		t.Error("no history has a live job of ann")
	}
}

// TestLiveBytes: jobs that are large together are refused where the entry is
// applied, by user, by project and in all, also within one batch; what ends
// makes room.
func TestLiveBytes(t *testing.T) {
	large := func(name, user, project string) *structs.Job {
		job := testJob(name, 1)
		job.User, job.Project, job.Description = user, project, strings.Repeat("x", 10_000)
		return job
	}
	size := jobBytes(large("aa", "ann", "pa"))
	most := 8*size + 4 // two of a user, four of a project, eight in all
	s, index := New(), uint64(0)
	entry := func(kind structs.CommandKind, body any) Entry {
		index++
		return Entry{index, encode(kind, structs.UnixNano(index), body)}
	}
	submit := func(name, user, project string) Entry {
		return entry(structs.CommandJobSubmit, &structs.JobSubmit{Job: large(name, user, project), BytesMax: most})
	}
	refused := func(results []structs.ApplyResult) (ids []string) {
		for _, result := range results {
			if result.Err != nil {
				ids = append(ids, result.Err.ID)
			} else {
				ids = append(ids, "")
			}
		}
		return ids
	}
	check := func(what string, results []structs.ApplyResult, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, refused(results)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("a user", s.ApplyBatch([]Entry{submit("aa", "ann", "pa"), submit("ab", "ann", "pb"), submit("ac", "ann", "pc")}), "", "", "state.user_bytes")
	check("a project", s.ApplyBatch([]Entry{submit("ba", "bob", "pa"), submit("bb", "bob", "pa"), submit("ca", "cat", "pa"), submit("cb", "cat", "pa")}), "", "", "", "state.project_bytes")
	check("all", s.ApplyBatch([]Entry{submit("da", "dan", "pd"), submit("db", "dan", "pd"), submit("ea", "eve", "pe"), submit("eb", "eve", "pe")}), "", "", "", "state.all_bytes")
	check("no bound", s.ApplyBatch([]Entry{entry(structs.CommandJobSubmit, &structs.JobSubmit{Job: large("zz", "ann", "pa")})}), "")
	check("room again", s.ApplyBatch([]Entry{
		entry(structs.CommandJobStop, &structs.JobStop{JobID: "job-aa"}), entry(structs.CommandJobStop, &structs.JobStop{JobID: "job-zz"}),
		submit("ad", "ann", "pf"), submit("ae", "ann", "pf"),
	}), "", "", "", "state.user_bytes")
}

func TestMostOf(t *testing.T) {
	counts := map[string]int{"b": 2, "a": 2, "most": 30}
	if got := mostOf(counts); got != "most 30, a 2, b 2" {
		t.Errorf("%q", got)
	}
	for i := range 20 {
		counts[fmt.Sprintf("p%d", i)] = 1
	}
	if got := mostOf(counts); strings.Count(got, ",") != forgottenNamed || !strings.HasSuffix(got, ", …") {
		t.Errorf("%q", got)
	}
}
