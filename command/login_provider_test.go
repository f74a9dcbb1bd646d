package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// cluster answers as servers do whose provider takes everybody.
type cluster struct {
	*httptest.Server
	mu     sync.Mutex
	begun  api.LoginBeginRequest
	login  []api.LoginRequest
	device []string // message ids to answer before the token
	ends   string   // where one signs out at the provider
	gone   []string // tokens that are revoked
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := new(cluster)
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var answer any
	switch r.URL.Path {
	case "/v1/login/begin":
		_ = json.NewDecoder(r.Body).Decode(&c.begun)
		begun := api.LoginBegun{Pending: "sealed", Address: "https://provider.test/auth?state=the-state", ExpiresAt: structs.At(time.Now().Add(time.Minute))}
		if c.begun.Device {
			begun.Address, begun.UserCode = "https://provider.test/device", "ABCD-EFGH"
		}
		answer = begun
	case "/v1/login":
		var asked api.LoginRequest
		_ = json.NewDecoder(r.Body).Decode(&asked)
		c.login = append(c.login, asked)
		if len(c.device) > 0 {
			id := c.device[0]
			c.device = c.device[1:]
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(structs.Error{Code: structs.CodeConflict, ID: id, Message: id})
			return
		}
		answer = api.NewToken{Secret: "nl_user_made"}
	case "/v1/tokens/self":
		answer = structs.Token{ID: "t1", Method: structs.MethodOIDC, Provider: "platform", User: "grace"}
	case "/v1/tokens/t1":
		c.gone = append(c.gone, r.Method+" t1")
		answer = api.TokenDeleted{Index: 7, Address: c.ends}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// shown is what a person sees, as it comes.
type shown struct {
	mu   sync.Mutex
	text bytes.Buffer
	came chan struct{} // gets one for each write
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.came <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (c *cluster) env(t *testing.T, variables map[string]string) (*Env, *api.Client, *shown) {
	t.Helper()
	client, err := api.New(api.Config{Address: c.URL, RetryFor: -1, HTTPClient: c.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	screen := &shown{came: make(chan struct{}, 1)}
	env := &Env{
		Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &Screen{Writer: io.Discard}, Stderr: &Screen{Writer: screen},
		Getenv: func(name string) string { return variables[name] }, Language: messages.English,
	}
	return env, client, screen
}

func waysOf(device bool, port int) *providerFlags {
	return &providerFlags{device: &device, port: &port}
}

// The command line waits on its own machine for the browser, and for nobody else.
func TestLoginByBrowser(t *testing.T) {
	c := newCluster(t)
	opened := filepath.Join(t.TempDir(), "opened")
	browser := filepath.Join(t.TempDir(), "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\nprintf %s \"$1\" >"+opened+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env, client, screen := c.env(t, map[string]string{"BROWSER": browser})
	type result struct {
		secret string
		err    error
	}
	done := make(chan result, 1)
	go func() {
		secret, err := env.signInBy(client, "platform", waysOf(false, 0))
		done <- result{secret, err}
	}()
	<-screen.came
	if text := screen.String(); !strings.Contains(text, "https://provider.test/auth?state=the-state") {
		t.Errorf("the person sees %q", text)
	}
	c.mu.Lock()
	back, err := url.Parse(c.begun.Redirect)
	c.mu.Unlock()
	if err != nil || back.Hostname() != "127.0.0.1" || back.Path != "/signed-in" {
		t.Fatalf("the browser comes back to %s, %v", back, err)
	}
	come := func(change func(*http.Request)) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, back.String()+"?code=the-code&state=the-state&iss=x", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(request)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	for name, change := range map[string]func(*http.Request){
		"another state":  func(r *http.Request) { r.URL.RawQuery = "code=evil&state=another" },
		"no state":       func(r *http.Request) { r.URL.RawQuery = "code=evil" },
		"another path":   func(r *http.Request) { r.URL.Path = "/" },
		"another name":   func(r *http.Request) { r.Host = "evil.test:" + back.Port() },
		"another method": func(r *http.Request) { r.Method = http.MethodPost },
	} {
		if status, _ := come(change); status != http.StatusNotFound {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status, text := come(func(*http.Request) {}); status != http.StatusOK || !strings.Contains(text, "terminal") || strings.Contains(text, "the-code") {
		t.Errorf("the browser shows %d %q", status, text)
	}
	got := <-done
	if got.err != nil || got.secret != "nl_user_made" {
		t.Fatalf("signed in: %+v", got)
	}
	want := api.LoginRequest{Provider: "platform", Pending: "sealed", Answer: &api.ProviderAnswer{Code: "the-code", State: "the-state", Issuer: "x"}}
	if len(c.login) != 1 || *c.login[0].Answer != *want.Answer || c.login[0].Pending != want.Pending || c.login[0].Provider != want.Provider {
		t.Errorf("the servers got %+v", c.login)
	}
	eventually.Within(t, 30*time.Second, "open the browser", func() bool {
		text, err := os.ReadFile(opened)
		return err == nil && string(text) == "https://provider.test/auth?state=the-state"
	})
}

// Where there is no screen a code is typed elsewhere.
func TestLoginByCode(t *testing.T) {
	c := newCluster(t)
	c.device = []string{"oidc.device_waits"}
	env, client, screen := c.env(t, map[string]string{"DISPLAY": ":0", "SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"})
	secret, err := env.signInBy(client, "platform", waysOf(false, 0))
	if err != nil || secret != "nl_user_made" || len(c.login) != 2 {
		t.Fatalf("%q, %v after %d questions", secret, err, len(c.login))
	}
	if text := screen.String(); !regexp.MustCompile(`https://provider\.test/device\b.*ABCD-EFGH`).MatchString(strings.ReplaceAll(text, "\n", " ")) {
		t.Errorf("the person sees %q", text)
	}
	c.device = []string{"oidc.refused"}
	if _, err := env.signInBy(client, "platform", waysOf(true, 0)); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a refusal: %v", err)
	}
}

// Whoever interrupts the command has it end.
func TestLoginIsInterrupted(t *testing.T) {
	c := newCluster(t)
	env, client, screen := c.env(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	env.Context = ctx
	done := make(chan error, 1)
	go func() {
		_, err := env.signInBy(client, "platform", waysOf(false, freePort(t)))
		done <- err
	}()
	<-screen.came
	cancel()
	if err := <-done; err == nil {
		t.Error("the command ended as if somebody had signed in")
	}
}

// freePort is a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var port int
	if err := json.Unmarshal([]byte(address.Port()), &port); err != nil {
		t.Fatal(err)
	}
	return port
}

// Whoever signs out is told where to sign out at the provider, too, if that is an address
// that a browser may be sent to.
func TestLogoutTellsOfTheProvider(t *testing.T) {
	c := newCluster(t)
	for ends, want := range map[string]string{
		"": "signed out; the token is revoked\n",
		"https://provider.test/end?client_id=cluster": "signed out; the token is revoked\nyou are signed in at the provider still; to sign out there, too, open\nhttps://provider.test/end?client_id=cluster\n",
		"javascript:alert(1)":                         "signed out; the token is revoked\n",
	} {
		dir := t.TempDir()
		env, client, _ := c.env(t, map[string]string{"NOMADLIKE_CONFIG_DIR": dir})
		var out bytes.Buffer
		env.Stdout = &Screen{Writer: &out}
		c.ends, c.gone = ends, nil
		remembered := api.Context{Address: c.URL, Token: "nl_user_made"}
		if _, err := env.saveContext(remembered); err != nil {
			t.Fatal(err)
		}
		if err := env.signOut(client, remembered); err != nil || out.String() != want || len(c.gone) != 1 {
			t.Errorf("%q: %v, %v: %q", ends, err, c.gone, out.String())
		}
		if kept, err := env.loadContext(); err != nil || kept.Token != "" {
			t.Errorf("%q is remembered, %v", kept.Token, err)
		}
	}
}
