package state

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// services makes, changes and forgets service accounts and their tokens at random.
func (w *generator) services(heir string) []byte {
	name := []string{"ci", "ci", "board", "Bad Name"}[w.chance.Intn(4)]
	account := structs.ServiceAccount{Name: name, Project: []string{"", w.project(), w.project()}[w.chance.Intn(3)]}
	roles := append(structs.ServiceRoles(account.Project), structs.RoleUser)
	account.Role = roles[w.chance.Intn(len(roles))]
	jobs, to := []string{"", structs.JobsStop, structs.JobsHandOver}[w.chance.Intn(3)], ""
	if jobs == structs.JobsHandOver {
		to = heir
	}
	switch w.chance.Intn(8) {
	case 0, 1:
		return encode(structs.CommandServiceAccountPut, w.now, &structs.ServiceAccountPut{Account: account})
	case 2:
		return encode(structs.CommandServiceAccountState, w.now, &structs.ServiceAccountState{ID: account.ID(), Disabled: w.maybe(2), Jobs: jobs, To: to})
	case 3:
		return encode(structs.CommandServiceAccountDelete, w.now, &structs.ServiceAccountDelete{ID: account.ID(), Jobs: jobs, To: to})
	case 4:
		return encode(structs.CommandServiceAccountRevoke, w.now, &structs.ServiceAccountRevoke{ID: account.ID()})
	case 5:
		return encode(structs.CommandTokensUsed, w.now, &structs.TokensUsed{Uses: []structs.TokenUse{
			{TokenID: fmt.Sprintf("v%d", w.chance.Intn(8)), At: w.now, From: "192.0.2.1"}, {TokenID: "s1", At: w.now},
		}})
	}
	hash := sha256.Sum256([]byte{byte(40 + w.chance.Intn(8))})
	return encode(structs.CommandTokenPut, w.now, &structs.TokenPut{Token: structs.Token{
		ID: fmt.Sprintf("v%d", w.chance.Intn(8)), Hash: hash[:], Role: structs.RoleAccount, User: account.ID(), Project: account.Project, CreatedAt: w.now, ExpiresAt: w.now + structs.UnixNano(w.chance.Intn(20)),
	}})
}

// registrar is a store with one hand that writes into it.
type registrar struct {
	t     *testing.T
	store *Store
	now   structs.UnixNano
}

// apply returns the id of the refusal, "" for none.
func (b *registrar) apply(kind structs.CommandKind, body any) string {
	b.t.Helper()
	command, err := wire.EncodeCommand(kind, b.now, "pat", body)
	if err != nil {
		b.t.Fatal(err)
	}
	if result := b.store.Apply(b.store.Snapshot().Index()+1, command); result.Err != nil {
		return result.Err.ID
	}
	return ""
}

func (b *registrar) put(project, name, role string) string {
	return b.apply(structs.CommandServiceAccountPut, &structs.ServiceAccountPut{Account: structs.ServiceAccount{Project: project, Name: name, Role: role, Disabled: true, DisabledBy: "eve", CreatedBy: "eve"}})
}

func (b *registrar) token(id, user, project string, expires structs.UnixNano, also ...func(*structs.Token)) string {
	hash := sha256.Sum256([]byte(id))
	token := structs.Token{ID: id, Hash: hash[:], Role: structs.RoleAccount, User: user, Project: project, ExpiresAt: expires}
	for _, change := range also {
		change(&token)
	}
	return b.apply(structs.CommandTokenPut, &structs.TokenPut{Token: token})
}

func (b *registrar) has(id string) bool { return b.store.Snapshot().Token(id) != nil }

// A service account's tokens are its project's and end; those that are over make room,
// and whoever disables or deletes the account, or takes the name anew, leaves none.
func TestTokensOfServiceAccounts(t *testing.T) {
	b := &registrar{t: t, store: New(), now: 1e9}
	const ci = "service+vision+ci"
	for _, bad := range [][3]string{{"vision", "ci", "operator"}, {"vision", "ci", "admin"}, {"", "ci", "user"}, {"", "ci", "admin"}, {"vision", "CI", "user"}, {"vi+sion", "ci", "user"}, {"vision", "c+i", "user"}, {"vision", "ci", ""}} {
		if got := b.put(bad[0], bad[1], bad[2]); got != "state.service_malformed" {
			t.Errorf("%v: %q", bad, got)
		}
	}
	if got := b.token("early", ci, "vision", 9e9); got != "" || !b.has("early") {
		t.Fatalf("a token of a name that nobody has, which is good for nothing: %q", got)
	}
	if got := b.put("vision", "ci", "user"); got != "" || b.has("early") {
		t.Fatalf("made: %q, an older token of the name is there: %v", got, b.has("early"))
	}
	account := b.store.Snapshot().ServiceAccount(ci)
	if account == nil || account.Disabled || account.CreatedBy != "pat" || account.CreatedAt != 1e9 {
		t.Fatalf("%+v", account)
	}
	for name, change := range map[string]func(*structs.Token){
		"a role of its own": func(of *structs.Token) { of.Role = structs.RoleProjectAdmin },
		"another project":   func(of *structs.Token) { of.Project = "speech" },
		"no project":        func(of *structs.Token) { of.Project = "" },
		"no end":            func(of *structs.Token) { of.ExpiresAt = 0 },
		"a sign-in":         func(of *structs.Token) { of.Method = structs.MethodPassword },
		"a share link":      func(of *structs.Token) { of.Role, of.JobID = "guest", "j" },
	} {
		if got := b.token("bad", ci, "vision", 9e9, change); got != "state.token_malformed" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for i := range structs.ServiceTokensMax {
		expires := structs.UnixNano(9e9)
		if i == 0 {
			expires = 2e9
		}
		if got := b.token(fmt.Sprint("t", i), ci, "vision", expires); got != "" {
			t.Fatalf("%d: %q", i, got)
		}
	}
	if got := b.token("more", ci, "vision", 9e9); got != "state.service_tokens" {
		t.Errorf("one too many: %q", got)
	}
	b.now = 3e9
	if got := b.token("more", ci, "vision", 9e9); got != "" || b.has("t0") {
		t.Errorf("one is over: %q", got)
	}
	used := func(id string, at structs.UnixNano, from string) {
		if got := b.apply(structs.CommandTokensUsed, &structs.TokensUsed{Uses: []structs.TokenUse{{TokenID: "nobody's", At: at}, {TokenID: id, At: at, From: from}}}); got != "" {
			t.Fatal(got)
		}
	}
	version := b.store.Snapshot().Token("t1").ModifyIndex
	used("t1", 5e9, "192.0.2.5")
	used("t1", 4e9, "192.0.2.4") // another server, which was slower
	if token := b.store.Snapshot().Token("t1"); token.UsedAt != 5e9 || token.UsedFrom != "192.0.2.5" || token.ModifyIndex != version {
		t.Errorf("used: %+v", token)
	}
	b.now = 6e9
	if got := b.apply(structs.CommandServiceAccountState, &structs.ServiceAccountState{ID: ci, Disabled: true}); got != "" || b.has("t1") || b.has("more") {
		t.Errorf("disabled: %q, %v", got, b.has("t1"))
	}
	if got := b.token("late", ci, "vision", 9e9); got != "auth.service_disabled" {
		t.Errorf("of a disabled one: %q", got)
	}
	if got := b.put("vision", "ci", "viewer"); got != "" || !b.store.Snapshot().ServiceAccount(ci).Disabled || b.store.Snapshot().ServiceAccount(ci).DisabledBy != "pat" {
		t.Errorf("changed while disabled: %q %+v", got, b.store.Snapshot().ServiceAccount(ci))
	}
	b.apply(structs.CommandServiceAccountState, &structs.ServiceAccountState{ID: ci})
	if got := b.token("again", ci, "vision", 9e9); got != "" {
		t.Errorf("enabled: %q", got)
	}
	// The same name elsewhere is another account.
	if got := b.put("speech", "ci", "user"); got != "" {
		t.Fatal(got)
	}
	b.token("speech's", "service+speech+ci", "speech", 9e9)
	if got := b.apply(structs.CommandServiceAccountRevoke, &structs.ServiceAccountRevoke{ID: ci}); got != "" || b.has("again") || !b.has("speech's") {
		t.Errorf("revoked: %q", got)
	}
	b.token("last", ci, "vision", 9e9)
	if got := b.apply(structs.CommandServiceAccountDelete, &structs.ServiceAccountDelete{ID: ci}); got != "" || b.has("last") || !b.has("speech's") {
		t.Errorf("deleted: %q", got)
	}
	for kind, body := range map[structs.CommandKind]any{
		structs.CommandServiceAccountDelete: &structs.ServiceAccountDelete{ID: ci},
		structs.CommandServiceAccountRevoke: &structs.ServiceAccountRevoke{ID: ci},
		structs.CommandServiceAccountState:  &structs.ServiceAccountState{ID: ci, Disabled: true},
	} {
		if got := b.apply(kind, body); got != "state.service_unknown" {
			t.Errorf("%d: %q", kind, got)
		}
	}
}

// Service accounts live in stored states, which servers of before cannot read; a project
// that has one is not deleted.
func TestServiceAccountsAreStored(t *testing.T) {
	b := &registrar{t: t, store: New(), now: 1e9}
	if got := b.store.Snapshot().formatOf(); got >= 8 {
		t.Fatalf("without service accounts: version %d", got)
	}
	b.apply(structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{Name: "vision"}})
	b.put("vision", "ci", "user")
	b.put("", "board", "operator")
	b.token("t", "service+vision+ci", "vision", 9e9)
	if got := b.apply(structs.CommandProjectDelete, &structs.ProjectDelete{Name: "vision"}); got != "state.project_has_services" {
		t.Errorf("deleted with a service account: %q", got)
	}
	var stored bytes.Buffer
	if err := b.store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	restored := New()
	if err := restored.Restore(&stored); err != nil {
		t.Fatal(err)
	}
	snapshot := restored.Snapshot()
	if snapshot.formatOf() != 8 || snapshot.ServiceAccount("service+vision+ci") == nil || snapshot.ServiceAccount("service+board") == nil {
		t.Errorf("version %d", snapshot.formatOf())
	}
	for _, name := range []string{"ci", "service+", "service+ci", "service+vision+board", "service+vision+ci+x", "vision+ci"} {
		if account := snapshot.ServiceAccount(name); account != nil {
			t.Errorf("%q is %+v", name, account)
		}
	}
	b = &registrar{t: t, store: restored, now: 2e9}
	b.apply(structs.CommandServiceAccountDelete, &structs.ServiceAccountDelete{ID: "service+vision+ci"})
	if got := b.apply(structs.CommandProjectDelete, &structs.ProjectDelete{Name: "vision"}); got != "" {
		t.Errorf("deleted without: %q", got)
	}
}
