package state

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

func treeDigest(n int) string { return "sha256:" + fmt.Sprintf("%064x", n) }

// codeIn lists the code of a store, each with who made it and when it was last sent.
func codeIn(s *Store) (all []string) {
	for tree := range s.Snapshot().AllCode() {
		all = append(all, fmt.Sprintf("%s/%s of %d by %s, %s", tree.Project, tree.Digest[len(tree.Digest)-1:], tree.Bytes, tree.MadeBy, time.Duration(tree.SentAt)))
	}
	return all
}

// Code is the project's that sent it, stays while a job names it and for a day after
// it was last sent, and is restored as it was.
func TestCodeInTheState(t *testing.T) {
	p := &play{t: t, store: New(), now: 1}
	apply := func(kind structs.CommandKind, body any, want string) {
		t.Helper()
		result := p.store.Apply(p.store.Snapshot().Index()+1, encode(kind, p.now, body))
		got := ""
		if result.Err != nil {
			got = result.Err.ID
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", body, got, want)
		}
	}
	put := func(project string, n int, want string) {
		t.Helper()
		apply(structs.CommandCodePut, &structs.CodePut{Tree: structs.CodeTree{Project: project, Digest: treeDigest(n), Files: 1, Bytes: int64(n), MadeBy: "eve"}}, want)
	}
	submit := func(id, project string, n int, want string) {
		t.Helper()
		apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: &structs.Job{
			ID: id, Name: id, Project: project, User: "li", Nodes: 1, Resources: []structs.Resources{{CPU: 1}}, Workdir: &structs.Workdir{Source: ".", Tree: treeDigest(n)},
		}}, want)
	}
	forget := func(want ...string) {
		t.Helper()
		apply(structs.CommandCodeForget, &structs.CodeForget{Trees: []structs.CodeRef{
			{Project: "speech", Digest: treeDigest(1)}, {Project: "vision", Digest: treeDigest(1)}, {Project: "vision", Digest: treeDigest(2)}, {Project: "nobody", Digest: treeDigest(2)},
		}}, "")
		if got := codeIn(p.store); !slices.Equal(got, want) {
			t.Errorf("after %s: %q, want %q", time.Duration(p.now), got, want)
		}
	}
	submit("j0", "vision", 1, "state.code_unknown")
	put("vision", 1, "")
	put("vision", 2, "")
	put("", 3, "state.code_malformed")
	apply(structs.CommandCodePut, &structs.CodePut{Tree: structs.CodeTree{Project: "vision", Digest: "sha256:.."}}, "state.code_malformed")
	submit("j1", "speech", 1, "state.code_unknown") // another project's
	submit("j1", "vision", 1, "")
	p.now = structs.UnixNano(23 * time.Hour)
	forget("vision/1 of 1 by tester, 1ns", "vision/2 of 2 by tester, 1ns")
	put("vision", 2, "") // unchanged, and sent again
	p.now = structs.UnixNano(46 * time.Hour)
	forget("vision/1 of 1 by tester, 1ns", "vision/2 of 2 by tester, 23h0m0s")
	p.now = structs.UnixNano(48 * time.Hour)

	var stored bytes.Buffer
	if err := p.store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&stored); err != nil || again.Snapshot().Hash() != p.store.Snapshot().Hash() || !slices.Equal(codeIn(again), codeIn(p.store)) {
		t.Errorf("restored: %v, %q", err, codeIn(again))
	}
	named := 0
	for job := range again.Snapshot().JobsOfCode(structs.CodeRef{Project: "vision", Digest: treeDigest(1)}) {
		if named++; job.ID != "j1" {
			t.Errorf("job %s names it", job.ID)
		}
	}
	if named != 1 {
		t.Errorf("%d jobs name it", named)
	}

	forget("vision/1 of 1 by tester, 1ns")
	apply(structs.CommandJobStop, &structs.JobStop{JobID: "j1"}, "")
	forget("vision/1 of 1 by tester, 1ns") // a job that has ended may be run again
	apply(structs.CommandJobDelete, &structs.JobDelete{JobID: "j1"}, "")
	forget()

	apply(structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{Name: "vision"}}, "")
	put("vision", 4, "")
	apply(structs.CommandProjectArchive, &structs.ProjectArchive{Name: "vision", Archived: true}, "")
	put("vision", 5, "state.project_archived")
	apply(structs.CommandProjectDelete, &structs.ProjectDelete{Name: "vision"}, "")
	if got := codeIn(p.store); len(got) != 0 {
		t.Errorf("after the project: %q", got)
	}
	apply(structs.CommandCodeForget, &structs.CodeForget{Trees: make([]structs.CodeRef, structs.CodeForgetMax+1)}, "state.too_many")
}

func TestProjectsHaveBoundedCode(t *testing.T) {
	store := New()
	tx := store.begin()
	for n := range structs.CodeTreesPerProject - 1 {
		tree := &structs.CodeTree{Project: "vision", Digest: treeDigest(n)}
		tx.put(tableCode, nameKey(tree.Project, tree.Digest), tree)
	}
	tx.commit()
	for n, want := range []string{"", "state.code_full"} {
		got := ""
		command := encode(structs.CommandCodePut, 1, &structs.CodePut{Tree: structs.CodeTree{Project: "vision", Digest: treeDigest(1<<20 + n)}})
		if err := store.Apply(uint64(n+1), command).Err; err != nil {
			got = err.ID
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A project of the name of one that was deleted has none of its code, neither what is
// known nor what was being sent; and a name that nobody has holds nothing.
func TestCodeOfADeletedProject(t *testing.T) {
	p := &play{t: t, store: New(), now: 1}
	apply := func(kind structs.CommandKind, body any, want string) uint64 {
		t.Helper()
		index := p.store.Snapshot().Index() + 1
		got := ""
		if err := p.store.Apply(index, encode(kind, p.now, body)).Err; err != nil {
			got = err.ID
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", body, got, want)
		}
		return index
	}
	put := func(n int, since uint64, want string) {
		t.Helper()
		apply(structs.CommandCodePut, &structs.CodePut{Tree: structs.CodeTree{Project: "vision", Digest: treeDigest(n), Files: 1, Bytes: 1}, Since: since}, want)
	}
	begin := func() {
		apply(structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{Name: "vision"}}, "")
	}
	begin()
	put(1, 0, "")
	apply(structs.CommandProjectDelete, &structs.ProjectDelete{Name: "vision"}, "") // of an older server
	put(1, 0, "")
	begin()
	gone := apply(structs.CommandProjectDelete, &structs.ProjectDelete{Name: "vision", EndsCode: true}, "")
	snapshot := p.store.Snapshot()
	if len(codeIn(p.store)) > 0 || snapshot.CodeSince("vision") != gone || snapshot.CodeSince("speech") != 0 {
		t.Errorf("since %d, want %d: %q", snapshot.CodeSince("vision"), gone, codeIn(p.store))
	}
	if snapshot.ProjectUsage("vision") != nil || len(slices.Collect(snapshot.ProjectUsages())) > 0 {
		t.Error("a name that nobody has holds something")
	}
	apply(structs.CommandProjectArchive, &structs.ProjectArchive{Name: "vision", Archived: true}, "state.project_unknown")
	put(2, 0, "state.code_project_gone") // it was taken before
	begin()
	put(2, 0, "state.code_project_gone")
	put(2, gone-1, "state.code_project_gone")
	put(2, gone, "")
	var stored bytes.Buffer
	if err := p.store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&stored); err != nil || again.Snapshot().CodeSince("vision") != gone {
		t.Errorf("restored: since %d, %v", again.Snapshot().CodeSince("vision"), err)
	}
}
