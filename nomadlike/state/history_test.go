package state

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// drawn draws choices from rapid.
type drawn struct{ t *rapid.T }

func (d drawn) Intn(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "choice") }

// TestHistories runs random histories and checks, after every command, that
// the state is sound and that a refusal changed nothing; and at the end, that
// batches, and a snapshot with a tail, lead to the same state.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &generator{chance: drawn{t}, now: 1, calm: rapid.Bool().Draw(t, "calm")}
		store := New()
		var log []Entry
		stored := &bytes.Buffer{}
		used, board := &chargeTwin{}, &boardTwin{}
		rows := &rowTwin{}
		store.Keep(rows)
		cut := rapid.IntRange(0, 60).Draw(t, "cut")
		for i := range 60 {
			if i == cut {
				if err := store.Snapshot().Persist(stored); err != nil {
					t.Fatal(err)
				}
			}
			before := store.Snapshot()
			entry := Entry{Index: uint64(i + 5), Command: w.next(before)}
			log = append(log, entry)
			result := store.Apply(entry.Index, entry.Command)
			after := store.Snapshot()
			used.step(before, after, w.now)
			if found := stepProblems(before, after); len(found) > 0 {
				t.Fatalf("command %d: %q", i, found)
			}
			if rapid.IntRange(0, 4).Draw(t, "sync") == 0 {
				board.sync(after)
				if found := board.compare(after); found != "" {
					t.Fatalf("after command %d, changes do not add up: %s", i, found)
				}
			}
			if found := CheckInvariants(after); len(found) > 0 {
				t.Fatalf("after command %d: %q", i, found)
			}
			if result.Err != nil {
				if result.Err.Code == "" || !messages.Has(messages.English, result.Err.ID) {
					t.Fatalf("refusal %v is not in the catalogue", result.Err)
				}
				if a, b := tables(before), tables(after); a != b {
					t.Fatalf("command %d was refused (%v) and changed something", i, result.Err)
				}
			}
		}
		if found := used.compare(store.Snapshot()); found != "" {
			t.Fatal(found)
		}
		if found := rows.compare(used, store.Snapshot()); found != "" {
			t.Fatal(found)
		}
		if board.fulls > 1 {
			t.Fatalf("everything was listed %d times", board.fulls)
		}
		checkSame(t, store, log, cut, stored.Bytes())
	})
}

// checkSame leads other stores to the same place by other roads.
func checkSame(t *rapid.T, store *Store, log []Entry, cut int, stored []byte) {
	want := store.Snapshot().Hash()
	batched := New()
	for rest := log; len(rest) > 0; {
		n := min(rapid.IntRange(1, 20).Draw(t, "batch"), len(rest))
		batched.ApplyBatch(rest[:n])
		rest = rest[n:]
	}
	if got := batched.Snapshot().Hash(); got != want {
		t.Fatalf("batches lead to %s, single commands to %s", got, want)
	}
	if cut >= len(log) {
		return
	}
	restored := New()
	restored.Apply(1, encode(structs.CommandClusterInit, 1, &structs.ClusterInit{Cluster: structs.Cluster{ID: "other"}}))
	if err := restored.Restore(bytes.NewReader(stored)); err != nil {
		t.Fatal(err)
	}
	restored.ApplyBatch(log[cut:])
	if got := restored.Snapshot().Hash(); got != want {
		t.Fatalf("snapshot and tail lead to %s, full replay to %s", got, want)
	}
	if found := CheckInvariants(restored.Snapshot()); len(found) > 0 {
		t.Fatalf("after restore: %q", found)
	}
}

// fromBytes draws choices from a fuzzer's bytes, then zeros.
type fromBytes struct{ rest *[]byte }

func (f fromBytes) Intn(n int) int {
	value := 0
	for size := n - 1; size > 0 && len(*f.rest) > 0; size >>= 8 {
		value = value<<8 | int((*f.rest)[0])
		*f.rest = (*f.rest)[1:]
	}
	return value % n
}

// FuzzHistories is TestHistories without the comparison at the end.
func FuzzHistories(f *testing.F) {
	f.Add([]byte("a first history of commands, long enough to place and to lose a gang or two, and then some more"))
	f.Add(bytes.Repeat([]byte{9, 0, 1, 2, 3, 4, 5, 6}, 40))
	f.Fuzz(func(t *testing.T, data []byte) {
		rest := data
		w := &generator{chance: fromBytes{&rest}, now: 1}
		store := New()
		for i := 0; len(rest) > 0 && i < 400; i++ {
			store.Apply(uint64(i+1), w.next(store.Snapshot()))
			if found := CheckInvariants(store.Snapshot()); len(found) > 0 {
				t.Fatalf("after command %d: %q", i, found)
			}
		}
	})
}

// FuzzApply feeds bytes of any kind: they are refused, or stop the server
// because their kind is unknown, and nothing else.
func FuzzApply(f *testing.F) {
	w := &generator{chance: fromBytes{&[]byte{}}, now: 1}
	s := New().Snapshot()
	for _, seed := range [][]byte{
		{},
		{0xa0},
		w.submit(s), w.plan(s), w.register(s), w.nodeStatus(s), w.tokenCommand(),
		encode(99, 1, &structs.JobDelete{}),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer func() {
			problem := recover()
			if err, ok := problem.(error); problem != nil && !(ok && isUnknown(err)) {
				t.Fatalf("panic: %v", problem)
			}
		}()
		store := New()
		store.Apply(1, encode(structs.CommandNodeRegister, 1, &structs.NodeRegister{Node: testNode(0)}))
		store.Apply(2, encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: testJob("a", 1)}))
		refusal := Check(data)
		store.Apply(3, data)
		if refusal == nil {
			store.Apply(4, data)
		}
		if found := CheckInvariants(store.Snapshot()); len(found) > 0 {
			t.Fatalf("%q", found)
		}
		again := New()
		var stored bytes.Buffer
		if err := store.Snapshot().Persist(&stored); err != nil {
			t.Fatal(err)
		}
		if err := again.Restore(&stored); err != nil {
			t.Fatalf("restore what was persisted: %v", err)
		}
	})
}

func isUnknown(err error) bool {
	var unknown *UnknownCommandError
	return errors.As(err, &unknown)
}

// FuzzRestore feeds bytes of any kind to Restore: the store stays as it was,
// or holds what they say.
func FuzzRestore(f *testing.F) {
	store := New()
	store.Apply(1, encode(structs.CommandNodeRegister, 1, &structs.NodeRegister{Node: testNode(0)}))
	store.Apply(2, encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: testJob("a", 1)}))
	var stored bytes.Buffer
	if err := store.Snapshot().Persist(&stored); err != nil {
		f.Fatal(err)
	}
	f.Add(stored.Bytes())
	f.Add(stored.Bytes()[:stored.Len()/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		store := New()
		before := store.Snapshot().Hash()
		if err := store.Restore(bytes.NewReader(data)); err != nil {
			if !errors.Is(err, ErrBadState) {
				t.Fatalf("unexpected error: %v", err)
			}
			if store.Snapshot().Hash() != before {
				t.Fatal("a refused state changed the store")
			}
		}
	})
}

// seeded draws choices from a seed.
type seeded struct{ *rand.Rand }

func (s seeded) Intn(n int) int { return s.IntN(n) }

// TestHistoriesWithMaintenance runs histories in which nodes are closed now and
// then: no gang starts that could run into a window.
func TestHistoriesWithMaintenance(t *testing.T) {
	begun, refused := 0, 0
	for seed := range uint64(12) {
		w := &generator{chance: seeded{rand.New(rand.NewPCG(seed, 7))}, now: 1, closes: true}
		store := New()
		for i := range 400 {
			before := store.Snapshot()
			result := store.Apply(uint64(i+1), w.next(before))
			after := store.Snapshot()
			if found := append(CheckInvariants(after), startedIntoMaintenance(before, after, w.now)...); len(found) > 0 {
				t.Fatalf("seed %d, command %d: %q", seed, i, found)
			}
			if result.Plan != nil {
				for _, reason := range result.Plan.Refused {
					if reason.ID == "scheduler.refused_maintenance" {
						refused++
					}
				}
			}
			for _, window := range after.Maintenance() {
				if window.Begun {
					begun++
				}
			}
		}
	}
	if begun == 0 || refused == 0 {
		t.Errorf("%d states had a window that has begun, %d gangs were refused", begun, refused)
	}
}

// startedIntoMaintenance lists the attempts that a command placed at now on nodes
// whose windows they could run into.
func startedIntoMaintenance(before, after *Snapshot, now structs.UnixNano) (found []string) {
	for attempt := range after.LiveAttempts() {
		if before.Attempt(attempt.JobID, attempt.Subjob, attempt.Number) != nil {
			continue
		}
		view, _ := after.Job(attempt.JobID)
		for alloc := range after.Gang(attempt.JobID, attempt.Subjob, attempt.Number) {
			node := after.Node(alloc.NodeID)
			if w := node.MaintenanceAgainst(view.Job, now); w != nil {
				found = append(found, fmt.Sprintf("attempt %s/%d/%d starts at %d on %s, which is closed from %d to %d",
					attempt.JobID, attempt.Subjob, attempt.Number, now, node.Name, w.Start, w.End))
			}
		}
	}
	return found
}

// TestLongHistories runs histories that are long enough for gangs to pass
// their barrier, to fail, to be lost and to come back, and makes sure that all
// of that was seen.
func TestLongHistories(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(40) {
		w := &generator{chance: seeded{rand.New(rand.NewPCG(seed, 0))}, now: 1, calm: seed%2 == 1}
		store := New()
		for i := range 600 {
			entry := Entry{Index: uint64(i + 1), Command: w.next(store.Snapshot())}
			store.ApplyBatch([]Entry{entry})
			if i%10 == 0 || i > 590 {
				if found := CheckInvariants(store.Snapshot()); len(found) > 0 {
					t.Fatalf("seed %d, command %d: %q", seed, i, found)
				}
			}
		}
		followAll(t, store, seen)
	}
	for _, id := range []string{
		"event.attempt.released", "event.job.running", "event.job.requeued", "event.job.succeeded", "event.job.failed",
		"event.job.stopped", "event.job.expired", "event.job.preempts", "event.job.claims", "event.job.resizes",
		"event.job.claim_dropped_node", "event.attempt.preempted", "event.job.deleted", "event.alloc.lost", "event.node.returned",
		"event.job.paused", "event.job.continued", "event.job.pause_failed", "event.job.throttled", "event.job.finish_requested",
	} {
		if seen[id] == 0 {
			t.Errorf("no history has %s", id)
		}
	}
}

// followAll reads all events of a store, makes sure that they are in order,
// complete and in the catalogue, and counts them.
func followAll(t *testing.T, store *Store, seen map[string]int) {
	t.Helper()
	follower := store.Follow(structs.Cursor{})
	last := &structs.Event{}
	for end := store.Snapshot().Index(); ; {
		events, index, err := follower.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			if !earlier(last, event) || event.Index == last.Index && event.Seq != last.Seq+1 || event.Index != last.Index && event.Seq != 0 {
				t.Fatalf("event %d.%d follows %d.%d", event.Index, event.Seq, last.Index, last.Seq)
			}
			for _, language := range []messages.Language{messages.English, messages.Chinese} {
				if text := messages.Text(language, event.ID, event.Params); !messages.Has(language, event.ID) || strings.Contains(text, "{") {
					t.Fatalf("event %s renders as %q", event.ID, text)
				}
			}
			last = event
			seen[event.ID]++
		}
		if index >= end {
			return
		}
	}
}
