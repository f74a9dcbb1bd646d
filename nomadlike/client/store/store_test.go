package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

func state(id string, phase alloc.Phase) alloc.State {
	return alloc.State{
		AllocID: id, JobID: "j", Attempt: 3, Phase: phase, Grace: time.Second,
		Handle: &driver.Handle{Version: 1, Driver: "exec", TaskID: alloc.TaskID(id), StartedAt: time.Unix(5, 6).UTC(), State: []byte{1, 2}},
		Cause:  structs.NewReason("client.superseded"),
		Report: &structs.AllocReport{AllocID: id, Attempt: 3, Status: structs.AllocRunning, StartedAt: 7},
	}
}

func sameStates(t *testing.T, want, got []alloc.State) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(alloc.State{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}

func TestStoreRemembers(t *testing.T) {
	dir := t.TempDir()
	s, states, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	sameStates(t, nil, states)
	a, b, c := state("a", alloc.PhaseRunning), state("b", alloc.PhaseEnded), state("c", alloc.PhaseStarting)
	if err := s.Apply([]Change{{"c", &c}, {"a", &a}, {"b", &b}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply([]Change{{AllocID: "b"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, states, err = Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sameStates(t, []alloc.State{a, c}, states)
}

func TestStoreIsForOneProcess(t *testing.T) {
	dir := t.TempDir()
	s, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, _, err = Open(dir)
	var e *structs.Error
	if !errors.As(err, &e) || e.ID != "client.store_locked" {
		t.Fatalf("second open: %v", err)
	}
}

// TestDamageIsSeen flips, cuts and overwrites parts of a store: every damage
// is either refused as such or does not change what is read.
func TestDamageIsSeen(t *testing.T) {
	dir := t.TempDir()
	s, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []alloc.State
	var changes []Change
	for i := range 40 {
		one := state(fmt.Sprintf("%04d", i), alloc.PhaseRunning)
		want = append(want, one)
		changes = append(changes, Change{one.AllocID, &one})
	}
	if err := s.Apply(changes); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(filepath.Join(dir, storeFile))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		bad := append([]byte(nil), sound...)
		switch rapid.SampledFrom([]string{"flip", "cut", "zero", "garbage"}).Draw(t, "damage") {
		case "flip":
			at := rapid.IntRange(0, len(bad)-1).Draw(t, "at")
			bad[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case "cut":
			bad = bad[:rapid.IntRange(1, len(bad)-1).Draw(t, "length")]
		case "zero":
			at := rapid.IntRange(0, len(bad)-1).Draw(t, "at")
			clear(bad[at:min(at+4096, len(bad))])
		case "garbage":
			at := rapid.IntRange(0, len(bad)-1).Draw(t, "at")
			copy(bad[at:], "this is not what was written here")
		}
		dir, err := os.MkdirTemp("", "store")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.WriteFile(filepath.Join(dir, storeFile), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, states, err := Open(dir)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("refused, but not as damaged: %v", err)
			}
			refused++
			return
		}
		defer s.Close()
		// bbolt keeps two meta pages: damage to one may bring the last but
		// one transaction back, which is a state that was true once.
		if len(states) != 0 && cmp.Diff(want, states, cmpopts.IgnoreUnexported(alloc.State{})) != "" {
			t.Fatal("read something that was never written")
		}
	})
	if refused == 0 {
		t.Fatal("no damage was seen")
	}
	t.Logf("%d damages refused", refused)
}

func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	for i := 1; i <= 2; i++ {
		if err := os.WriteFile(filepath.Join(dir, storeFile), []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(dir); !errors.Is(err, ErrDamaged) {
			t.Fatalf("open: %v", err)
		}
		aside, err := SetAside(dir)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(dir, fmt.Sprintf("%s.damaged-%d", storeFile, i)); aside != want {
			t.Fatalf("set aside as %s, want %s", aside, want)
		}
		s, states, err := Open(dir)
		if err != nil || len(states) != 0 {
			t.Fatalf("open anew: %v, %d states", err, len(states))
		}
		s.Close()
	}
}

func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	first, sameBoot, err := OpenIdentity(dir, "", "boot1")
	if err != nil {
		t.Fatal(err)
	}
	if len(first.NodeID) != 32 || first.Incarnation != 1 || sameBoot {
		t.Fatalf("first start: %+v, same boot %v", first, sameBoot)
	}
	second, sameBoot, err := OpenIdentity(dir, first.NodeID, "boot1")
	if err != nil || second.NodeID != first.NodeID || second.Incarnation != 2 || !sameBoot {
		t.Fatalf("second start: %+v, same boot %v, %v", second, sameBoot, err)
	}
	if third, sameBoot, err := OpenIdentity(dir, "", "boot2"); err != nil || third.Incarnation != 3 || sameBoot {
		t.Fatalf("start after a reboot: %+v, same boot %v, %v", third, sameBoot, err)
	}
	refusal := func(id string) string {
		_, _, err := OpenIdentity(dir, id, "boot2")
		var e *structs.Error
		if !errors.As(err, &e) {
			t.Fatalf("not refused in catalogue words: %v", err)
		}
		return e.ID
	}
	if got := refusal("ffff"); got != "client.identity_foreign" {
		t.Errorf("another id: %s", got)
	}
	for _, content := range []string{"", "{", `{"node_id":"../../etc"}`, "\x00\x00\x00\x00"} {
		if err := os.WriteFile(filepath.Join(dir, identityFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := refusal(""); got != "client.identity_damaged" {
			t.Errorf("content %q: %s", content, got)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	s, _, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for i := range 500 {
		one := state(fmt.Sprintf("%032d", i), alloc.PhaseEnded)
		if err := s.Apply([]Change{{one.AllocID, &one}}); err != nil {
			b.Fatal(err)
		}
	}
	one := state(fmt.Sprintf("%032d", 77), alloc.PhaseRunning)
	for b.Loop() {
		if err := s.Apply([]Change{{one.AllocID, &one}}); err != nil {
			b.Fatal(err)
		}
	}
}
