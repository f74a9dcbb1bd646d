package agent

import (
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

const robotUser = "service+one+robot" // of newWorld, with the role of a project's administrator

func robot() api.ServiceAccount { return api.ServiceAccount{Name: "robot"} }

// serviceAccount makes a service account with a token and returns a client of the token.
func (w *world) serviceAccount(t *testing.T, maker *api.Client, name, role string, scope api.ServiceTokenRequest) (*api.Client, *api.NewToken) {
	t.Helper()
	of := api.ServiceAccount{Name: name}
	if _, err := maker.PutServiceAccount(t.Context(), of, api.ServiceAccountRequest{Role: role}); err != nil {
		t.Fatal(err)
	}
	made, err := maker.CreateServiceToken(t.Context(), of, scope)
	if err != nil {
		t.Fatal(err)
	}
	return w.admin.WithToken(made.Secret), made
}

// A service account does what its role allows in its project, and its jobs and the
// record of what was done say who that was. Nobody makes one who could not do the same,
// and it makes no other way in.
func TestServiceAccounts(t *testing.T) {
	w := newWorld(t)
	pat, ann, eve := w.admin.WithToken(w.tokens["project-admin"]), w.admin.WithToken(w.tokens["user"]), w.admin.WithToken(w.tokens["stranger"])
	ci, made := w.serviceAccount(t, pat, "ci", "user", api.ServiceTokenRequest{Name: "pipeline"})
	if made.Token.ExpiresAt == 0 || made.Token.ExpiresAt.Time().After(time.Now().Add(structs.ServiceTokenTTLDefault)) || made.Token.Hash != nil {
		t.Errorf("a token: %+v", made.Token)
	}
	job := runJob(t, ci, sleeper("built", "one", "read-only"), structs.JobRunning).Job
	if job.User != "service+one+ci" || job.Project != "one" {
		t.Errorf("its job is of %s in %s", job.User, job.Project)
	}
	if list := recordsOf(t, w.agent, "jobs.submit"); list[0].Actor.User != "service+one+ci" || list[0].Actor.TokenID != made.Token.ID {
		t.Errorf("recorded: %+v", list[0].Actor)
	}
	if list := recordsOf(t, w.agent, "service_accounts.token"); list[0].Actor.User != "pat" || list[0].Object.ID != "service+one+ci" || list[0].Object.Part != made.Token.ID {
		t.Errorf("recorded: %+v", list[0])
	}
	self, err := ci.Self(t.Context())
	if err != nil || self.Name != "service+one+ci" || self.Role != "user" || self.Service == nil || self.Service.Owner != "pat" && self.Service.Owner != "" || len(self.Memberships) != 1 {
		t.Errorf("it is %+v, %v", self, err)
	}
	if _, err := ci.StopJob(t.Context(), w.mate, api.JobStopRequest{}); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("stops a job that is shared read-only: %v", err)
	}
	waitFor(t, "the use of its token", func() bool {
		detail, err := pat.ServiceAccount(t.Context(), api.ServiceAccount{Name: "ci"})
		return err == nil && len(detail.Tokens) == 1 && detail.Tokens[0].UsedAt != 0 && detail.Tokens[0].UsedFrom == "127.0.0.1"
	})
	// Who belongs to the project sees that it is there, and no tokens.
	for role, want := range map[string]int{"viewer": 0, "user": 0, "project-admin": 1, "operator": 1, "admin": 1} {
		detail, err := w.admin.WithToken(w.tokens[role]).In("one").ServiceAccount(t.Context(), api.ServiceAccount{Name: "ci"})
		if err != nil || len(detail.Tokens) != want {
			t.Errorf("%s: %+v %v", role, detail, err)
		}
	}
	put := func(client *api.Client, of api.ServiceAccount, role string) error {
		_, err := client.PutServiceAccount(t.Context(), of, api.ServiceAccountRequest{Role: role})
		return err
	}
	clusterwide := api.ServiceAccount{Name: "dashboard", Cluster: true}
	for what, refused := range map[string]struct {
		err  error
		want structs.ErrorCode
	}{
		"a member makes one":                          {put(ann, api.ServiceAccount{Name: "anns"}, "viewer"), structs.CodeForbidden},
		"a project's administrator, in the cluster":   {put(pat, clusterwide, "operator"), structs.CodeForbidden},
		"a project's administrator, elsewhere":        {put(pat.In("two"), api.ServiceAccount{Name: "ci"}, "user"), structs.CodeForbidden},
		"a project's administrator, above themselves": {put(pat, api.ServiceAccount{Name: "boss"}, "admin"), structs.CodeInvalid},
		"an operator makes one":                       {put(w.admin.WithToken(w.tokens["operator"]), clusterwide, "operator"), structs.CodeForbidden},
		"an administrator of the cluster as one":      {put(w.admin, clusterwide, "admin"), structs.CodeInvalid},
		"a name that is none":                         {put(pat, api.ServiceAccount{Name: "ci-"}, "user"), structs.CodeInvalid},
		"an owner without an account": {func() error {
			_, err := pat.PutServiceAccount(t.Context(), api.ServiceAccount{Name: "ci"}, api.ServiceAccountRequest{Owner: "nobody"})
			return err
		}(), structs.CodeNotFound},
	} {
		if structs.CodeOf(refused.err) != refused.want {
			t.Errorf("%s: %v", what, refused.err)
		}
	}
	// The stranger's project has its own of the same name, and neither reaches the other.
	other := w.admin.In("two")
	twos, twosToken := w.serviceAccount(t, other, "ci", "project-admin", api.ServiceTokenRequest{})
	if _, err := pat.RevokeServiceTokens(t.Context(), api.ServiceAccount{Name: "ci"}, api.ServiceRevokeRequest{Token: twosToken.Token.ID}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("another project's token is revoked: %v", err)
	}
	if _, err := pat.DeleteToken(t.Context(), twosToken.Token.ID); structs.CodeOf(err) != structs.CodeForbidden && structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("another project's token is deleted: %v", err)
	}
	if detail, err := eve.ServiceAccount(t.Context(), api.ServiceAccount{Name: "ci"}); err != nil || detail.User != "service+two+ci" {
		t.Errorf("%+v %v", detail, err)
	}
	if _, _, err := twos.Job(t.Context(), job.ID, nil); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a service account of another project reads a job: %v", err)
	}
	for _, role := range []string{"viewer", "user", "project-admin"} {
		if list, err := w.admin.WithToken(w.tokens[role]).ServiceAccounts(t.Context()); err != nil || len(list.Accounts) != 2 || list.Accounts[0].User != "service+one+ci" || list.Accounts[1].User != robotUser {
			t.Errorf("%s sees %+v %v", role, list, err)
		}
	}
	if err := put(w.admin, clusterwide, ""); err != nil {
		t.Fatal(err)
	}
	board, err := w.admin.CreateServiceToken(t.Context(), clusterwide, api.ServiceTokenRequest{Verbs: []string{"list", "read"}})
	if err != nil {
		t.Fatal(err)
	}
	if jobs, _, err := w.admin.WithToken(board.Secret).Jobs(t.Context(), api.JobFilter{}, nil); err != nil || len(jobs.Jobs) < 5 {
		t.Errorf("one of the cluster sees %+v %v", jobs, err)
	}
}

// A service account raises nobody, itself least of all, signs in nowhere, and makes
// neither tokens nor accounts, with the highest role that there is.
func TestAServiceAccountLetsNobodyIn(t *testing.T) {
	w := newWorld(t)
	program := w.admin.WithToken(w.tokens["service"])
	if _, err := w.admin.PutUser(t.Context(), &structs.User{Name: "mei"}); err != nil {
		t.Fatal(err)
	}
	tries := map[string]func() error{
		"its own role": func() error {
			return second(program.PutServiceAccount(t.Context(), robot(), api.ServiceAccountRequest{Role: "project-admin"}))
		},
		"another service account": func() error {
			return second(program.PutServiceAccount(t.Context(), api.ServiceAccount{Name: "second"}, api.ServiceAccountRequest{}))
		},
		"another token of its own": func() error {
			return second(program.CreateServiceToken(t.Context(), robot(), api.ServiceTokenRequest{}))
		},
		"a token": func() error {
			return second(program.CreateToken(t.Context(), api.TokenRequest{Role: "user", Project: "one", User: "x"}))
		},
		"a join token": func() error {
			return second(program.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client"}))
		},
		"an account":             func() error { return second(program.PutUser(t.Context(), &structs.User{Name: "evil"})) },
		"an account of its name": func() error { return second(program.PutUser(t.Context(), &structs.User{Name: robotUser})) },
		"a member": func() error {
			return second(program.SetMember(t.Context(), "one", api.MemberRequest{User: "mei", Role: "project-admin"}))
		},
		"the project's record": func() error {
			return second(program.PutProject(t.Context(), &structs.Project{Name: "one", Admins: []string{"mei"}}))
		},
		"a share link": func() error { return second(program.ShareJob(t.Context(), w.own, api.ShareRequest{})) },
		"another project": func() error {
			_, _, err := program.In("two").Jobs(t.Context(), api.JobFilter{}, nil)
			return err
		},
		"another's job": func() error {
			_, _, err := program.Job(t.Context(), w.other, nil)
			return err
		},
	}
	for what, try := range tries {
		if code := structs.CodeOf(try()); code != structs.CodeForbidden && code != structs.CodeNotFound {
			t.Errorf("%s: %q", what, code)
		}
	}
	b := &visitor{door: w.agent.http.Handler}
	if answer := b.send("POST", "/v1/session", `{"token":"`+w.tokens["service"]+`"}`); answer.Code != http.StatusForbidden || !strings.Contains(answer.Body.String(), "agent.sign_in_service") || answer.Header().Get("Set-Cookie") != "" {
		t.Errorf("signs in at the pages: %d %s", answer.Code, answer.Body)
	}
	if code, text := w.send(t, "POST", "/v1/login", "", api.LoginRequest{User: robotUser, Password: "a password of some length"}); code != http.StatusUnauthorized {
		t.Errorf("signs in with a password: %d %s", code, text)
	}
	// Nobody else gets the name, by whatever way.
	for what, err := range map[string]error{
		"an account":             second(w.admin.PutUser(t.Context(), &structs.User{Name: robotUser})),
		"a token":                second(w.admin.CreateToken(t.Context(), api.TokenRequest{Role: "project-admin", Project: "one", User: robotUser})),
		"a token of its account": second(w.admin.CreateToken(t.Context(), api.TokenRequest{Role: "account", User: robotUser})),
		"a member":               second(w.admin.SetMember(t.Context(), "one", api.MemberRequest{User: robotUser, Role: "project-admin"})),
	} {
		if code := structs.CodeOf(err); code != structs.CodeInvalid && code != structs.CodeNotFound {
			t.Errorf("%s of the name of a service account: %v", what, err)
		}
	}
	// A token that is good for some things makes none that is good for more.
	bound, err := w.admin.CreateToken(t.Context(), api.TokenRequest{Role: "project-admin", Project: "one", User: "pat", Verbs: []string{"read", "write"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := second(w.admin.WithToken(bound.Secret).CreateServiceToken(t.Context(), robot(), api.ServiceTokenRequest{})); refusalOf(err) != "auth.scope_grows" {
		t.Errorf("a bound token makes one: %v", err)
	}
	// A list that names it nevertheless, as files may, changes nothing of what it may.
	ci, _ := w.serviceAccount(t, w.admin.In("one"), "ci", "viewer", api.ServiceTokenRequest{})
	if _, _, err := w.agent.server.Submit(t.Context(), structs.CommandProjectMember, "x", &structs.ProjectMember{Project: "one", User: "service+one+ci", Role: "project-admin"}); err != nil {
		t.Fatal(err)
	}
	if self, err := ci.Self(t.Context()); err != nil || self.Role != "viewer" {
		t.Errorf("a list that names it: %+v %v", self, err)
	}
}

func second[T any](_ T, err error) error { return err }

// A token of a service account is good from its addresses, for its verbs and until its
// end; how far off that is, administrators of the cluster bound.
func TestTokensOfServiceAccountsAreBound(t *testing.T) {
	w := newWorld(t)
	pat := w.admin.WithToken(w.tokens["project-admin"])
	_, made := w.serviceAccount(t, pat, "ci", "user", api.ServiceTokenRequest{Verbs: []string{"list", "read"}, Addresses: []string{"192.0.2.0/24"}})
	from := func(address, method, path string) int {
		request := httptest.NewRequest(method, "https://127.0.0.1"+path, http.NoBody)
		request.RemoteAddr = address + ":1234"
		request.Header.Set("Authorization", "Bearer "+made.Secret)
		return w.answer(t, request).Code
	}
	for _, try := range []struct {
		address, method, path string
		want                  int
	}{
		{"192.0.2.7", "GET", "/v1/jobs", 200},
		{"198.51.100.7", "GET", "/v1/jobs", 401},
		{"198.51.100.7", "GET", "/v1/self", 401},
		{"::1", "GET", "/v1/jobs", 401},
		{"192.0.2.7", "GET", "/v1/self", 200},
		{"192.0.2.7", "DELETE", "/v1/jobs/" + w.own, 403},
		{"192.0.2.7", "GET", "/v1/allocations/" + allocOf(t, w.admin, w.own).ID + "/logs", 403},
	} {
		if got := from(try.address, try.method, try.path); got != try.want {
			t.Errorf("%s %s from %s: %d, want %d", try.method, try.path, try.address, got, try.want)
		}
	}
	token := func(client *api.Client, ttl time.Duration) error {
		return second(client.CreateServiceToken(t.Context(), api.ServiceAccount{Name: "ci"}, api.ServiceTokenRequest{TTL: structs.Duration(ttl)}))
	}
	day := 24 * time.Hour
	for ttl, want := range map[time.Duration]string{90 * day: "", 91 * day: "agent.service_ttl", time.Second: "agent.service_ttl", -time.Hour: "agent.service_ttl"} {
		if err := token(pat, ttl); refusalOf(err) != want {
			t.Errorf("for %s: %v", ttl, err)
		}
	}
	week := structs.Duration(7 * day)
	if err := second(pat.PutSettings(t.Context(), api.SettingsRequest{ServiceTokenTTL: &week})); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a project's administrator sets it: %v", err)
	}
	for _, bad := range []structs.Duration{-1, 1, structs.Duration(10 * 365 * day)} {
		if err := second(w.admin.PutSettings(t.Context(), api.SettingsRequest{ServiceTokenTTL: &bad})); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("%s: %v", bad.Std(), err)
		}
	}
	if err := second(w.admin.PutSettings(t.Context(), api.SettingsRequest{ServiceTokenTTL: &week})); err != nil {
		t.Fatal(err)
	}
	if err := token(pat, 8*day); refusalOf(err) != "agent.service_ttl" {
		t.Errorf("longer than the cluster allows: %v", err)
	}
	short, err := pat.CreateServiceToken(t.Context(), api.ServiceAccount{Name: "ci"}, api.ServiceTokenRequest{})
	if err != nil || short.Token.ExpiresAt.Time().After(time.Now().Add(week.Std())) {
		t.Errorf("%+v %v", short, err)
	}
}

// What a service account has open ends when its token does, when it is disabled and when
// it is deleted; a token of before is no good when the name comes back.
func TestOpenStreamsOfServiceAccountsEnd(t *testing.T) {
	w := newWorld(t)
	pat := w.admin.WithToken(w.tokens["project-admin"])
	of := api.ServiceAccount{Name: "ci"}
	follow := func(client *api.Client, tokenID string) <-chan time.Time {
		t.Helper()
		logs, err := client.Logs(t.Context(), allocOf(t, w.admin, w.mate).ID, api.LogOptions{Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "an open stream", func() bool { return w.agent.http.Handler.(*front.Front).Streams(tokenID) == 1 })
		ended := make(chan time.Time, 1)
		go func() {
			defer logs.Close()
			io.Copy(io.Discard, logs)
			ended <- time.Now()
		}()
		return ended
	}
	ends := func(what string, client *api.Client, since time.Time, ended <-chan time.Time) {
		t.Helper()
		select {
		case at := <-ended:
			t.Logf("%s: the stream ended after %s", what, at.Sub(since).Round(time.Millisecond))
		case <-time.After(time.Minute):
			t.Errorf("%s: a log that is followed goes on", what)
		}
		if _, _, err := client.Jobs(t.Context(), api.JobFilter{}, nil); structs.CodeOf(err) != structs.CodeUnauthorized {
			t.Errorf("%s: the token is good: %v", what, err)
		}
	}
	ci, made := w.serviceAccount(t, pat, "ci", "user", api.ServiceTokenRequest{})
	job := runJob(t, ci, sleeper("built", "one", "read-only"), structs.JobRunning).Job

	// Its end: the record says when, and nobody puts it off.
	secret, err := auth.GenerateToken(auth.TokenUser, strings.NewReader(strings.Repeat("r", 64)))
	if err != nil {
		t.Fatal(err)
	}
	expires := time.Now().Add(5 * time.Second)
	hash := sha256.Sum256([]byte(secret))
	if _, _, err := w.agent.server.Submit(t.Context(), structs.CommandTokenPut, "x", &structs.TokenPut{Token: structs.Token{
		ID: "soon-over", Hash: hash[:], Role: "account", Project: "one", User: "service+one+ci", ExpiresAt: structs.At(expires),
	}}); err != nil {
		t.Fatal(err)
	}
	soon := w.admin.WithToken(secret)
	if err := second(soon.ExtendToken(t.Context())); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("puts off its end: %v", err)
	}
	ends("over", soon, expires, follow(soon, "soon-over"))

	// Its role, which is another one.
	open := follow(ci, made.Token.ID)
	if err := second(pat.PutServiceAccount(t.Context(), of, api.ServiceAccountRequest{Role: "viewer"})); err != nil {
		t.Fatal(err)
	}
	select {
	case <-open:
	case <-time.After(time.Minute):
		t.Error("a stream goes on with the rights of before")
	}
	if err := second(pat.PutServiceAccount(t.Context(), of, api.ServiceAccountRequest{Role: "user"})); err != nil {
		t.Fatal(err)
	}

	// Disabled, with a job that runs on.
	open = follow(ci, made.Token.ID)
	since := time.Now()
	if err := second(pat.SetServiceAccountState(t.Context(), of, api.ServiceAccountStateRequest{Disabled: true})); err != nil {
		t.Fatal(err)
	}
	ends("disabled", ci, since, open)
	if err := second(pat.CreateServiceToken(t.Context(), of, api.ServiceTokenRequest{})); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a token of a disabled one: %v", err)
	}
	if detail, _, err := pat.Job(t.Context(), job.ID, nil); err != nil || detail.State != structs.JobRunning {
		t.Errorf("its job: %+v %v", detail, err)
	}
	if err := second(pat.SetServiceAccountState(t.Context(), of, api.ServiceAccountStateRequest{})); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ci.Jobs(t.Context(), api.JobFilter{}, nil); structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("a token of before it was disabled is good again: %v", err)
	}

	// Two tokens, of which the old one is revoked while the new one works.
	first, err := pat.CreateServiceToken(t.Context(), of, api.ServiceTokenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next, err := pat.CreateServiceToken(t.Context(), of, api.ServiceTokenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	old := w.admin.WithToken(first.Secret)
	ci = w.admin.WithToken(next.Secret)
	open, since = follow(old, first.Token.ID), time.Now()
	if err := second(pat.RevokeServiceTokens(t.Context(), of, api.ServiceRevokeRequest{Token: first.Token.ID})); err != nil {
		t.Fatal(err)
	}
	ends("revoked", old, since, open)

	// Deleted: its jobs are somebody's, or end; and who takes the name has none of it.
	open, since = follow(ci, next.Token.ID), time.Now()
	if err := second(pat.DeleteServiceAccount(t.Context(), of, "", "")); refusalOf(err) != "state.service_in_use" {
		t.Errorf("deleted with a job: %v", err)
	}
	if err := second(pat.DeleteServiceAccount(t.Context(), of, structs.JobsStop, "")); err != nil {
		t.Fatal(err)
	}
	ends("deleted", ci, since, open)
	waitFor(t, "the end of its job", func() bool {
		detail, _, err := pat.Job(t.Context(), job.ID, nil)
		return err == nil && detail.State == structs.JobStopped
	})
	w.serviceAccount(t, pat, "ci", "user", api.ServiceTokenRequest{})
	for _, secret := range []string{made.Secret, first.Secret, next.Secret} {
		if _, _, err := w.admin.WithToken(secret).Jobs(t.Context(), api.JobFilter{}, nil); structs.CodeOf(err) != structs.CodeUnauthorized {
			t.Errorf("a token of the account that was deleted: %v", err)
		}
	}
}
