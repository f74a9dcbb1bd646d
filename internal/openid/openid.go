// Package openid runs a real OpenID Connect provider for tests: that of zitadel, on a
// socket, over TLS.
//
// It knows grace, of the groups vision and staff. SignIn and TypeCode do what she would do
// in a browser.
//
// Limits: one client of each kind; the provider forgets everything when the test ends.
package openid

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/text/language"
)

// What the provider knows.
const (
	Web      = "cluster"  // client whose pages people come back to
	Terminal = "terminal" // client of command lines: a public one, which loopback addresses go with
	Device   = "device"   // client that people sign in to without a browser
	Secret   = "the-client-secret"

	Name     = "grace"
	Password = "a long password"
)

// Groups are those of grace.
func Groups() []string { return []string{"staff", "vision"} }

// Provider is a provider that runs.
type Provider struct{ *httptest.Server }

// Start starts a provider that sends people back to these addresses, until the test ends.
func Start(t testing.TB, redirects ...string) *Provider {
	t.Helper()
	SendsTo(redirects...)
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	before := slog.Default() // which the example replaces
	server.Config.Handler = exampleop.SetupServer(server.URL, directory{storage.NewStorage(people{})}, slog.New(slog.DiscardHandler), false)
	t.Cleanup(func() { slog.SetDefault(before) })
	return &Provider{server}
}

// SendsTo has providers send people back to these addresses, and to no others but those
// of command lines.
func SendsTo(redirects ...string) {
	storage.RegisterClients(storage.WebClient(Web, Secret, redirects...), storage.NativeClient(Terminal, append([]string{"http://127.0.0.1/signed-in"}, redirects...)...),
		storage.DeviceClient(Device, Secret))
}

// people are those that the provider knows.
type people struct{}

func (people) GetUserByID(id string) *storage.User {
	if id != Name {
		return nil
	}
	return &storage.User{
		ID: Name, Username: Name, Password: Password, FirstName: "Grace", LastName: "Hopper",
		Email: "grace@example.com", EmailVerified: true, PreferredLanguage: language.English,
	}
}

func (p people) GetUserByUsername(name string) *storage.User { return p.GetUserByID(name) }

func (people) ExampleClientID() string { return storage.ServiceUserID }

// directory adds groups to what the provider says of people.
type directory struct{ *storage.Storage }

func (d directory) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	info.AppendClaims("groups", Groups())
	return d.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin)
}

// SignIn does what a person does in a browser that is sent to an address of the provider,
// and returns where it is sent back to.
func (p *Provider) SignIn(t testing.TB, address, name, password string) *url.URL {
	t.Helper()
	browser := p.browser(t)
	browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host != strings.TrimPrefix(p.URL, "https://") {
			return http.ErrUseLastResponse // it is sent back
		}
		return nil
	}
	form := read(t)(browser.Get(address))
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(form)
	if id == nil {
		t.Fatalf("the provider shows no form:\n%s", form)
	}
	answer, err := browser.PostForm(p.URL+"/login/username", url.Values{"username": {name}, "password": {password}, "id": {id[1]}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	back, err := answer.Location()
	if err != nil {
		t.Fatalf("the provider sends nobody back: %s", answer.Status)
	}
	return back
}

// TypeCode does what a person does with a code that a program without a browser shows.
func (p *Provider) TypeCode(t testing.TB, code string) {
	t.Helper()
	browser := p.browser(t)
	read(t)(browser.PostForm(p.URL+"/device/login", url.Values{"user_code": {code}, "username": {Name}, "password": {Password}}))
	read(t)(browser.Get(p.URL + "/device/confirm?action=allowed"))
}

func (p *Provider) browser(t testing.TB) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: p.Client().Transport, Jar: jar}
}

// read reads what a browser shows.
func read(t testing.TB) func(*http.Response, error) string {
	return func(answer *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		page, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(page)
	}
}
