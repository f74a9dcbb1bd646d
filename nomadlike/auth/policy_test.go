package auth

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// callers are one principal of each sort, in the order of the golden's
// columns.
func callers() []struct {
	name string
	p    Principal
} {
	user := func(role UserRole) Principal {
		p := Principal{Kind: KindUser, ID: "li", Role: role, Project: "vision"}
		if role.clusterWide() {
			p.Project = ""
		}
		return p
	}
	return []struct {
		name string
		p    Principal
	}{
		{"anon", Principal{}},
		{"viewer", user(RoleViewer)},
		{"user", user(RoleUser)},
		{"padmin", user(RoleProjectAdmin)},
		{"operator", user(RoleOperator)},
		{"admin", user(RoleAdmin)},
		{"both", Principal{Kind: KindUser, ID: "li", Role: RoleUser, Project: "vision", Cluster: RoleOperator}},
		{"service", Principal{Kind: KindUser, ID: "li", Role: RoleProjectAdmin, Project: "vision", Service: true}},
		{"node", Principal{Kind: KindNode, ID: "n1"}},
		{"server", Principal{Kind: KindServer, ID: "s1"}},
		{"alloc", Principal{Kind: KindAlloc, ID: "j1", Project: "vision", Attempt: 2}},
		{"guest", Principal{Kind: KindGuest, ID: "j1", Project: "vision"}},
		{"board", Principal{Kind: KindBoard, ID: "t1"}},
	}
}

// situations are objects of one kind in every relation, in the order of the
// letters of a golden cell.
func situations(kind ObjectKind) []Object {
	if !kind.inProject() {
		return []Object{
			{Kind: kind, ID: "x", Owner: "li", Node: "n1"},
			{Kind: kind, ID: "x", Owner: "wang", Node: "n2"},
		}
	}
	return []Object{
		{Kind: kind, ID: "j1", Project: "vision", Owner: "li", Access: AccessNone, Node: "n1", Attempt: 2},
		{Kind: kind, ID: "j2", Project: "vision", Owner: "wang", Access: AccessReadWrite, Node: "n2", Attempt: 2},
		{Kind: kind, ID: "j3", Project: "vision", Owner: "wang", Access: AccessReadOnly, Node: "n2", Attempt: 2},
		{Kind: kind, ID: "j4", Project: "vision", Owner: "wang", Access: AccessNone, Node: "n2", Attempt: 2},
		{Kind: kind, ID: "j5", Project: "speech", Owner: "li", Access: AccessReadWrite, Node: "n2", Attempt: 2},
		{Kind: kind, ID: "j1", Project: "vision", Owner: "wang", Access: AccessNone, Node: "n2", Attempt: 3},
		{Kind: kind},
	}
}

func mark(d Decision) byte {
	switch {
	case d.Allow:
		return '+'
	case d.Reason == ReasonLogin:
		return '?'
	case d.Hide:
		return '.'
	}
	return '-'
}

func TestMatrix(t *testing.T) {
	var out strings.Builder
	out.WriteString(`Who may do what. A cell has one mark per situation of the object:

  inside projects    1 own (a node's, an allocation's too)   2 shared read-write   3 shared read-only   4 not shared
                     5 in another project   6 the allocation's own job in another attempt   7 collection over all projects
  outside projects   1 own   2 not own

  + allowed   - forbidden (403)   . hidden (404)   ? log in first (401)

`)
	row := func(first, second string, cells []string) {
		line := fmt.Sprintf("%-11s%-18s", first, second)
		for _, cell := range cells {
			line += fmt.Sprintf("%-9s", cell)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	var names []string
	for _, c := range callers() {
		names = append(names, c.name)
	}
	row("kind", "verb", names)
	var last ObjectKind
	for _, r := range rules {
		if r.kind != last {
			out.WriteString("\n")
		}
		last = r.kind
		var cells []string
		for _, c := range callers() {
			var cell []byte
			for _, object := range situations(r.kind) {
				cell = append(cell, mark(Allowed(c.p, r.verb, object)))
			}
			cells = append(cells, string(cell))
		}
		row(string(r.kind), string(r.verb), cells)
	}
	golden.Assert(t, "testdata/matrix.golden", out.String())
}

// TestSharingMatrix is the exact table of the reference guide: what another
// user of the project may do by the access level of a job.
func TestSharingMatrix(t *testing.T) {
	other := Principal{Kind: KindUser, ID: "wang", Role: RoleUser, Project: "vision"}
	table := []struct {
		verb                       Verb
		readWrite, readOnly, none_ bool
	}{
		{VerbRead, true, true, false},
		{VerbClone, true, true, false},
		{VerbDevEnv, true, true, false},
		{VerbTensorBoard, true, true, false},
		{VerbTimeLimit, true, false, false},
		{VerbPriority, true, false, false},
		{VerbStop, true, false, false},
		{VerbDelete, true, false, false},
		{VerbEnv, true, false, false}, // of our own: what is read may be shared without what is secret
	}
	for _, row := range table {
		for access, want := range map[Access]bool{
			AccessReadWrite: row.readWrite, AccessReadOnly: row.readOnly, AccessNone: row.none_, "": row.none_, "READ-WRITE": row.none_,
		} {
			got := Allowed(other, row.verb, Object{Kind: ObjectJob, Project: "vision", Owner: "li", Access: access})
			if got.Allow != want {
				t.Errorf("%s with access %q: allowed %v, want %v", row.verb, access, got.Allow, want)
			}
		}
	}
}

func TestRefusesMalformedPrincipals(t *testing.T) {
	job := Object{Kind: ObjectJob, ID: "j1", Project: "vision", Owner: "li", Access: AccessReadWrite, Node: "n1"}
	cases := map[string]Principal{
		"user without role":             {Kind: KindUser, ID: "li", Project: "vision"},
		"user with unknown role":        {Kind: KindUser, ID: "li", Role: "root", Project: "vision"},
		"user without project":          {Kind: KindUser, ID: "li", Role: RoleUser},
		"admin bound to a project":      {Kind: KindUser, ID: "li", Role: RoleAdmin, Project: "vision"},
		"user without id":               {Kind: KindUser, Role: RoleAdmin},
		"node with a role":              {Kind: KindNode, ID: "n1", Role: RoleAdmin},
		"node without id":               {Kind: KindNode},
		"anonymous with a role":         {Role: RoleAdmin},
		"allocation without attempt":    {Kind: KindAlloc, ID: "j1", Project: "vision"},
		"allocation without project":    {Kind: KindAlloc, ID: "j1", Attempt: 1},
		"guest without a job":           {Kind: KindGuest, Project: "vision"},
		"guest without a project":       {Kind: KindGuest, ID: "j1"},
		"guest with a role":             {Kind: KindGuest, ID: "j1", Project: "vision", Role: RoleAdmin},
		"board of a project":            {Kind: KindBoard, ID: "t1", Project: "vision"},
		"service account of two roles":  {Kind: KindUser, ID: "service+a+b", Role: RoleUser, Project: "vision", Cluster: RoleOperator, Service: true},
		"a node that is one":            {Kind: KindNode, ID: "n1", Service: true},
		"a kind that nobody introduced": {Kind: "god", ID: "x"},
	}
	for name, p := range cases {
		t.Run(name, func(t *testing.T) {
			for _, r := range rules {
				job.Kind = r.kind
				if d := Allowed(p, r.verb, job); d.Allow {
					t.Errorf("may %s a %s", r.verb, r.kind)
				}
			}
		})
	}
}

// A service account makes no other way in and lets nobody in, whatever role it has; all
// else it may as a person of the role.
func TestServiceAccountsLetNobodyIn(t *testing.T) {
	for _, role := range []UserRole{RoleViewer, RoleUser, RoleProjectAdmin, RoleOperator, RoleAdmin} {
		person := Principal{Kind: KindUser, ID: "li", Role: role, Project: "vision"}
		if role.clusterWide() {
			person.Project = ""
		}
		program := person
		program.Service = true
		for _, r := range rules {
			changes := r.verb != VerbRead && r.verb != VerbList
			in := r.verb == VerbShare || r.verb == VerbMembers || r.kind == ObjectProject && r.verb == VerbWrite ||
				(r.kind == ObjectUser || r.kind == ObjectService || r.kind == ObjectJoinToken) && changes ||
				r.kind == ObjectToken && changes && r.verb != VerbDelete && r.verb != VerbSelf
			for _, object := range situations(r.kind) {
				want := Allowed(person, r.verb, object).Allow && !in
				if got := Allowed(program, r.verb, object); got.Allow != want {
					t.Errorf("service account as %s: %s %s %+v: %+v, want %v", role, r.verb, r.kind, object, got, want)
				}
			}
		}
	}
}

func TestUnknownVerbsAndKindsAreRefusedToAdmins(t *testing.T) {
	admin := Principal{Kind: KindUser, ID: "root", Role: RoleAdmin}
	for _, object := range []Object{{Kind: ObjectJob, Project: "vision"}, {Kind: "planet"}, {}} {
		if d := Allowed(admin, "juggle", object); d.Allow || d.Reason != ReasonUnknown {
			t.Errorf("juggle %q: %+v", object.Kind, d)
		}
	}
	if d := Allowed(admin, VerbRead, Object{Kind: "planet"}); d.Allow {
		t.Error("may read a planet")
	}
}

func TestIDsMatchWhole(t *testing.T) {
	alloc := Principal{Kind: KindAlloc, ID: "train", Project: "vision", Attempt: 1}
	for _, id := range []string{"train-prod", "trai", "", "TRAIN"} {
		object := Object{Kind: ObjectJob, ID: id, Project: "vision", Attempt: 1}
		if d := Allowed(alloc, VerbRead, object); d.Allow || !d.Hide {
			t.Errorf("allocation of train reads job %q: %+v", id, d)
		}
	}
}

// TestSharesShowOneThing: of everything that can be done, a link of a job
// reads that job, and a link of the wall shows that.
func TestSharesShowOneThing(t *testing.T) {
	for _, r := range rules {
		if r.kind == ObjectCluster || r.verb == VerbSelf {
			continue // is the agent alive, signing in, and which link it is
		}
		for _, object := range situations(r.kind) {
			guest := Allowed(Principal{Kind: KindGuest, ID: "j1", Project: "vision"}, r.verb, object).Allow
			if want := r.kind == ObjectJob && r.verb == VerbRead && object.ID == "j1"; guest != want {
				t.Errorf("guest may %s %+v: %v", r.verb, object, guest)
			}
			board := Allowed(Principal{Kind: KindBoard, ID: "t1"}, r.verb, object).Allow
			if want := r.kind == ObjectNode && r.verb == VerbWall; board != want {
				t.Errorf("board may %s %+v: %v", r.verb, object, board)
			}
		}
	}
}

func TestRulesAreUnique(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, r := range rules {
		key := [2]string{string(r.kind), string(r.verb)}
		if seen[key] {
			t.Errorf("two rules for %v", key)
		}
		seen[key] = true
	}
}

// TestNeverAcrossProjects draws random principals of projects and objects of
// other projects: nothing is allowed, and all refusals read "not found".
func TestNeverAcrossProjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Principal{
			Kind: KindUser, ID: rapid.SampledFrom([]string{"li", "wang"}).Draw(t, "id"),
			Role:    rapid.SampledFrom([]UserRole{RoleViewer, RoleUser, RoleProjectAdmin}).Draw(t, "role"),
			Project: "vision",
			Service: rapid.Bool().Draw(t, "service"),
		}
		object := Object{
			Kind:    rapid.SampledFrom([]ObjectKind{ObjectJob, ObjectData, ObjectSecret, ObjectTemplate, ObjectProject, ObjectService}).Draw(t, "kind"),
			Project: rapid.SampledFrom([]string{"speech", "Vision", "vision2", "visio"}).Draw(t, "project"),
			Owner:   rapid.SampledFrom([]string{"li", "wang", ""}).Draw(t, "owner"),
			Access:  rapid.SampledFrom([]Access{AccessReadWrite, AccessReadOnly, AccessNone, ""}).Draw(t, "access"),
			Node:    "n1",
		}
		verb := rapid.SampledFrom(rules[:]).Draw(t, "rule").verb
		d := Allowed(p, verb, object)
		if d.Allow || !d.Hide {
			t.Fatalf("%+v may %s %+v: %+v", p, verb, object, d)
		}
		want := NotFound(object.Kind, object.ID)
		if diff := cmp.Diff(want.Error(), d.Err(verb, object).Error()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestDecisionCodes(t *testing.T) {
	job := Object{Kind: ObjectJob, Project: "vision", Owner: "li", Access: AccessReadOnly}
	cases := []struct {
		name string
		p    Principal
		want structs.ErrorCode
	}{
		{"nobody", Principal{}, structs.CodeUnauthorized},
		{"reader", Principal{Kind: KindUser, ID: "wang", Role: RoleUser, Project: "vision"}, structs.CodeForbidden},
		{"stranger", Principal{Kind: KindUser, ID: "li", Role: RoleUser, Project: "speech"}, structs.CodeNotFound},
	}
	for _, c := range cases {
		if got := structs.CodeOf(Allowed(c.p, VerbStop, job).Err(VerbStop, job)); got != c.want {
			t.Errorf("%s stops a job: %s, want %s", c.name, got, c.want)
		}
	}
	owner := Principal{Kind: KindUser, ID: "li", Role: RoleUser, Project: "vision"}
	if err := Allowed(owner, VerbStop, job).Err(VerbStop, job); err != nil {
		t.Errorf("owner stops a job: %v", err)
	}
}

// Refusals name verbs and kinds in words of their reader's language, and advise
// what would help: sharing gives nobody what is its owner's alone.
func TestRefusalsAreInWords(t *testing.T) {
	for _, r := range rules {
		for _, value := range []string{string(r.verb), string(r.kind)} {
			for _, language := range []messages.Language{messages.English, messages.Chinese} {
				if !messages.Has(language, "word."+value) {
					t.Errorf("%s has no word in %s", value, language)
				}
			}
		}
	}
	member := Principal{Kind: KindUser, ID: "wang", Role: RoleUser, Project: "vision"}
	for _, c := range []struct {
		verb   Verb
		access Access
		want   string
	}{
		{VerbStop, AccessReadOnly, "auth.forbidden.owner"},
		{VerbExec, AccessReadWrite, "auth.forbidden.owner_only"},
		{VerbShare, AccessReadOnly, "auth.forbidden.owner_only"},
		{VerbMove, AccessReadWrite, "auth.forbidden.role"},
	} {
		object := Object{Kind: ObjectJob, Project: "vision", Owner: "li", Access: c.access}
		var told *structs.Error
		if err := Allowed(member, c.verb, object).Err(c.verb, object); !errors.As(err, &told) || told.ID != c.want {
			t.Errorf("%s of a job that is shared %s: %v, want %s", c.verb, c.access, err, c.want)
		}
		if !messages.Has(messages.English, c.want+".hint") && c.want != "auth.forbidden.role" {
			t.Errorf("%s advises nothing", c.want)
		}
	}
}

func BenchmarkAllowed(b *testing.B) {
	p := Principal{Kind: KindUser, ID: "wang", Role: RoleUser, Project: "vision"}
	object := Object{Kind: ObjectJob, Project: "vision", Owner: "li", Access: AccessReadOnly}
	b.ReportAllocs()
	for b.Loop() {
		if !Allowed(p, VerbRead, object).Allow {
			b.Fatal("refused")
		}
	}
}

// What everybody may read is read from other projects, and changed from none of them,
// whatever the role there; where sharing is off it is read as well.
// Of jobs that share project, owner and access, a caller of whom SeesByOwner says so may
// do the same to all; of the others one may more to a job of their own.
func TestSeesByOwner(t *testing.T) {
	for _, caller := range callers() {
		differs := false
		for _, object := range situations(ObjectJob) {
			for _, r := range rules {
				other := object
				other.ID, other.Attempt, other.Node = "another", 7, "n9"
				if r.kind == ObjectJob && Allowed(caller.p, r.verb, object).Allow != Allowed(caller.p, r.verb, other).Allow {
					differs = true
				}
			}
		}
		if caller.p.SeesByOwner() && differs {
			t.Errorf("%s may do other things to one job than to another alike", caller.name)
		}
	}
	if !(Principal{Kind: KindUser}).SeesByOwner() {
		t.Error("a user sees by owner")
	}
}

func TestEverybodyOnlyReads(t *testing.T) {
	object := Object{Kind: ObjectData, ID: "words", Project: "speech", Owner: "mei", Access: AccessReadWrite, Everybody: true}
	for _, role := range []UserRole{RoleViewer, RoleUser, RoleProjectAdmin} {
		elsewhere := Principal{Kind: KindUser, ID: "mei", Role: role, Project: "vision"}
		if !Allowed(elsewhere, VerbRead, object).Allow {
			t.Errorf("a %s of another project cannot read it", role)
		}
		for _, verb := range []Verb{VerbWrite, VerbDelete} {
			if decision := Allowed(elsewhere, verb, object); decision.Allow || decision.Hide {
				t.Errorf("a %s of another project: %s %+v", role, verb, decision)
			}
		}
		hidden := object
		hidden.Everybody = false
		if decision := Allowed(elsewhere, VerbRead, hidden); decision.Allow || !decision.Hide {
			t.Errorf("a %s of another project reads what is not everybody's", role)
		}
	}
	unshared := Principal{Kind: KindUser, ID: "li", Role: RoleUser, Project: "speech", Unshared: true}
	if !Allowed(unshared, VerbRead, object).Allow || Allowed(unshared, VerbWrite, object).Allow {
		t.Error("where sharing is off")
	}
	for _, other := range []Principal{{}, {Kind: KindUser, ID: "ops", Role: RoleOperator}, {Kind: KindGuest, ID: "j", Project: "speech"}, {Kind: KindNode, ID: "n"}} {
		if Allowed(other, VerbRead, object).Allow {
			t.Errorf("%+v reads it", other)
		}
	}
}
