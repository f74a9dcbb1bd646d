package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

const (
	chosen  = "three pandas eat bamboo"
	another = "and a fourth one sleeps"
)

// account makes an account that belongs to project one, and returns its first password.
func (h *harness) account(name string) string {
	h.t.Helper()
	_, err := h.admin.PutUser(h.t.Context(), &structs.User{Name: name})
	if err == nil {
		_, err = h.admin.SetMember(h.t.Context(), "one", api.MemberRequest{User: name, Role: structs.RoleUser})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	changed, err := h.admin.SetPassword(h.t.Context(), name, api.PasswordRequest{Reset: true})
	if err != nil {
		h.t.Fatal(err)
	}
	return changed.First
}

// stranger is a client without a token.
func (h *harness) stranger() *api.Client { return h.admin.WithToken("") }

// signIn signs in, and returns the token and a client that uses it.
func (h *harness) signIn(name, password string) (*structs.Token, *api.Client) {
	h.t.Helper()
	made, err := h.stranger().Login(h.t.Context(), api.LoginRequest{User: name, Password: password})
	if err != nil {
		h.t.Fatal(err)
	}
	return &made.Token, h.admin.WithToken(made.Secret)
}

// refusedAs fails unless an error is one of an id.
func refusedAs(t *testing.T, what string, err error, id string) {
	t.Helper()
	var refused *structs.Error
	if !errors.As(err, &refused) || refused.ID != id {
		t.Errorf("%s: %v, want %s", what, err, id)
	}
}

// A first password serves for one thing: to choose another.
func TestFirstPassword(t *testing.T) {
	h := newHarness(t)
	first := h.account("li")
	for what, c := range map[string]struct {
		body api.LoginRequest
		want string
	}{
		"a wrong one":              {api.LoginRequest{User: "li", Password: chosen}, "auth.sign_in_wrong"},
		"nobody's":                 {api.LoginRequest{User: "mei", Password: first}, "auth.sign_in_wrong"},
		"none":                     {api.LoginRequest{User: "li"}, "auth.sign_in_wrong"},
		"one that is far too long": {api.LoginRequest{User: "li", Password: strings.Repeat("x", 1000)}, "auth.sign_in_wrong"},
		"a name that is none":      {api.LoginRequest{User: "../li", Password: first}, "auth.sign_in_wrong"},
		"the first one alone":      {api.LoginRequest{User: "li", Password: first}, "auth.password_first"},
		"with a short one":         {api.LoginRequest{User: "li", Password: first, NewPassword: "short"}, "password.short"},
		"with itself":              {api.LoginRequest{User: "li", Password: first, NewPassword: first}, "password.same"},
		"with the name":            {api.LoginRequest{User: "li", Password: first, NewPassword: "li li li li li"}, "password.guessable"},
	} {
		_, err := h.stranger().Login(t.Context(), c.body)
		refusedAs(t, what, err, c.want)
	}
	made, err := h.stranger().Login(t.Context(), api.LoginRequest{User: "li", Password: first, NewPassword: chosen})
	if err != nil {
		t.Fatal(err)
	}
	if made.Token.Method != structs.MethodPassword || made.Token.From != "192.0.2.7" || made.Token.Role != structs.RoleAccount || made.Token.Hash != nil {
		t.Errorf("the token is %+v", made.Token)
	}
	self, err := h.admin.WithToken(made.Secret).Self(t.Context())
	if err != nil || self.Name != "li" || self.Project != "one" || self.Role != structs.RoleUser {
		t.Errorf("signed in as %+v, %v", self, err)
	}
	_, err = h.stranger().Login(t.Context(), api.LoginRequest{User: "li", Password: first, NewPassword: another})
	refusedAs(t, "the first one again", err, "auth.sign_in_wrong")
	h.signIn("li", chosen)
}

func TestFirstPasswordEnds(t *testing.T) {
	h := newHarness(t)
	first := h.account("li")
	h.replica.SetNow(h.replica.Now().Add(firstPasswordLife))
	_, err := h.stranger().Login(t.Context(), api.LoginRequest{User: "li", Password: first, NewPassword: chosen})
	refusedAs(t, "after three days", err, "auth.password_over")
}

// settled is an account whose holder has chosen a password.
func (h *harness) settled(name string) {
	h.t.Helper()
	if _, err := h.stranger().Login(h.t.Context(), api.LoginRequest{User: name, Password: h.account(name), NewPassword: chosen}); err != nil {
		h.t.Fatal(err)
	}
}

// Who may change whose password, and what ends by it.
func TestChangingPasswords(t *testing.T) {
	h := newHarness(t)
	h.settled("li")
	h.settled("mei")
	made := h.as(structs.RoleAccount, "", "li")
	_, here := h.signIn("li", chosen)
	_, elsewhere := h.signIn("li", chosen)
	_, mei := h.signIn("mei", chosen)

	_, err := mei.SetPassword(t.Context(), "li", api.PasswordRequest{Current: chosen, Password: another})
	if structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("mei changes li's: %v", err)
	}
	_, err = mei.SetPassword(t.Context(), "li", api.PasswordRequest{Reset: true})
	if structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("mei has one drawn for li: %v", err)
	}
	_, err = here.SetPassword(t.Context(), "li", api.PasswordRequest{Reset: true})
	if structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("li has one drawn, without knowing the one before: %v", err)
	}
	_, err = h.admin.SetPassword(t.Context(), "li", api.PasswordRequest{Current: chosen, Password: another})
	refusedAs(t, "an administrator chooses li's", err, "agent.password_of_another")
	_, err = h.admin.SetPassword(t.Context(), "nobody", api.PasswordRequest{Reset: true})
	if structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("of nobody: %v", err)
	}
	_, err = here.SetPassword(t.Context(), "li", api.PasswordRequest{Current: another, Password: another + "!"})
	refusedAs(t, "without knowing the one before", err, "agent.password_wrong")
	if _, err = here.SetPassword(t.Context(), "li", api.PasswordRequest{Current: chosen, Password: another}); err != nil {
		t.Fatal(err)
	}
	works := func(who *api.Client) bool {
		_, err := who.Self(t.Context())
		return err == nil
	}
	if !works(here) || works(elsewhere) || !works(made) || !works(mei) {
		t.Errorf("after the change: here %v, elsewhere %v, a token that was made %v, mei %v", works(here), works(elsewhere), works(made), works(mei))
	}
	_, err = h.stranger().Login(t.Context(), api.LoginRequest{User: "li", Password: chosen})
	refusedAs(t, "with the one before", err, "auth.sign_in_wrong")
	if _, err := h.admin.SetPassword(t.Context(), "li", api.PasswordRequest{Forget: true}); err != nil {
		t.Fatal(err)
	}
	if works(here) || !works(made) {
		t.Errorf("without a password: here %v, a token that was made %v", works(here), works(made))
	}
	_, err = h.stranger().Login(t.Context(), api.LoginRequest{User: "li", Password: another})
	refusedAs(t, "without a password", err, "auth.sign_in_wrong")
}

// Whoever is disabled, or belongs nowhere, gets no token.
func TestWhoMayNotSignIn(t *testing.T) {
	h := newHarness(t)
	h.settled("li")
	if _, err := h.admin.SetMember(t.Context(), "one", api.MemberRequest{User: "li"}); err != nil {
		t.Fatal(err)
	}
	before := len(h.tokens())
	_, err := h.stranger().Login(t.Context(), api.LoginRequest{User: "li", Password: chosen})
	refusedAs(t, "without a project", err, "auth.no_project")
	if _, err := h.admin.SetUserState(t.Context(), "li", api.UserStateRequest{Disabled: true}); err != nil {
		t.Fatal(err)
	}
	_, err = h.stranger().Login(t.Context(), api.LoginRequest{User: "li", Password: chosen})
	refusedAs(t, "disabled", err, "auth.user_disabled")
	_, err = h.stranger().Login(t.Context(), api.LoginRequest{User: "li", Password: another})
	refusedAs(t, "disabled, and guessed", err, "auth.sign_in_wrong")
	if after := len(h.tokens()); after > before {
		t.Errorf("%d tokens, before there were %d", after, before)
	}
}

func (h *harness) tokens() []structs.Token {
	h.t.Helper()
	list, _, err := h.admin.Tokens(h.t.Context(), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return list.Tokens
}

// A password that is changed while somebody signs in with the one before makes no token.
func TestSigningInIsComparedInTheLog(t *testing.T) {
	h := newHarness(t)
	h.settled("li")
	h.replica.Between(func() {
		h.submit(structs.CommandPasswordSet, &structs.PasswordSet{Password: structs.Password{User: "li"}, Forget: true})
	})
	_, err := h.stranger().Login(t.Context(), api.LoginRequest{User: "li", Password: chosen})
	refusedAs(t, "meanwhile taken away", err, "auth.sign_in_wrong")
}

// from sends a request from an address, and returns status, error id and headers.
func (h *harness) from(address, path string, body any) (int, string, http.Header) {
	h.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(h.t.Context(), http.MethodPost, "https://127.0.0.1"+path, strings.NewReader(string(data)))
	request.RemoteAddr = address + ":1234"
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(api.HeaderRequestedBy, "page")
	answer := httptest.NewRecorder()
	h.door.ServeHTTP(answer, request)
	var refused struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(answer.Body.Bytes(), &refused)
	return answer.Code, refused.ID, answer.Header()
}

// Guessing is held up by account and address, and holds up nobody who is signed in.
func TestGuessingIsHeldUp(t *testing.T) {
	h := newHarness(t)
	h.settled("li") // from 192.0.2.7
	h.settled("mei")
	held := 0
	for range 8 {
		_, id, header := h.from("198.51.100.1", "/v1/login", api.LoginRequest{User: "li", Password: another})
		if id == "auth.sign_in_wait" {
			if held++; header.Get("Retry-After") == "" {
				t.Error("it does not say for how long")
			}
		}
	}
	if held != 3 {
		t.Errorf("%d of eight guesses are held up, want 3", held)
	}
	if code, id, _ := h.from("198.51.100.1", "/v1/login", api.LoginRequest{User: "li", Password: chosen}); id != "auth.sign_in_wait" {
		t.Errorf("the right one after five wrong ones: %d %s", code, id)
	}
	if code, id, _ := h.from("192.0.2.7", "/v1/login", api.LoginRequest{User: "li", Password: chosen}); code != http.StatusOK {
		t.Errorf("at an address where li is signed in: %d %s", code, id)
	}
	if code, id, _ := h.from("198.51.100.1", "/v1/login", api.LoginRequest{User: "mei", Password: chosen}); code != http.StatusOK {
		t.Errorf("mei, from there: %d %s", code, id)
	}
	h.replica.SetNow(h.replica.Now().Add(time.Minute))
	if code, id, _ := h.from("198.51.100.1", "/v1/login", api.LoginRequest{User: "li", Password: chosen}); code != http.StatusOK {
		t.Errorf("a minute later: %d %s", code, id)
	}
}

// What a page signs in with a password makes ends with the page's sign-out.
func TestPagesSignInWithPasswords(t *testing.T) {
	h := newHarness(t)
	first := h.account("li")
	code, id, _ := h.from("192.0.2.7", "/v1/session", api.SessionRequest{User: "li", Password: first})
	if code != http.StatusConflict || id != "auth.password_first" {
		t.Fatalf("with a first password: %d %s", code, id)
	}
	if code, id, _ := h.from("192.0.2.7", "/v1/session", api.SessionRequest{User: "li", Password: first, Token: "x"}); id != "agent.sign_in_both" {
		t.Errorf("with a token, too: %d %s", code, id)
	}
	code, id, header := h.from("192.0.2.7", "/v1/session", api.SessionRequest{User: "li", Password: first, NewPassword: chosen})
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	if code != http.StatusOK || !strings.HasPrefix(cookie, "__Host-nomadlike=") {
		t.Fatalf("%d %s %q", code, id, cookie)
	}
	ask := func(method, path string) int {
		request := httptest.NewRequestWithContext(t.Context(), method, "https://127.0.0.1"+path, http.NoBody)
		request.RemoteAddr = "192.0.2.7:1234"
		request.Header.Set("Cookie", cookie)
		request.Header.Set(api.HeaderRequestedBy, "page")
		answer := httptest.NewRecorder()
		h.door.ServeHTTP(answer, request)
		return answer.Code
	}
	if got := ask(http.MethodGet, "/v1/self"); got != http.StatusOK {
		t.Fatalf("signed in: %d", got)
	}
	if got := ask(http.MethodDelete, "/v1/session"); got != http.StatusOK {
		t.Fatalf("sign out: %d", got)
	}
	for _, token := range h.tokens() {
		if token.User == "li" {
			t.Errorf("token %s outlives the sign-out", token.ID)
		}
	}
	if got := ask(http.MethodGet, "/v1/self"); got != http.StatusUnauthorized {
		t.Errorf("signed out: %d", got)
	}
}

// Tokens that a sign-in made last while they are used, and a month at most.
func TestTokensAreExtended(t *testing.T) {
	h := newHarness(t)
	h.settled("li")
	token, li := h.signIn("li", chosen)
	begin := h.replica.Now()
	for day := range 40 {
		h.replica.SetNow(begin.Add(time.Duration(day) * 24 * time.Hour))
		longer, err := li.ExtendToken(t.Context())
		if over := day >= 30; over != (structs.CodeOf(err) == structs.CodeUnauthorized) {
			t.Fatalf("on day %d: %v", day, err)
		} else if over {
			continue
		}
		want := min(structs.At(h.replica.Now().Add(signInLife)), token.EndsAt)
		if longer.ExpiresAt != want {
			t.Errorf("on day %d it lasts until %v, want %v", day, longer.ExpiresAt.Time(), want.Time())
		}
	}
	_, err := h.as(structs.RoleAccount, "", "li").ExtendToken(t.Context())
	refusedAs(t, "one that somebody made", err, "state.token_fixed")
}

// Whatever is asked for, no answer has what is known of passwords.
func TestPasswordsAreInNoAnswer(t *testing.T) {
	h := newHarness(t)
	h.settled("li")
	if _, err := h.admin.PutUser(t.Context(), &structs.User{Name: "root", Role: structs.RoleAdmin}); err != nil {
		t.Fatal(err)
	}
	secret, asked := h.secret("root"), 0
	for _, route := range api.Routes() {
		if route.Method != http.MethodGet || route.Stream != "" || route.Verb == api.VerbSnapshot || strings.Contains(route.Pattern, "raft") {
			continue
		}
		path := strings.ReplaceAll(route.Pattern, "{id}", "li")
		request := httptest.NewRequestWithContext(t.Context(), route.Method, "https://127.0.0.1"+path, http.NoBody)
		request.RemoteAddr = "192.0.2.7:1234"
		request.Header.Set("Authorization", "Bearer "+secret)
		answer := httptest.NewRecorder()
		if route.Kind == api.ObjectUser || route.Kind == api.ObjectToken || route.Kind == api.ObjectProject || route.Kind == api.ObjectEvent {
			h.door.ServeHTTP(answer, request)
			asked++
		}
		if strings.Contains(answer.Body.String(), "argon2id") {
			t.Errorf("%s has it", route.Name)
		}
	}
	if asked < 8 {
		t.Errorf("%d routes were asked", asked)
	}
	if password := h.replica.Store().Snapshot().Password("li"); password == nil || !strings.Contains(password.Hash, "argon2id") || auth.TokenMatches([]byte(password.Hash), chosen) {
		t.Errorf("stored as %+v", password)
	}
}

// A token of a program does what it is meant for, from where it is meant for, and makes
// none that does more.
func TestTokensAreLimited(t *testing.T) {
	h := newHarness(t)
	ask := func(address, secret, method, path string, body any) (int, string) {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), method, "https://127.0.0.1"+path, strings.NewReader(string(data)))
		request.RemoteAddr = address + ":1234"
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+secret)
		request.Header.Set("X-Nomadlike-For", "10.0.0.1") // which only a server is believed
		answer := httptest.NewRecorder()
		h.door.ServeHTTP(answer, request)
		var refused struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(answer.Body.Bytes(), &refused)
		return answer.Code, refused.ID
	}
	limited, err := h.admin.CreateToken(t.Context(), api.TokenRequest{
		Name: "ci", Role: structs.RoleUser, Project: "one", Verbs: []string{"submit", "read"}, Addresses: []string{"10.0.0.0/8"},
	})
	if err != nil {
		t.Fatal(err)
	}
	job := api.JobRequest{HCL: `job "ci" {
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "sleep 1"
  }
}`}
	for _, test := range []struct {
		address, method, path string
		body                  any
		want                  string
	}{
		{"10.2.3.4", http.MethodPost, "/v1/jobs", job, ""},
		{"10.2.3.4", http.MethodGet, "/v1/jobs/ci", nil, ""},
		{"10.2.3.4", http.MethodGet, "/v1/self", nil, ""},
		{"10.2.3.4", http.MethodGet, "/v1/jobs", nil, "auth.token_verb"},
		{"10.2.3.4", http.MethodPost, "/v1/jobs/ci/stop", api.JobStopRequest{}, "auth.token_verb"},
		{"192.0.2.7", http.MethodGet, "/v1/jobs/ci", nil, "auth.token_address"},
		{"192.0.2.7", http.MethodGet, "/v1/self", nil, "auth.token_address"},
	} {
		if code, id := ask(test.address, limited.Secret, test.method, test.path, test.body); id != test.want || (id == "") != (code == http.StatusOK) {
			t.Errorf("%s %s from %s: %d %s, want %q", test.method, test.path, test.address, code, id, test.want)
		}
	}
	if code, id, _ := h.from("192.0.2.7", "/v1/session", api.SessionRequest{Token: limited.Secret}); id != "auth.token_address" {
		t.Errorf("signing a page in from elsewhere: %d %s", code, id)
	}
	maker, err := h.admin.CreateToken(t.Context(), api.TokenRequest{Role: structs.RoleAdmin, Verbs: []string{"write"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.admin.WithToken(maker.Secret).CreateToken(t.Context(), api.TokenRequest{Role: structs.RoleAdmin})
	refusedAs(t, "a limited token makes one that is not", err, "auth.scope_grows")
	_, err = h.admin.CreateToken(t.Context(), api.TokenRequest{Role: structs.RoleAdmin, Verbs: []string{"fly"}})
	refusedAs(t, "a verb that is none", err, "auth.scope_verb")
	_, err = h.admin.CreateToken(t.Context(), api.TokenRequest{Role: structs.RoleAdmin, Addresses: []string{"gpu-head"}})
	refusedAs(t, "a name of a host", err, "auth.scope_address")
}
