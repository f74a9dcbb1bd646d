package agent

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/eventually"
	"nomadlike/internal/openid"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// providerFiles writes what a configuration of a provider names.
func providerFiles(t *testing.T, provider *openid.Provider, secret string) (secretFile, caFile string) {
	t.Helper()
	dir := t.TempDir()
	secretFile, caFile = filepath.Join(dir, "secret"), filepath.Join(dir, "ca.pem")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw})
	for path, text := range map[string][]byte{secretFile: []byte(secret), caFile: authority} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return secretFile, caFile
}

// signInWith is the configuration of a provider that is asked over real sockets.
func signInWith(provider *openid.Provider, client, secretFile, caFile string) *config.SignInBlock {
	project, role := "one", structs.RoleUser
	return &config.SignInBlock{OIDC: []config.OIDCBlock{{
		Name: "platform", Issuer: provider.URL, ClientID: client, ClientSecretFile: &secretFile, CAFile: &caFile,
		Grants: []config.GrantBlock{{Group: "vision", Project: &project, Role: &role}},
	}}}
}

// A sign-in begins at one server and is finished at another: once, at whichever.
func TestSigningInThroughAProviderAtAnyServer(t *testing.T) {
	provider := openid.Start(t)
	secretFile, caFile := providerFiles(t, provider, openid.Secret+"\n")
	const count = 3
	with := func(join *config.Settings) config.Settings {
		join.Server.SignIn = signInWith(provider, openid.Web, secretFile, caFile)
		return *join
	}
	first := serverSettings(t.TempDir(), "server-0", count, nil)
	servers := []*Agent{startAgent(t, with(&first), testOptions(t))}
	joins := readJoin(t, servers[0], joinServer)
	for _, name := range []string{"server-1", "server-2"} {
		more := serverSettings(t.TempDir(), name, count, &joins)
		servers = append(servers, startAgent(t, with(&more), testOptions(t)))
	}
	var redirects []string
	for _, server := range servers {
		redirects = append(redirects, "https://"+server.Addr()+"/sign-in/platform")
	}
	openid.SendsTo(redirects...)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	page := &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities(t, servers[0].CA())}}}
	post := func(server *Agent, path string, body, into any) (id string) {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+server.Addr()+path, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(api.HeaderRequestedBy, "ui")
		request.Header.Set("Content-Type", "application/json")
		answer, err := page.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode == http.StatusOK {
			err = json.NewDecoder(answer.Body).Decode(into)
		} else {
			refused := new(structs.Error)
			err = json.NewDecoder(answer.Body).Decode(refused)
			id = refused.ID
		}
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	var begun api.SessionBegun
	eventually.Within(t, time.Minute, "begin a sign-in", func() bool {
		return post(servers[1], "/v1/session/begin", api.SessionBeginRequest{Provider: "platform"}, &begun) == ""
	})
	back := provider.SignIn(t, begun.Address, openid.Name, openid.Password)
	if back.Host != servers[1].Addr() {
		t.Errorf("the browser comes back to %s, not to %s", back, servers[1].Addr())
	}
	kept := jar.Cookies(&url.URL{Scheme: "https", Host: servers[1].Addr()})
	query := back.Query()
	finish := api.SessionRequest{Provider: "platform", Answer: &api.ProviderAnswer{Code: query.Get("code"), State: query.Get("state"), Issuer: query.Get("iss")}}
	var session api.Session
	var id string
	eventually.Within(t, time.Minute, "reach the leader", func() bool {
		id = post(servers[2], "/v1/session", finish, &session)
		return id != "agent.no_server" // a leader that was just elected; nothing has used the answer then
	})
	if id != "" || session.Token.User != openid.Name || session.Token.Method != structs.MethodOIDC {
		t.Fatalf("%q: %+v", id, session)
	}
	for i, server := range servers {
		jar.SetCookies(&url.URL{Scheme: "https", Host: server.Addr()}, kept)
		if id := post(server, "/v1/session", finish, &session); id != "oidc.begin_again" {
			t.Errorf("once more, at server %d: %q", i, id)
		}
	}
	// Nobody but a server says for which pages a sign-in is begun.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+servers[0].Addr()+"/v1/login/begin", strings.NewReader(`{"provider":"platform"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(api.HeaderRequestedBy, "ui") // the browser has a session
	request.Header.Set(front.HeaderPage, "evil.test")
	for _, server := range servers {
		request.URL.Host, request.Host = server.Addr(), ""
		request.Body = io.NopCloser(strings.NewReader(`{"provider":"platform"}`))
		answer, err := page.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var refused structs.Error
		err = json.NewDecoder(answer.Body).Decode(&refused)
		if closed := answer.Body.Close(); err != nil || closed != nil || refused.ID != "oidc.redirect" {
			t.Errorf("a stranger names the pages: %q, %v, %v", refused.ID, err, closed)
		}
	}
}

func authorities(t *testing.T, pem []byte) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("the CA of the cluster is none")
	}
	return pool
}

func TestFilesOfProviders(t *testing.T) {
	provider := openid.Start(t)
	secretFile, caFile := providerFiles(t, provider, openid.Secret+"\n")
	load := func(secretFile, caFile string) error {
		_, err := relyingOn(&config.OIDC{Provider: config.Provider{Name: "platform"}, Issuer: provider.URL, ClientID: openid.Web, ClientSecretFile: secretFile, CAFile: caFile})
		return err
	}
	if err := load(secretFile, caFile); err != nil {
		t.Error(err)
	}
	open, empty := filepath.Join(t.TempDir(), "open"), filepath.Join(t.TempDir(), "empty")
	if err := errors.Join(os.WriteFile(open, []byte("x"), 0o644), os.Chmod(open, 0o644), os.WriteFile(empty, []byte("\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"read by others": load(open, caFile), "empty": load(empty, caFile), "missing": load(open+"x", caFile), "no authority": load(secretFile, secretFile), "no file of authorities": load(secretFile, open+"x"),
	} {
		var refused *structs.Error
		if !errors.As(err, &refused) || refused.ID != "agent.refuse.oidc_file" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
