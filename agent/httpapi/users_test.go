package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// person makes an account that belongs to projects, as "vision" or "vision:viewer",
// and returns a client with a token for whatever the account may.
func (h *harness) person(name string, of ...string) *api.Client {
	h.t.Helper()
	if _, err := h.admin.PutUser(h.t.Context(), &structs.User{Name: name}); err != nil {
		h.t.Fatal(err)
	}
	for _, one := range of {
		project, role, found := strings.Cut(one, ":")
		if !found {
			role = structs.RoleUser
		}
		if _, err := h.admin.SetMember(h.t.Context(), project, api.MemberRequest{User: name, Role: role}); err != nil {
			h.t.Fatal(err)
		}
	}
	return h.as(structs.RoleAccount, "", name)
}

// secret makes one more token for whatever an account may.
func (h *harness) secret(user string) string {
	h.t.Helper()
	made, err := h.admin.CreateToken(h.t.Context(), api.TokenRequest{Role: structs.RoleAccount, User: user})
	if err != nil {
		h.t.Fatal(err)
	}
	return made.Secret
}

func refusalID(err error) string {
	var refusal *structs.Error
	if errors.As(err, &refusal) {
		return refusal.ID
	}
	return ""
}

func helloAs(name string) api.JobRequest {
	return api.JobRequest{HCL: strings.Replace(hello("true"), `"hello"`, `"`+name+`"`, 1)}
}

func TestAPersonActsInOneProjectAtATime(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	li := h.person("li", "speech", "vision:viewer")
	eve := h.person("eve", "vision")
	self, err := li.Self(ctx)
	if err != nil || self.Project != "speech" || self.Role != structs.RoleUser || len(self.Memberships) != 2 || self.User == nil {
		t.Fatalf("self: %+v %v", self, err)
	}
	made, err := li.SubmitJob(ctx, helloAs("mine"), "")
	if err != nil {
		t.Fatal(err)
	}
	job, _, err := li.Job(ctx, made.JobID, nil)
	if err != nil || job.Job.Project != "speech" || job.Job.User != "li" {
		t.Errorf("submitted to %v %v", job, err)
	}
	// In another project of theirs they have the role that they have there.
	there := li.In("vision")
	if _, err := there.SubmitJob(ctx, helloAs("looks"), ""); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a viewer submits: %v", err)
	}
	if _, _, err := there.Job(ctx, made.JobID, nil); refusalID(err) != "auth.elsewhere" {
		t.Errorf("their own job, looked for in another project of theirs: %v", err)
	}
	if _, _, err := eve.Job(ctx, made.JobID, nil); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a stranger looks for it: %v", err)
	}
	for _, project := range []string{"speech", "nowhere"} { // no difference tells which one there is
		if _, err := eve.In(project).Self(ctx); refusalID(err) != "auth.not_member" {
			t.Errorf("eve acts in %s: %v", project, err)
		}
	}
	// A link has no headers: its address says the project.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1/v1/self?acting=vision", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+h.secret("li"))
	answer, err := h.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var linked api.Self
	if err := json.NewDecoder(answer.Body).Decode(&linked); err != nil || linked.Project != "vision" || linked.Role != structs.RoleViewer {
		t.Errorf("a link: %+v %v", linked, err)
	}
	list, _, err := li.Projects(ctx, nil)
	if err != nil || len(list.Projects) != 2 {
		t.Errorf("li's projects: %+v %v", list, err)
	}
	if list, _, err = eve.Projects(ctx, nil); err != nil || len(list.Projects) != 1 || list.Projects[0].Project.Name != "vision" {
		t.Errorf("eve's projects: %+v %v", list, err)
	}
}

// Before there were members that act, a token with a name was enough.
func TestWhoDoesNotBelongDoesNotSubmit(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	ben := h.as("user", "vision", "ben") // has no account
	if _, err := ben.SubmitJob(ctx, helloAs("before"), ""); err != nil {
		t.Fatalf("a project that lists nobody: %v", err)
	}
	h.person("li", "vision")
	if _, err := ben.SubmitJob(ctx, helloAs("after"), ""); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a project that lists others: %v", err)
	}
	ci := h.as("user", "vision", "") // a program's, which an administrator made for this project
	if _, err := ci.SubmitJob(ctx, helloAs("ci"), ""); err != nil {
		t.Errorf("a program: %v", err)
	}
	if _, err := h.admin.PutProject(ctx, &structs.Project{Name: "vision", Members: []string{"li", "ben"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ben.SubmitJob(ctx, helloAs("listed"), ""); err != nil {
		t.Errorf("a name that is listed: %v", err)
	}
}

func TestNobodyRaisesTheirOwnRights(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	li := h.person("li", "speech")
	pat := h.person("pat", "speech:project-admin")
	h.person("mei")
	for name, attempt := range map[string]func() error{
		"one's own cluster role": func() error {
			_, err := li.PutUser(ctx, &structs.User{Name: "li", Role: structs.RoleAdmin})
			return err
		},
		"one's own e-mail address": func() error {
			_, err := li.PutUser(ctx, &structs.User{Name: "li", Email: "li@example.org"})
			return err
		},
		"another's account": func() error { _, err := li.PutUser(ctx, &structs.User{Name: "mei", DisplayName: "x"}); return err },
		"a new account":     func() error { _, err := li.PutUser(ctx, &structs.User{Name: "friend"}); return err },
		"one's own role": func() error {
			_, err := li.SetMember(ctx, "speech", api.MemberRequest{User: "li", Role: structs.RoleProjectAdmin})
			return err
		},
		"another project": func() error {
			_, err := li.SetMember(ctx, "vision", api.MemberRequest{User: "li", Role: structs.RoleUser})
			return err
		},
		"an admin elsewhere": func() error {
			_, err := pat.SetMember(ctx, "vision", api.MemberRequest{User: "pat", Role: structs.RoleUser})
			return err
		},
		"a token":             func() error { _, err := pat.CreateToken(ctx, api.TokenRequest{Role: "admin", User: "pat"}); return err },
		"disable another":     func() error { _, err := pat.SetUserState(ctx, "li", api.UserStateRequest{Disabled: true}); return err },
		"delete another":      func() error { _, err := pat.DeleteUser(ctx, "li"); return err },
		"list accounts":       func() error { _, err := pat.Users(ctx); return err },
		"read another":        func() error { _, err := li.User(ctx, "mei"); return err },
		"read one who is not": func() error { _, err := li.User(ctx, "nobody"); return err },
	} {
		if err := attempt(); structs.CodeOf(err) != structs.CodeForbidden && structs.CodeOf(err) != structs.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if user, err := h.admin.User(ctx, "li"); err != nil || user.User.Role != "" || user.User.Email != "" || len(user.Memberships) != 1 {
		t.Errorf("li is %+v %v", user, err)
	}
	// What is theirs to say.
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN7b1p5Wc3hFq li@laptop"
	if _, err := li.PutUser(ctx, &structs.User{Name: "li", DisplayName: "Li Wei", Language: "zh", SSHKeys: []string{key}}); err != nil {
		t.Errorf("one's own profile: %v", err)
	}
	if _, err := pat.SetMember(ctx, "speech", api.MemberRequest{User: "mei", Role: structs.RoleViewer}); err != nil {
		t.Errorf("an administrator of the project adds a member: %v", err)
	}
	if _, err := pat.SetMember(ctx, "speech", api.MemberRequest{User: "mai", Role: structs.RoleViewer}); refusalID(err) != "agent.member_no_account" {
		t.Errorf("a slip of the pen: %v", err)
	}
	for _, bad := range []structs.User{
		{Name: "li", SSHKeys: []string{`command="rm -rf /" ` + key}},
		{Name: "li", SSHKeys: []string{key, key}},
		{Name: "li", DisplayName: "a\u202eb"},
		{Name: "li", Language: "fr"},
		{Name: "li", Project: "Not A Name"},
	} {
		if _, err := li.PutUser(ctx, &bad); refusalID(err) != "agent.user_invalid" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestADisabledAccountIsOutAtOnce(t *testing.T) {
	h := newHarness(t)
	h.overSockets()
	ctx := t.Context()
	h.node("n1", 4)
	li, mei := h.person("li", "speech"), h.person("mei", "speech")
	id := h.start(li, hello("true"))
	stream, err := li.Events(ctx, api.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := h.admin.SetUserState(ctx, "li", api.UserStateRequest{Disabled: true, Jobs: structs.JobsHandOver, To: "mei"}); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err = stream.Next(); err != nil {
			break
		}
	}
	if structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("the stream ends with %v", err)
	}
	if _, err := li.Self(ctx); structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("the token: %v", err)
	}
	if _, err := h.admin.CreateToken(ctx, api.TokenRequest{Role: "account", User: "li"}); refusalID(err) != "auth.user_disabled" {
		t.Errorf("a new token: %v", err)
	}
	job, _, err := mei.Job(ctx, id, nil)
	if err != nil || job.Job.User != "mei" || job.State != structs.JobRunning {
		t.Errorf("the job is %+v %v", job, err)
	}
}

// A stream goes on only while its reader may still read what it began with.
func TestWhoLeavesAProjectHearsNoMoreOfIt(t *testing.T) {
	h := newHarness(t)
	h.overSockets()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	li := h.person("li", "speech", "vision")
	stream, err := li.In("vision").Events(ctx, api.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := h.admin.SetMember(ctx, "vision", api.MemberRequest{User: "li"}); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err = stream.Next(); err != nil {
			break
		}
	}
	if refusalID(err) != "auth.not_member" {
		t.Errorf("the stream ends with %v", err)
	}
	if _, err := li.Self(ctx); err != nil {
		t.Errorf("the other project: %v", err)
	}
}

// Two administrators of a project who change it at once both have their way.
func TestMembersOfTwoAtOnce(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	var all sync.WaitGroup
	failed := make(chan error, 16)
	for _, name := range []string{"pat", "mei"} {
		client := h.person(name, "speech:project-admin")
		for i := range 8 {
			h.person(fmt.Sprintf("%s-%d", name, i))
		}
		all.Go(func() {
			for i := range 8 {
				_, err := client.SetMember(ctx, "speech", api.MemberRequest{User: fmt.Sprintf("%s-%d", name, i), Role: structs.RoleUser})
				failed <- err
			}
		})
	}
	all.Wait()
	for range 16 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	detail, _, err := h.admin.Project(ctx, "speech", nil)
	if err != nil || len(detail.Project.Members) != 16 || len(detail.Project.Admins) != 2 {
		t.Errorf("members: %+v %v", detail, err)
	}
}

// BenchmarkStanding is what it costs to find whom a token speaks for, with 1,000
// accounts in 200 projects of 20 members each: in the project that the request names,
// in the home of the account, and where neither is given.
func BenchmarkStanding(b *testing.B) {
	store := state.New()
	index := uint64(0)
	apply := func(kind structs.CommandKind, body any) {
		index++
		data, err := wire.EncodeCommand(kind, structs.UnixNano(index), "bench", body)
		if err != nil {
			b.Fatal(err)
		}
		if result := store.ApplyBatch([]state.Entry{{Index: index, Command: data}}); result[0].Err != nil {
			b.Fatal(result[0].Err)
		}
	}
	for i := range 1000 {
		apply(structs.CommandUserPut, &structs.UserPut{User: structs.User{Name: fmt.Sprintf("user-%d", i)}})
	}
	for p := range 200 {
		project := structs.Project{Name: fmt.Sprintf("project-%03d", p)}
		for m := range 20 {
			project.Members = append(project.Members, fmt.Sprintf("user-%d", (p*5+m)%1000))
		}
		apply(structs.CommandProjectPut, &structs.ProjectPut{Project: project})
	}
	snapshot, now := store.Snapshot(), time.Unix(1, 0)
	apply(structs.CommandUserPut, &structs.UserPut{User: structs.User{Name: "user-990", Project: "project-198"}})
	for name, c := range map[string]struct {
		user, named string
		at          *state.Snapshot
	}{
		"named": {"user-989", "project-197", snapshot}, "home": {"user-990", "", store.Snapshot()}, "first": {"user-989", "", snapshot},
	} {
		token := &structs.Token{ID: "t", Role: structs.RoleAccount, User: c.user}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, refusal := auth.Stand(c.at, token, c.named, now); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}
