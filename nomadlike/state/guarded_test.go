package state

import (
	"bytes"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

func guarded(guard structs.Guard, kind structs.CommandKind, now structs.UnixNano, body any) []byte {
	inner, err := wire.Marshal(body)
	if err != nil {
		panic(err)
	}
	return encode(structs.CommandGuarded, now, &structs.Guarded{Guard: guard, Kind: kind, Body: inner})
}

// What a decision rested on is compared where its entry is applied: whatever
// changed in between refuses the entry, and leaves the state as it was.
func TestGuardRefusesWhatChanged(t *testing.T) {
	store := New()
	index := uint64(0)
	apply := func(command []byte) *structs.Error {
		index++
		return store.Apply(index, command).Err
	}
	must := func(kind structs.CommandKind, body any) uint64 {
		t.Helper()
		if err := apply(encode(kind, 1, body)); err != nil {
			t.Fatal(err)
		}
		return index
	}
	token := structs.Token{ID: "t1", Hash: make([]byte, 32), Role: "project-admin", Project: "one", User: "pat", ExpiresAt: 100}
	must(structs.CommandTokenPut, &structs.TokenPut{Token: token})
	project := must(structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{Name: "one"}})
	pool := must(structs.CommandPoolPut, &structs.PoolPut{Pool: structs.Pool{Name: "a"}})
	job := must(structs.CommandJobSubmit, &structs.JobSubmit{Job: testJob("j", 1)})
	rest := func(kind structs.RestKind, id string, version uint64) structs.Guard {
		return structs.Guard{Rests: []structs.Rest{{Kind: kind, ID: id, Index: version}}}
	}
	for _, test := range []struct {
		name  string
		guard structs.Guard
		now   structs.UnixNano
		want  string
	}{
		{"nothing", structs.Guard{}, 1, ""},
		{"a valid token", structs.Guard{TokenID: "t1"}, 99, ""},
		{"a token that is over", structs.Guard{TokenID: "t1"}, 100, "state.token_over"},
		{"a token that is gone", structs.Guard{TokenID: "t2"}, 1, "state.token_over"},
		{"the project as it is", rest(structs.RestProject, "one", project), 1, ""},
		{"the project as it was", rest(structs.RestProject, "one", project-1), 1, structs.RestChanged},
		{"no project where there is one", rest(structs.RestProject, "one", 0), 1, structs.RestChanged},
		{"no project", rest(structs.RestProject, "two", 0), 1, ""},
		{"the pool as it is", rest(structs.RestPool, "a", pool), 1, ""},
		{"the pool as it was", rest(structs.RestPool, "a", pool+1), 1, structs.RestChanged},
		{"the job", rest(structs.RestJob, "job-j", job), 1, ""},
		{"a job that is gone", rest(structs.RestJob, "job-k", job), 1, structs.RestChanged},
		{"another's token", rest(structs.RestToken, "t1", 1), 1, ""},
		{"another's token, revoked", rest(structs.RestToken, "t3", 1), 1, structs.RestChanged},
		{"a kind that nobody knows", rest("weather", "one", 0), 1, structs.RestChanged},
	} {
		before := len(store.Snapshot().meta().ring)
		err := apply(guarded(test.guard, structs.CommandPoolPut, test.now, &structs.PoolPut{Pool: structs.Pool{Name: "b"}}))
		if got := idOf(err); got != test.want {
			t.Errorf("%s: refused with %q, want %q", test.name, got, test.want)
		}
		if told := len(store.Snapshot().meta().ring) - before; (told > 0) != (test.want == "") {
			t.Errorf("%s: %d events", test.name, told)
		}
	}
	// In one batch the guard sees what the entry before it changed.
	results := store.ApplyBatch([]Entry{
		{index + 1, encode(structs.CommandProjectPut, 1, &structs.ProjectPut{Project: structs.Project{Name: "one", Description: "cut"}})},
		{index + 2, guarded(rest(structs.RestProject, "one", project), structs.CommandProjectPut, 1, &structs.ProjectPut{Project: structs.Project{Name: "one"}})},
	})
	if results[0].Err != nil || idOf(results[1].Err) != structs.RestChanged || store.Snapshot().Project("one").Description != "cut" {
		t.Errorf("the cut was undone: %v %v", results[0].Err, results[1].Err)
	}
	if nested := guarded(structs.Guard{}, structs.CommandGuarded, 1, &structs.Guarded{Kind: structs.CommandPoolPut}); Check(nested) == nil {
		t.Error("a guard of a guard passes")
	}
	if unknown := guarded(structs.Guard{}, 9999, 1, &structs.PoolPut{}); Check(unknown) == nil {
		t.Error("a guarded command of an unknown kind passes")
	}
}

// A command that counts once changes nothing the second time, whatever came in
// between and also after a restore; one that was refused may be tried again.
func TestCommandCountsOnce(t *testing.T) {
	store := New()
	index := uint64(0)
	once := func(name string, guard structs.Guard, description string) *structs.Error {
		inner, err := wire.Marshal(&structs.ProjectPut{Project: structs.Project{Name: "one", Description: description}})
		if err != nil {
			t.Fatal(err)
		}
		index++
		return store.Apply(index, encode(structs.CommandGuarded, 1, &structs.Guarded{Guard: guard, Kind: structs.CommandProjectPut, Body: inner, Once: name})).Err
	}
	says := func(want string) {
		t.Helper()
		if got := store.Snapshot().Project("one").Description; got != want {
			t.Errorf("the project says %q, want %q", got, want)
		}
	}
	for _, step := range []struct{ name, description, want string }{{"a", "older", "older"}, {"b", "newer", "newer"}, {"a", "older", "newer"}, {"b", "newer", "newer"}, {"", "any", "any"}, {"", "any again", "any again"}} {
		if err := once(step.name, structs.Guard{}, step.description); err != nil {
			t.Fatal(err)
		}
		says(step.want)
	}
	stale := structs.Guard{Rests: []structs.Rest{{Kind: structs.RestProject, ID: "one", Index: 1}}}
	if err := once("c", stale, "refused"); idOf(err) != structs.RestChanged {
		t.Fatal(err)
	}
	if err := once("c", structs.Guard{}, "tried again"); err != nil {
		t.Fatal(err)
	}
	says("tried again")
	var archive bytes.Buffer
	if err := store.Snapshot().Persist(&archive); err != nil {
		t.Fatal(err)
	}
	store = New()
	if err := store.Restore(&archive); err != nil {
		t.Fatal(err)
	}
	if err := once("a", structs.Guard{}, "older"); err != nil {
		t.Fatal(err)
	}
	says("tried again")
	if problems := CheckInvariants(store.Snapshot()); len(problems) > 0 {
		t.Error(problems)
	}
	long := encode(structs.CommandGuarded, 1, &structs.Guarded{Kind: structs.CommandPoolPut, Once: strings.Repeat("x", structs.OnceMax+1)})
	if Check(long) == nil {
		t.Error("a name without bound passes")
	}
}

func idOf(err *structs.Error) string {
	if err == nil {
		return ""
	}
	return err.ID
}
