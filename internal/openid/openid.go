// Package openid runs a real OpenID Connect provider for tests: that of zitadel, on a
// socket, over TLS.
//
// It knows grace, of the groups vision and staff, and eve, who is in none. SignIn, TypeCode
// and SignOut do what somebody would do in a browser. It sends people who sign out to the
// home pages of the hosts that they may come back to after signing in.
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
	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/text/language"
)

// What the provider knows.
const (
	Web      = "cluster"  // client whose pages people come back to
	Terminal = "terminal" // client of command lines: a public one, which loopback addresses go with
	Device   = "device"   // client that people sign in to without a browser
	Secret   = "the-client-secret"

	Name     = "grace"
	Stranger = "eve" // in no group
	Password = "a long password"
)

// Groups are those of grace.
func Groups() []string { return []string{"staff", "vision"} }

// Provider is a provider that runs.
type Provider struct{ *httptest.Server }

// Start starts a provider that sends people back to these addresses, until the test ends.
func Start(t testing.TB, redirects ...string) *Provider {
	t.Helper()
	before := slog.Default() // which the example replaces
	t.Cleanup(func() { slog.SetDefault(before) })
	provider := Run(redirects...)
	t.Cleanup(provider.Close)
	return provider
}

// Run starts a provider that sends people back to these addresses, until it is closed.
func Run(redirects ...string) *Provider {
	SendsTo(redirects...)
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	server.Config.Handler = exampleop.SetupServer(server.URL, directory{storage.NewStorage(people{})}, slog.New(slog.DiscardHandler), false)
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
	user := &storage.User{ID: id, Username: id, Password: Password, EmailVerified: true, PreferredLanguage: language.English}
	switch id {
	case Name:
		user.FirstName, user.LastName, user.Email = "Grace", "Hopper", "grace@example.com"
	case Stranger:
		user.FirstName, user.LastName, user.Email = "Eve", "Other", "eve@example.com"
	default:
		return nil
	}
	return user
}

func (p people) GetUserByUsername(name string) *storage.User { return p.GetUserByID(name) }

func (people) ExampleClientID() string { return storage.ServiceUserID }

// directory adds groups to what the provider says of people, and to its clients where they
// send people who sign out.
type directory struct{ *storage.Storage }

func (d directory) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	if subject == Name {
		info.AppendClaims("groups", Groups())
	}
	return d.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin)
}

func (d directory) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := d.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{found}, nil
}

// client is one that people may be sent home from.
type client struct{ op.Client }

func (c client) PostLogoutRedirectURIs() (homes []string) {
	for _, redirect := range c.RedirectURIs() {
		if at, err := url.Parse(redirect); err == nil && at.Scheme == "https" {
			homes = append(homes, "https://"+at.Host+"/")
		}
	}
	return homes
}

// SignOut does what a browser does that is sent to where one signs out, and returns where it
// is sent on to.
func (p *Provider) SignOut(t testing.TB, address string) *url.URL {
	t.Helper()
	browser := p.browser(t)
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	to, err := answer.Location()
	if err != nil {
		t.Fatalf("the provider sends nobody on from %s: %s", address, answer.Status)
	}
	return to
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
