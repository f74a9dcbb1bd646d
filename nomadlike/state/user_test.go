package state

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// people makes, disables and forgets accounts, and changes who belongs to projects.
func (p *play) people(verb string, plain []string, named map[string]string) {
	switch verb {
	case "user":
		p.apply(structs.CommandUserPut, &structs.UserPut{User: structs.User{Name: plain[0], Role: named["role"], Email: named["email"], Project: named["home"]}})
	case "disable":
		p.apply(structs.CommandUserState, &structs.UserState{Name: plain[0], Disabled: true, Jobs: named["jobs"], To: named["to"]})
	case "enable":
		p.apply(structs.CommandUserState, &structs.UserState{Name: plain[0]})
	case "dismiss":
		p.apply(structs.CommandUserDelete, &structs.UserDelete{Name: plain[0]})
	case "member":
		p.apply(structs.CommandProjectMember, &structs.ProjectMember{Project: plain[0], User: plain[1], Role: named["role"]})
	case "archive", "unarchive":
		p.apply(structs.CommandProjectArchive, &structs.ProjectArchive{Name: plain[0], Archived: verb == "archive", StopJobs: named["jobs"] == "stop"})
	case "password":
		p.apply(structs.CommandPasswordSet, &structs.PasswordSet{
			Password: structs.Password{User: plain[0], Hash: named["hash"], First: named["first"] != ""}, Forget: named["forget"] != "", Keep: named["keep"],
		})
	case "sign-in":
		hash := sha256.Sum256([]byte(plain[1]))
		p.apply(structs.CommandTokenPut, &structs.TokenPut{Token: structs.Token{
			ID: plain[1], Hash: hash[:], Role: structs.RoleAccount, User: plain[0], Method: structs.MethodPassword, From: "192.0.2.1", CreatedAt: p.now, ExpiresAt: p.now + 100e9, EndsAt: p.now + 300e9,
		}})
	case "provider": // provider PROVIDER SUBJECT NAME [token=T] [role=R] [in=PROJECT:ROLE,…] [email=E]
		hash := sha256.Sum256([]byte(named["token"]))
		in := &structs.SignIn{Provider: plain[0], Subject: plain[1], Name: plain[2], Role: named["role"], Email: named["email"], Token: structs.Token{
			ID: named["token"], Hash: hash[:], Role: structs.RoleAccount, Method: structs.MethodLDAP, From: "192.0.2.1", CreatedAt: p.now, ExpiresAt: p.now + 100e9, EndsAt: p.now + 300e9,
		}}
		for _, of := range strings.FieldsFunc(named["in"], func(r rune) bool { return r == ',' }) {
			project, role, _ := strings.Cut(of, ":")
			in.Projects = append(in.Projects, structs.Membership{Project: project, Role: role})
		}
		p.apply(structs.CommandSignIn, in)
	case "identity":
		p.apply(structs.CommandUserIdentity, &structs.UserIdentity{User: plain[0], Provider: plain[1], Subject: named["subject"]})
	case "rights":
		p.rights(plain[0])
	case "extend":
		at, err := strconv.ParseInt(plain[1], 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		p.apply(structs.CommandTokenExtend, &structs.TokenExtend{ID: plain[0], ExpiresAt: p.now + structs.UnixNano(at)*1e9})
	case "token":
		hash := sha256.Sum256([]byte(plain[0]))
		p.apply(structs.CommandTokenPut, &structs.TokenPut{Token: structs.Token{ID: plain[0], Hash: hash[:], Role: named["role"], User: named["of"], Project: named["project"]}})
	}
}

// rights writes down what an account may, and whose word that is.
func (p *play) rights(name string) {
	snapshot := p.store.Snapshot()
	user := snapshot.User(name)
	if user == nil {
		fmt.Fprintf(&p.out, "  nobody is %s\n", name)
		return
	}
	fmt.Fprintf(&p.out, "  %s <%s>: cluster %q, given %q\n", user.Name, user.Email, user.ClusterRole(), user.Role)
	for _, i := range user.Identities {
		fmt.Fprintf(&p.out, "  is %s at %s, which gives %q\n", i.Subject, i.Provider, i.Role)
	}
	for project := range snapshot.ProjectsOf(name) {
		fmt.Fprintf(&p.out, "  %s: %s, given %q, granted %q\n", project.Name, project.RoleOf(name), project.GivenRole(name), project.GrantedRole(name, ""))
	}
	for token := range snapshot.Tokens() {
		if token.User == name {
			fmt.Fprintf(&p.out, "  token %s, %s by way of %s\n", token.ID, token.Method, token.Provider)
		}
	}
}

// people does the same at random.
func (w *generator) people() []byte {
	users := []string{"ann", "ann", "bob", "bad name"}
	name := users[w.chance.Intn(len(users))]
	roles := []string{"", structs.RoleViewer, structs.RoleUser, structs.RoleUser, structs.RoleProjectAdmin, structs.RoleOperator, structs.RoleAdmin, "king"}
	role := roles[w.chance.Intn(len(roles))]
	if w.maybe(30) {
		return encode(structs.CommandProjectArchive, w.now, &structs.ProjectArchive{Name: w.project(), Archived: w.maybe(2), StopJobs: w.maybe(2)})
	}
	if w.maybe(4) {
		return w.services(name)
	}
	switch w.chance.Intn(16) {
	case 13, 14:
		hash := sha256.Sum256([]byte{byte(200 + w.chance.Intn(8))})
		in := &structs.SignIn{
			Provider: []string{"company", "platform"}[w.chance.Intn(2)], Subject: fmt.Sprint(w.chance.Intn(3)), Name: name, Role: []string{"", "", role}[w.chance.Intn(3)],
			Token: structs.Token{ID: fmt.Sprintf("x%d", w.chance.Intn(8)), Hash: hash[:], Role: structs.RoleAccount, Method: structs.MethodLDAP, ExpiresAt: w.now + 10, EndsAt: w.now + 30},
		}
		for range w.chance.Intn(3) {
			in.Projects = append(in.Projects, structs.Membership{Project: w.project(), Role: role})
		}
		return encode(structs.CommandSignIn, w.now, in)
	case 15:
		return encode(structs.CommandUserIdentity, w.now, &structs.UserIdentity{User: name, Provider: "company", Subject: []string{"", "0", "7"}[w.chance.Intn(3)]})
	case 10:
		return encode(structs.CommandPasswordSet, w.now, &structs.PasswordSet{
			Password: structs.Password{User: name, Hash: []string{"", "h", "h"}[w.chance.Intn(3)], First: w.maybe(2)}, Forget: w.maybe(4), Keep: "t" + name[:2],
		})
	case 11:
		hash := sha256.Sum256([]byte{byte(100 + w.chance.Intn(8))})
		return encode(structs.CommandTokenPut, w.now, &structs.TokenPut{Token: structs.Token{
			ID: fmt.Sprintf("s%d", w.chance.Intn(8)), Hash: hash[:], Role: structs.RoleAccount, User: name, Method: structs.MethodPassword,
			CreatedAt: w.now, ExpiresAt: w.now + 10, EndsAt: w.now + 30,
		}})
	case 12:
		return encode(structs.CommandTokenExtend, w.now, &structs.TokenExtend{ID: fmt.Sprintf("s%d", w.chance.Intn(8)), ExpiresAt: w.now + 20})
	case 0, 1, 6, 7:
		return encode(structs.CommandUserPut, w.now, &structs.UserPut{User: structs.User{Name: name, Role: []string{"", "", role}[w.chance.Intn(3)]}})
	case 2:
		return encode(structs.CommandUserState, w.now, &structs.UserState{Name: name, Disabled: w.maybe(2), Jobs: structs.JobsStop})
	case 3:
		return encode(structs.CommandUserState, w.now, &structs.UserState{Name: name, Disabled: true, Jobs: structs.JobsHandOver, To: users[w.chance.Intn(len(users))]})
	case 4:
		return encode(structs.CommandUserDelete, w.now, &structs.UserDelete{Name: name})
	case 5:
		hash := sha256.Sum256([]byte{byte(w.chance.Intn(8))})
		return encode(structs.CommandTokenPut, w.now, &structs.TokenPut{Token: structs.Token{ID: "t" + name[:2], Hash: hash[:], Role: role, User: name}})
	default:
		return encode(structs.CommandProjectMember, w.now, &structs.ProjectMember{Project: w.project(), User: name, Role: role})
	}
}

// A state without accounts is written as servers read it that know none: it may be
// what a leader of this version sends to one of the version before.
func TestStatesWithoutAccountsStayReadable(t *testing.T) {
	version := func(s *Store) int {
		var out bytes.Buffer
		if err := s.Snapshot().Persist(&out); err != nil {
			t.Fatal(err)
		}
		header := new(dumpHeader)
		if err := (&frameReader{r: bufio.NewReader(&out), unmarshal: wire.Unmarshal}).decode(header); err != nil {
			t.Fatal(err)
		}
		return header.Version
	}
	p := &play{t: t, store: New(), now: 1}
	if got := version(p.store); got != 2 {
		t.Errorf("without accounts it has version %d, want 2", got)
	}
	p.do("user", []string{"li"})
	if got := version(p.store); got != 3 {
		t.Errorf("with accounts it has version %d, want 3", got)
	}
	var out bytes.Buffer
	if err := p.store.Snapshot().Persist(&out); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&out); err != nil || again.Snapshot().User("li") == nil || again.Snapshot().Hash() != p.store.Snapshot().Hash() {
		t.Errorf("restored: %v", err)
	}
	p.do("password", []string{"li", "hash=x"})
	if got := version(p.store); got != 4 {
		t.Errorf("with passwords it has version %d, want 4", got)
	}
	p.do("disable", []string{"li"})
	p.do("dismiss", []string{"li"})
	if got := version(p.store); got != 2 {
		t.Errorf("after the last account it has version %d, want 2", got)
	}
}

// Histories in which accounts come and go: whatever happens, jobs count for whom they
// belong to, nobody who is disabled holds a token, and an administrator is left.
func TestAccountsComeAndGo(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(20) {
		w := &generator{chance: seeded{rand.New(rand.NewPCG(seed, 1))}, now: 1, calm: true}
		store := New()
		apply := func(i int, command []byte) { store.ApplyBatch([]Entry{{Index: uint64(i + 1), Command: command}}) }
		apply(0, encode(structs.CommandUserPut, 1, &structs.UserPut{User: structs.User{Name: "root", Role: structs.RoleAdmin}}))
		for i := 1; i < 400; i++ {
			if w.maybe(2) {
				w.now++
				apply(i, w.people())
			} else {
				apply(i, w.next(store.Snapshot()))
			}
			snapshot := store.Snapshot()
			if found := CheckInvariants(snapshot); len(found) > 0 {
				t.Fatalf("seed %d, command %d: %q", seed, i, found)
			}
			live := make(map[string]int)
			for view := range snapshot.Jobs() {
				for subjob := range snapshot.Subjobs(view.Job.ID) {
					if !subjob.State.Terminal() {
						live[view.Job.User]++
					}
				}
			}
			for _, name := range []string{"ann", "bob"} {
				if got, _ := store.LiveOf(name, ""); got != live[name] {
					t.Fatalf("seed %d, command %d: %s has %d live subjobs, %d are counted", seed, i, name, live[name], got)
				}
			}
			for _, name := range []string{"ann", "bob"} {
				var listed, found []string
				for project := range snapshot.Projects() {
					if project.RoleOf(name) != "" {
						listed = append(listed, project.Name)
					}
				}
				for project := range snapshot.ProjectsOf(name) {
					found = append(found, project.Name)
				}
				if !slices.Equal(listed, found) {
					t.Fatalf("seed %d, command %d: %s is listed by %q and found in %q", seed, i, name, listed, found)
				}
			}
			for _, name := range []string{"ann", "bob"} {
				if password := snapshot.Password(name); password != nil && (snapshot.User(name) == nil || password.Hash == "") {
					t.Fatalf("seed %d, command %d: the password of %s outlives the account, or is none", seed, i, name)
				}
			}
			for token := range snapshot.Tokens() {
				if token.Method != "" && token.ExpiresAt > token.EndsAt {
					t.Fatalf("seed %d, command %d: the end of token %s is put off beyond its last", seed, i, token.ID)
				}
				if user := snapshot.User(token.User); user != nil && user.Disabled {
					t.Fatalf("seed %d, command %d: %s is disabled and has token %s", seed, i, user.Name, token.ID)
				}
			}
		}
		followAll(t, store, seen)
	}
	for _, id := range []string{"event.user.disabled.stop", "event.user.disabled.hand_over", "event.job.handed_over", "event.user.enabled", "event.user.deleted", "event.user.password.set", "event.user.password.reset", "event.user.password.forgotten", "event.project.member_removed", "event.project.archived", "event.project.unarchived"} {
		if seen[id] == 0 {
			t.Errorf("no history has %s", id)
		}
	}
}
