package oidc

import (
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/openid"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// realProvider runs a provider, and configures it.
func realProvider(t *testing.T) (*openid.Provider, Config) {
	t.Helper()
	server := openid.Start(t, "https://cluster.test/sign-in/platform")
	return server, Config{
		Name: "platform", Issuer: server.URL, ClientID: openid.Web, ClientSecret: openid.Secret, Scopes: ScopesDefault(),
		Transport: server.Client().Transport, Now: time.Now, Rand: rand.Text,
	}
}

// signInAt does what grace does in a browser, and returns what the browser brings back.
func signInAt(t *testing.T, server *openid.Provider, address string) url.Values {
	t.Helper()
	return server.SignIn(t, address, openid.Name, openid.Password).Query()
}

func answerOf(query url.Values) *Answer {
	return &Answer{Code: query.Get("code"), State: query.Get("state"), Issuer: query.Get("iss"), Error: query.Get("error")}
}

// failed reports the message id of a failure.
func failed(err error) string {
	var refused *structs.Error
	if !errors.As(err, &refused) {
		return ""
	}
	return refused.ID
}

// grace is what the provider says of her.
func grace() *auth.External {
	return &auth.External{Subject: "grace", Name: "grace", DisplayName: "Grace Hopper", Email: "grace@example.com", Groups: []string{"staff", "vision"}}
}

func TestSignInAtARealProvider(t *testing.T) {
	server, config := realProvider(t)
	p := New(config)
	address, pending, err := p.Begin(t.Context(), "https://cluster.test/sign-in/platform")
	if err != nil {
		t.Fatal(err)
	}
	asked, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := asked.Query()
	if query.Get("code_challenge_method") != "S256" || query.Get("nonce") == "" || query.Get("state") == "" || strings.Contains(address, pending.Verifier) || strings.Contains(address, string(config.ClientSecret)) {
		t.Errorf("what the browser is sent with: %v", query)
	}
	back := signInAt(t, server, address)
	who, err := p.Finish(t.Context(), pending, answerOf(back))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(grace(), who); diff != "" {
		t.Errorf("who signed in (-want +got):\n%s", diff)
	}
	// The provider, too, takes a code once.
	if _, err := p.Finish(t.Context(), pending, answerOf(back)); failed(err) != "oidc.refused" {
		t.Errorf("the code once more: %v", err)
	}
}

// What a browser brings back belongs to one sign-in, of one provider.
func TestAnswersOfOthersAreRefused(t *testing.T) {
	server, config := realProvider(t)
	p := New(config)
	const redirect = "https://cluster.test/sign-in/platform"
	address, pending, err := p.Begin(t.Context(), redirect)
	if err != nil {
		t.Fatal(err)
	}
	_, another, err := p.Begin(t.Context(), redirect)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := config
	elsewhere.Name = "lab"
	lab := New(elsewhere)
	good := answerOf(signInAt(t, server, address))
	with := func(change func(*Answer)) *Answer {
		changed := *good
		change(&changed)
		return &changed
	}
	mended := *pending
	mended.Verifier = strings.Repeat("x", 43)
	for name, try := range map[string]struct {
		provider *Provider
		pending  *Pending
		answer   *Answer
		want     string
	}{
		"of another's sign-in":      {p, another, good, "oidc.wrong_state"},
		"without a state":           {p, pending, with(func(a *Answer) { a.State = "" }), "oidc.wrong_state"},
		"without a code":            {p, pending, with(func(a *Answer) { a.Code = "" }), "oidc.wrong_state"},
		"an endless code":           {p, pending, with(func(a *Answer) { a.Code = strings.Repeat("x", codeMax+1) }), "oidc.wrong_state"},
		"brought to another":        {lab, pending, good, "oidc.wrong_state"},
		"said by another issuer":    {p, pending, with(func(a *Answer) { a.Issuer = "https://evil.test" }), "oidc.wrong_issuer"},
		"the person said no":        {p, pending, with(func(a *Answer) { a.Code, a.Error = "", "access_denied" }), "oidc.refused"},
		"without the PKCE verifier": {p, &mended, good, "oidc.refused"},
	} {
		if who, err := try.provider.Finish(t.Context(), try.pending, try.answer); failed(err) != try.want || who != nil {
			t.Errorf("%s: %v, %v; want %s", name, who, err, try.want)
		}
	}
}

func TestSignInWithoutABrowser(t *testing.T) {
	server, config := realProvider(t)
	config.ClientID = openid.Device
	p := New(config)
	code, pending, err := p.BeginDevice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if code.UserCode == "" || !strings.HasPrefix(code.Address, server.URL) || code.Every != 5*time.Second {
		t.Fatalf("what the person is told: %+v", code)
	}
	if who, _, err := p.Poll(t.Context(), pending); who != nil || err != nil {
		t.Fatalf("before anybody typed the code: %v, %v", who, err)
	}
	server.TypeCode(t, code.UserCode)
	who, _, err := p.Poll(t.Context(), pending)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(grace(), who); diff != "" {
		t.Errorf("who signed in (-want +got):\n%s", diff)
	}
}

// A provider that is away hinders nobody else, and what it said before will do.
func TestProviderThatIsAway(t *testing.T) {
	server, config := realProvider(t)
	var away atomic.Bool
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	config.Now = func() time.Time { return time.Unix(0, now.Load()) }
	config.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if away.Load() {
			return nil, io.ErrUnexpectedEOF
		}
		return server.Client().Transport.RoundTrip(r)
	})
	p := New(config)
	away.Store(true)
	if _, _, err := p.Begin(t.Context(), "https://cluster.test/sign-in/platform"); failed(err) != "oidc.unreachable" || structs.CodeOf(err) != structs.CodeUnavailable {
		t.Errorf("a provider that is away: %v", err)
	}
	away.Store(false)
	if _, _, err := p.Begin(t.Context(), "https://cluster.test/sign-in/platform"); err != nil {
		t.Fatalf("a provider that is back: %v", err)
	}
	away.Store(true)
	now.Add(int64(2 * freshFor))
	if _, _, err := p.Begin(t.Context(), "https://cluster.test/sign-in/platform"); err != nil {
		t.Errorf("a provider that is known: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
