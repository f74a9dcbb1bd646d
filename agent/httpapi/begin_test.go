package httpapi

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/openid"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/auth/oidc"
	"nomadlike/nomadlike/structs"
)

const pages = "https://127.0.0.1" // of the harness

// platform is a provider that runs, of which group vision means something.
func platform(server *openid.Provider, client, secret string) Provider {
	return Provider{Name: "platform", Kind: structs.MethodOIDC, Rules: []auth.Rule{{Group: "vision", Project: "vision", Role: structs.RoleUser}}, Relying: oidc.New(oidc.Config{
		Name: "platform", Issuer: server.URL, ClientID: client, ClientSecret: oidc.Secret(secret), Scopes: oidc.ScopesDefault(),
		Transport: server.Client().Transport, Now: time.Now, Rand: rand.Text,
	})}
}

// tab is a browser at the pages, with what it keeps.
type tab struct {
	t      *testing.T
	client *http.Client
	jar    *cookiejar.Jar
}

func (h *harness) tab() *tab {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return &tab{h.t, &http.Client{Transport: h, Jar: jar}, jar}
}

// post sends what the page would, and reports the message id of a refusal, "" for none.
func (p *tab) post(path string, body, into any) string {
	p.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, pages+path, bytes.NewReader(data))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set(api.HeaderRequestedBy, "ui")
	request.Header.Set("Content-Type", "application/json")
	return p.send(request, into)
}

func (p *tab) send(request *http.Request, into any) string {
	p.t.Helper()
	answer, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		var refused structs.Error
		if err := json.Unmarshal(text, &refused); err != nil {
			p.t.Fatalf("%d %s", answer.StatusCode, text)
		}
		return refused.ID
	}
	if err := json.Unmarshal(text, into); err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	return ""
}

// begin has the page begin a sign-in, and returns where it sends the browser.
func (p *tab) begin() string {
	p.t.Helper()
	var begun api.SessionBegun
	if id := p.post("/v1/session/begin", api.SessionBeginRequest{Provider: "platform"}, &begun); id != "" {
		p.t.Fatal(id)
	}
	return begun.Address
}

// finish brings the page an answer of the provider.
func (p *tab) finish(query url.Values) string {
	p.t.Helper()
	var session api.Session
	return p.post("/v1/session", api.SessionRequest{Provider: "platform", Answer: broughtBack(query)}, &session)
}

func broughtBack(query url.Values) *api.ProviderAnswer {
	return &api.ProviderAnswer{Code: query.Get("code"), State: query.Get("state"), Issuer: query.Get("iss"), Error: query.Get("error")}
}

// self is whom the page is signed in as, "" for nobody.
func (p *tab) self() string {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, pages+"/v1/self", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	var self api.Self
	p.send(request, &self)
	return self.Name
}

// cookies are the names and values that the page keeps.
func (p *tab) cookies() map[string]string {
	at, err := url.Parse(pages)
	if err != nil {
		p.t.Fatal(err)
	}
	kept := map[string]string{}
	for _, cookie := range p.jar.Cookies(at) {
		kept[cookie.Name] = cookie.Value
	}
	return kept
}

func TestABrowserSignsInAtAProvider(t *testing.T) {
	server := openid.Start(t, pages+"/sign-in/platform")
	h := newHarness(t, platform(server, openid.Web, openid.Secret))
	p := h.tab()
	address := p.begin()
	if !strings.HasPrefix(address, server.URL+"/") || strings.Contains(address, openid.Secret) {
		t.Fatalf("the browser goes to %s", address)
	}
	begun := p.cookies()["__Host-nomadlike-begun"]
	if begun == "" || strings.Contains(address, begun) {
		t.Fatalf("the page keeps %v", p.cookies())
	}
	back := server.SignIn(t, address, openid.Name, openid.Password)
	if got := back.Scheme + "://" + back.Host + back.Path; got != pages+"/sign-in/platform" {
		t.Fatalf("the browser comes back to %s", got)
	}
	if id := p.finish(back.Query()); id != "" {
		t.Fatal(id)
	}
	if p.self() != openid.Name || p.cookies()["__Host-nomadlike-begun"] != "" {
		t.Errorf("signed in as %q, with %v", p.self(), p.cookies())
	}
	snapshot := h.replica.Store().Snapshot()
	user := snapshot.UserOf("platform", openid.Name)
	if user == nil || user.DisplayName != "Grace Hopper" || user.Email != "grace@example.com" || snapshot.Project("vision").RoleOf(openid.Name) != structs.RoleUser {
		t.Errorf("the account is %+v", user)
	}
	// The same once more is nobody: neither in this browser, which has forgotten what it
	// began, nor in one that has not.
	if id := p.finish(back.Query()); id != "oidc.begin_again" {
		t.Errorf("the same answer again: %q", id)
	}
	kept := api.LoginRequest{Provider: "platform", Pending: begun, Answer: broughtBack(back.Query())}
	if _, err := h.stranger().Login(t.Context(), kept); refusal(err) != "oidc.begin_again" {
		t.Errorf("the same answer with what was begun: %v", err)
	}
}

// refusal is the message id of an error, "" for none.
func refusal(err error) string {
	var refused *structs.Error
	if !errors.As(err, &refused) {
		return ""
	}
	return refused.ID
}

// Nobody is signed in as another by a link, and whoever was signed in before is not any more.
func TestLinksSignNobodyIn(t *testing.T) {
	server := openid.Start(t, pages+"/sign-in/platform")
	h := newHarness(t, platform(server, openid.Web, openid.Secret), Provider{Name: "lab", Kind: structs.MethodOIDC, Relying: platform(server, openid.Web, openid.Secret).Relying})
	evil, victim := h.tab(), h.tab()
	back := server.SignIn(t, evil.begin(), openid.Name, openid.Password).Query()
	if id := victim.finish(back); id != "oidc.begin_again" {
		t.Errorf("in a browser that began nothing: %q", id)
	}
	own := victim.begin()
	if id := victim.finish(back); id != "oidc.wrong_state" || victim.self() != "" {
		t.Errorf("in a browser that began another sign-in: %q", id)
	}
	// That has not spent what the victim began.
	theirs := server.SignIn(t, own, openid.Name, openid.Password).Query()
	var session api.Session
	if id := victim.post("/v1/session", api.SessionRequest{Provider: "lab", Answer: broughtBack(theirs)}, &session); id != "oidc.wrong_state" {
		t.Errorf("brought to another provider: %q", id)
	}
	if id := victim.finish(theirs); id != "" {
		t.Fatal(id)
	}
	before := victim.cookies()["__Host-nomadlike"]
	again := server.SignIn(t, victim.begin(), openid.Name, openid.Password).Query()
	if id := victim.finish(again); id != "" {
		t.Fatal(id)
	}
	fixed := h.tab()
	at, err := url.Parse(pages)
	if err != nil {
		t.Fatal(err)
	}
	fixed.jar.SetCookies(at, []*http.Cookie{{Name: "__Host-nomadlike", Value: before, Path: "/", Secure: true}})
	if after := victim.cookies()["__Host-nomadlike"]; after == before || after == "" || fixed.self() != "" {
		t.Errorf("a session from before the sign-in lives on, as %q", fixed.self())
	}
	// A form on another site can set no header.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, pages+"/v1/session/begin", strings.NewReader(`{"provider":"platform"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if id := victim.send(request, nil); id != "agent.request_header" {
		t.Errorf("a form begins a sign-in: %q", id)
	}
}

// A command line waits on its own machine, and nowhere else.
func TestACommandLineSignsInAtAProvider(t *testing.T) {
	server := openid.Start(t, pages+"/sign-in/platform")
	h := newHarness(t, platform(server, openid.Terminal, ""))
	for _, redirect := range []string{"", "http://localhost:4000/signed-in", "https://evil.test/sign-in/platform", pages + "/sign-in/platform", "http://127.0.0.1:4000/elsewhere"} {
		if _, err := h.stranger().BeginLogin(t.Context(), api.LoginBeginRequest{Provider: "platform", Redirect: redirect}); refusal(err) != "oidc.redirect" {
			t.Errorf("waits at %q: %v", redirect, err)
		}
	}
	begun, err := h.stranger().BeginLogin(t.Context(), api.LoginBeginRequest{Provider: "platform", Redirect: "http://127.0.0.1:43210/signed-in"})
	if err != nil {
		t.Fatal(err)
	}
	back := server.SignIn(t, begun.Address, openid.Name, openid.Password)
	if back.Host != "127.0.0.1:43210" || back.Path != "/signed-in" {
		t.Fatalf("the browser comes back to %s", back)
	}
	request := api.LoginRequest{Provider: "platform", Pending: begun.Pending, Answer: broughtBack(back.Query())}
	without := request
	without.Answer = nil
	if _, err := h.stranger().Login(t.Context(), without); refusal(err) != "oidc.wrong_state" {
		t.Errorf("without an answer: %v", err)
	}
	made, err := h.stranger().Login(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if made.Token.Method != structs.MethodOIDC || made.Token.Provider != "platform" || made.Token.User != openid.Name {
		t.Errorf("the token is %+v", made.Token)
	}
	self, err := h.admin.WithToken(made.Secret).Self(t.Context())
	if err != nil || self.Name != openid.Name || self.Project != "vision" {
		t.Errorf("signed in as %+v, %v", self, err)
	}
}

func TestACommandLineWithoutABrowserSignsIn(t *testing.T) {
	server := openid.Start(t, pages+"/sign-in/platform")
	h := newHarness(t, platform(server, openid.Device, openid.Secret), Provider{Name: "company", Kind: structs.MethodLDAP})
	if _, err := h.stranger().BeginLogin(t.Context(), api.LoginBeginRequest{Provider: "company", Device: true}); refusal(err) != "oidc.not_here" {
		t.Errorf("at a directory: %v", err)
	}
	begun, err := h.stranger().BeginLogin(t.Context(), api.LoginBeginRequest{Provider: "platform", Device: true})
	if err != nil {
		t.Fatal(err)
	}
	request := api.LoginRequest{Provider: "platform", Pending: begun.Pending}
	for range 3 { // the provider is asked once
		if _, err := h.stranger().Login(t.Context(), request); refusal(err) != "oidc.device_waits" {
			t.Errorf("before the code is typed: %v", err)
		}
	}
	if begun.UserCode == "" || !strings.HasPrefix(begun.Address, server.URL) || begun.Every != structs.Duration(5*time.Second) {
		t.Errorf("the person is told %+v", begun)
	}
}

// Out of the groups, out of the projects; nobody without any signs in.
func TestGroupsOfAProviderRule(t *testing.T) {
	server := openid.Start(t, pages+"/sign-in/platform")
	strict := platform(server, openid.Web, openid.Secret)
	strict.Rules = []auth.Rule{{Group: "another", Project: "vision", Role: structs.RoleUser}}
	h := newHarness(t, strict)
	p := h.tab()
	if id := p.finish(server.SignIn(t, p.begin(), openid.Name, openid.Password).Query()); id != "auth.identity_no_grant" || p.self() != "" {
		t.Errorf("without a group: %q", id)
	}
	if names := slices.Collect(h.replica.Store().Snapshot().Users()); len(names) != 0 {
		t.Errorf("an account was made: %v", names)
	}
}

// Signing out goes on at the provider, which sends a browser back to the pages that it asked
// at, and to none that anybody names; a command line is told where.
func TestSigningOutGoesOnAtTheProvider(t *testing.T) {
	server := openid.Start(t, pages+"/sign-in/platform")
	there := func(client, secret string) Provider {
		p := platform(server, client, secret)
		p.Relying = oidc.New(oidc.Config{
			Name: "platform", Issuer: server.URL, ClientID: client, ClientSecret: oidc.Secret(secret), Scopes: oidc.ScopesDefault(), EndSession: true,
			Transport: server.Client().Transport, Now: time.Now, Rand: rand.Text,
		})
		return p
	}
	h := newHarness(t, there(openid.Web, openid.Secret))
	p := h.tab()
	out := func(query string) (ended api.SessionEnded) {
		t.Helper()
		if id := p.finish(server.SignIn(t, p.begin(), openid.Name, openid.Password).Query()); id != "" {
			t.Fatal(id)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, pages+"/v1/session"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(api.HeaderRequestedBy, "ui")
		request.Header.Set("X-Forwarded-Host", "evil.test")
		request.Header.Set("Referer", "https://evil.test/")
		if id := p.send(request, &ended); id != "" {
			t.Fatal(id)
		}
		return ended
	}
	ended := out("")
	if to := server.SignOut(t, ended.Address); !strings.HasPrefix(ended.Address, server.URL+"/") || to.String() != pages+"/" || p.self() != "" {
		t.Errorf("by %s the browser comes to %s, signed in as %q", ended.Address, to, p.self())
	}
	if again := out("?post_logout_redirect_uri=https://evil.test/&to=https://evil.test/"); again != ended {
		t.Errorf("a link that names where to go ends at %s", again.Address)
	}

	terminal := newHarness(t, there(openid.Terminal, ""))
	begun, err := terminal.stranger().BeginLogin(t.Context(), api.LoginBeginRequest{Provider: "platform", Redirect: "http://127.0.0.1:43210/signed-in"})
	if err != nil {
		t.Fatal(err)
	}
	back := server.SignIn(t, begun.Address, openid.Name, openid.Password)
	request := api.LoginRequest{Provider: "platform", Pending: begun.Pending, Answer: broughtBack(back.Query())}
	made, err := terminal.stranger().Login(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := terminal.admin.WithToken(made.Secret).DeleteToken(t.Context(), made.Token.ID)
	if err != nil {
		t.Fatal(err)
	}
	if to := server.SignOut(t, gone.Address); strings.Contains(gone.Address, "redirect") || to.Path != "/logged-out" || "https://"+to.Host != server.URL {
		t.Errorf("by %s the browser comes to %s", gone.Address, to)
	}
}

// Whoever revokes another's token is not signed out anywhere.
func TestRevokingAnothersTokenSignsNobodyOut(t *testing.T) {
	server := openid.Start(t, pages+"/sign-in/platform")
	one := platform(server, openid.Web, openid.Secret)
	one.Relying = oidc.New(oidc.Config{
		Name: "platform", Issuer: server.URL, ClientID: openid.Web, ClientSecret: openid.Secret, Scopes: oidc.ScopesDefault(), EndSession: true,
		Transport: server.Client().Transport, Now: time.Now, Rand: rand.Text,
	})
	h := newHarness(t, one)
	p := h.tab()
	if id := p.finish(server.SignIn(t, p.begin(), openid.Name, openid.Password).Query()); id != "" {
		t.Fatal(id)
	}
	for token := range h.replica.Store().Snapshot().Tokens() {
		if token.User != openid.Name {
			continue
		}
		gone, err := h.admin.DeleteToken(t.Context(), token.ID)
		if err != nil || gone.Address != "" || p.self() != "" {
			t.Errorf("an administrator is sent to %+v, %v; %q is signed in", gone, err, p.self())
		}
	}
}
