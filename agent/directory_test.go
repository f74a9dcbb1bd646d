package agent

import (
	"context"
	"fmt"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/directories"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// People of a directory sign in at any server; guesses at one person count together,
// whichever servers hear them; and while the directory is away nobody is told that a
// password is wrong.
func TestSigningInThroughADirectoryAtAnyServer(t *testing.T) {
	slapd := directories.StartSlapd(t)
	searcher, base, ca, project, role := directories.Searcher, "ou=people,"+directories.Suffix, slapd.CA(), "one", structs.RoleUser
	password := slapd.Write("password", directories.SearcherWord, 0o600)
	const count = 3
	with := func(settings config.Settings) config.Settings {
		settings.Server.SignIn = &config.SignInBlock{LDAP: []config.LDAPBlock{{
			Name: "company", Servers: []string{slapd.TLS}, CAFile: &ca, BindDN: &searcher, BindPasswordFile: &password, Users: &config.LDAPUsersBlock{Base: &base},
			Grants: []config.GrantBlock{{Group: "cn=research,ou=groups," + directories.Suffix, Project: &project, Role: &role}},
		}}}
		return settings
	}
	options := testOptions(t)
	servers := []*Agent{startAgent(t, with(serverSettings(t.TempDir(), "server-0", count, nil)), options)}
	joins := readJoin(t, servers[0], joinServer)
	for _, name := range []string{"server-1", "server-2"} {
		servers = append(servers, startAgent(t, with(serverSettings(t.TempDir(), name, count, &joins)), testOptions(t)))
	}
	stranger := func(server *Agent) *api.Client {
		client, err := api.New(api.Config{Address: "https://" + server.Addr(), CAPEM: servers[0].CA(), RetryFor: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return client
	}
	signIn := func(ctx context.Context, server *Agent, name, password string) (*api.NewToken, string) {
		made, err := stranger(server).Login(ctx, api.LoginRequest{Provider: "company", User: name, Password: password})
		id := refusalOf(err)
		if err != nil && id == "" {
			id = err.Error()
		}
		return made, id
	}
	eventually.Within(t, time.Minute, "the directory lets somebody in", func() bool {
		_, id := signIn(t.Context(), servers[0], "ann", "ann's word")
		return id == ""
	})
	for i, server := range servers {
		made, id := signIn(t.Context(), server, "ann", "ann's word")
		if id != "" || made.Token.User != "ann" || made.Token.Provider != "company" {
			t.Errorf("at server %d: %q", i, id)
		}
	}
	// Five guesses at bob, at one server after the other: the directory hears of four.
	var said []string
	for i := range 5 {
		_, id := signIn(t.Context(), servers[i%count], "bob", fmt.Sprintf("guess %d", i))
		said = append(said, id)
	}
	want := []string{"auth.directory_wrong", "auth.directory_wrong", "auth.directory_wrong", "auth.directory_wrong", "auth.sign_in_wait"}
	if fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("guesses at three servers are answered %v", said)
	}
	for i, server := range servers {
		if _, id := signIn(t.Context(), server, "bob", "bob's word"); id != "auth.sign_in_wait" {
			t.Errorf("bob, after that, at server %d: %q", i, id)
		}
	}
	slapd.Stop()
	for i, server := range servers {
		if _, id := signIn(t.Context(), server, "ann", "ann's word"); id != "auth.directory_away" {
			t.Errorf("without the directory, at server %d: %q", i, id)
		}
	}
	slapd.Start()
	// The server that founded the cluster is away: the others let people in.
	if err := servers[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 2} {
		eventually.Within(t, time.Minute, "sign in without one server", func() bool {
			_, id := signIn(t.Context(), servers[i], "ann", "ann's word")
			return id == ""
		})
	}
}
