package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// people is a directory in memory: by what they sign in with.
type people struct {
	known map[string]*auth.External
	asked []string // NAME of each password that was tried
	err   error
}

const theirs = "their password there"

// Ask implements Directory.
func (p *people) Ask(_ context.Context, name, password string, found func(string) error) (*auth.External, error) {
	if p.err != nil {
		return nil, p.err
	}
	who := p.known[name]
	if who == nil {
		return nil, structs.NewError(structs.CodeUnauthorized, "auth.directory_wrong", "provider", "company")
	}
	if err := found(who.Subject); err != nil {
		return nil, err
	}
	p.asked = append(p.asked, name)
	if password != theirs {
		return nil, structs.NewError(structs.CodeUnauthorized, "auth.directory_wrong", "provider", "company")
	}
	return who, nil
}

// company is a provider of which groups ml and leads mean something.
func company(p *people) Provider {
	return Provider{Name: "company", Kind: structs.MethodLDAP, Caption: "Company directory", Directory: p, Rules: []auth.Rule{
		{Group: "ml", Project: "vision", Role: structs.RoleUser}, {Group: "leads", Project: "vision", Role: structs.RoleProjectAdmin}, {Group: "ops", Role: structs.RoleOperator},
	}}
}

func through(name, password string) api.LoginRequest {
	return api.LoginRequest{User: name, Password: password, Provider: "company"}
}

// The first sign-in makes an account, each has it as the directory says.
func TestSigningInThroughADirectory(t *testing.T) {
	ann := &auth.External{Subject: "u-1", Name: "Ann", DisplayName: "Ann Lee", Email: "ann@corp.example", Groups: []string{"ml", "ops"}}
	h := newHarness(t, company(&people{known: map[string]*auth.External{"ann": ann}}), Provider{Name: "platform", Kind: structs.MethodOIDC})
	list, err := h.stranger().LoginProviders(t.Context())
	if err != nil || !slices.Equal(list.Providers, []api.LoginProvider{{Name: "company", Kind: "ldap", Caption: "Company directory"}, {Name: "platform", Kind: "oidc"}}) {
		t.Errorf("there are %+v, %v", list, err)
	}
	made, err := h.stranger().Login(t.Context(), through(" ANN ", theirs))
	if err != nil {
		t.Fatal(err)
	}
	token := &made.Token
	if token.Method != structs.MethodLDAP || token.Provider != "company" || token.User != "ann" || token.From != "192.0.2.7" || token.Role != structs.RoleAccount || token.Hash != nil ||
		token.ExpiresAt != structs.At(h.replica.Now().Add(signInLife)) || token.EndsAt != structs.At(h.replica.Now().Add(signInEnds)) {
		t.Errorf("the token is %+v", token)
	}
	here := h.admin.WithToken(made.Secret)
	self, err := here.Self(t.Context())
	if err != nil || self.Name != "ann" || self.Project != "vision" || self.Role != structs.RoleUser || self.Cluster != structs.RoleOperator || self.User.DisplayName != "Ann Lee" || self.User.Email != ann.Email {
		t.Errorf("signed in as %+v, %v", self, err)
	}
	if _, err := here.ExtendToken(t.Context()); err != nil {
		t.Errorf("the token is not extended: %v", err)
	}
	// What the account says of itself by its own hand leaves alone who it is.
	profile := *self.User
	profile.Language, profile.Identities = "zh", []structs.Identity{{Provider: "company", Subject: "u-2", Role: structs.RoleAdmin}}
	if _, err := here.PutUser(t.Context(), &profile); err != nil {
		t.Fatal(err)
	}
	if user := h.replica.Store().Snapshot().User("ann"); user.Language != "zh" || user.ClusterRole() != structs.RoleOperator || user.Identities[0].Subject != "u-1" {
		t.Errorf("by its own hand the account became %+v", user)
	}
	// Out of the groups, out of the projects; also for what is signed in.
	ann.Groups = []string{"leads"}
	if _, err := h.stranger().Login(t.Context(), through("ann", theirs)); err != nil {
		t.Fatal(err)
	}
	if self, err = here.Self(t.Context()); err != nil || self.Role != structs.RoleProjectAdmin || self.Cluster != "" {
		t.Errorf("another group makes it %+v, %v", self, err)
	}
	ann.Groups = []string{"somebody's own"}
	_, err = h.stranger().Login(t.Context(), through("ann", theirs))
	refusedAs(t, "without a group", err, "auth.identity_no_grant")
	if _, err = here.Self(t.Context()); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("what was signed in still acts: %v", err)
	}
	if _, err := h.admin.SetUserState(t.Context(), "ann", api.UserStateRequest{Disabled: true}); err != nil {
		t.Fatal(err)
	}
	ann.Groups = []string{"ml"}
	_, err = h.stranger().Login(t.Context(), through("ann", theirs))
	refusedAs(t, "a disabled account", err, "auth.user_disabled")
}

// A name that somebody has here is nobody's there, until an administrator says so.
func TestNamesOfDirectoriesAreNoAccounts(t *testing.T) {
	root := &auth.External{Subject: "u-9", Name: "li", Groups: []string{"ml"}}
	odd := &auth.External{Subject: "u-8", Name: "li lei", Groups: []string{"ml"}}
	h := newHarness(t, company(&people{known: map[string]*auth.External{"li": root, "odd": odd}}))
	h.settled("li")
	_, err := h.stranger().Login(t.Context(), through("li", theirs))
	refusedAs(t, "a name that is taken", err, "auth.identity_name_taken")
	if !strings.Contains(fmt.Sprint(errorParams(err)), "u-9") {
		t.Errorf("the refusal does not say whom to link: %v", errorParams(err))
	}
	_, err = h.stranger().Login(t.Context(), through("odd", theirs))
	refusedAs(t, "a name that cannot be", err, "auth.identity_name")
	for what, c := range map[string]struct {
		by   *api.Client
		body api.IdentityRequest
		want string
	}{
		"by the account itself":   {h.as(structs.RoleAccount, "", "li"), api.IdentityRequest{Provider: "company", Subject: "u-9"}, "auth.forbidden.role"},
		"to a provider of no one": {h.admin, api.IdentityRequest{Provider: "nowhere", Subject: "u-9"}, "auth.provider_unknown"},
		"to a subject of lines":   {h.admin, api.IdentityRequest{Provider: "company", Subject: "u\n9"}, "user.subject"},
		"that is not there, away": {h.admin, api.IdentityRequest{Provider: "company"}, "state.identity_unknown"},
	} {
		_, err := c.by.SetIdentity(t.Context(), "li", c.body)
		refusedAs(t, what, err, c.want)
	}
	if _, err := h.admin.SetIdentity(t.Context(), "li", api.IdentityRequest{Provider: "company", Subject: "u-9"}); err != nil {
		t.Fatal(err)
	}
	made, err := h.stranger().Login(t.Context(), through("li", theirs))
	if err != nil {
		t.Fatal(err)
	}
	member := func() string { return h.replica.Store().Snapshot().Project("vision").RoleOf("li") }
	_, err = h.admin.SetMember(t.Context(), "vision", api.MemberRequest{User: "li"})
	refusedAs(t, "who belongs by a rule is not removed by hand", err, "agent.member_granted")
	if _, err := h.admin.SetIdentity(t.Context(), "li", api.IdentityRequest{Provider: "company"}); err != nil || member() != "" {
		t.Errorf("after the link is gone, li is %q of vision: %v", member(), err)
	}
	if _, err := h.admin.WithToken(made.Secret).Self(t.Context()); structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("what the link signed in lives on: %v", err)
	}
}

// Guesses are counted for whom a name stands, whatever they call themselves, and before
// the directory hears of them: it may lock people out.
func TestGuessingAtADirectory(t *testing.T) {
	ann := &auth.External{Subject: "u-1", Name: "ann", Groups: []string{"ml"}}
	directory := &people{known: map[string]*auth.External{"ann": ann, "ann@corp.example": ann}}
	h := newHarness(t, company(directory))
	for _, c := range []api.LoginRequest{
		{User: "ann", Provider: "company"},
		{User: "", Password: theirs, Provider: "company"},
		{User: "ann\x00", Password: theirs, Provider: "company"},
		{User: strings.Repeat("a", 1000), Password: theirs, Provider: "company"},
		{User: "ann", Password: strings.Repeat("a", 1000), Provider: "company"},
		{User: "nobody", Password: theirs, Provider: "company"},
	} {
		_, err := h.stranger().Login(t.Context(), c)
		refusedAs(t, fmt.Sprintf("%.12q with %.12q", c.User, c.Password), err, "auth.directory_wrong")
	}
	if len(directory.asked) > 0 {
		t.Errorf("the directory tried passwords of %v", directory.asked)
	}
	for range 20 {
		for _, name := range []string{"ann", "ANN", "ann@corp.example"} {
			_, err := h.stranger().Login(t.Context(), through(name, "a guess"))
			if structs.CodeOf(err) != structs.CodeUnauthorized {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if len(directory.asked) != 4 {
		t.Errorf("the directory tried %d guesses at one person: %v", len(directory.asked), directory.asked)
	}
	h.replica.SetNow(h.replica.Now().Add(time.Hour))
	if _, err := h.stranger().Login(t.Context(), through("ann", theirs)); err != nil {
		t.Errorf("after an hour: %v", err)
	}
}

func TestProvidersThatTakeNoPasswords(t *testing.T) {
	away := structs.NewError(structs.CodeUnavailable, "auth.directory_away", "provider", "company")
	h := newHarness(t, company(&people{err: away}), Provider{Name: "platform", Kind: structs.MethodOIDC})
	_, err := h.stranger().Login(t.Context(), api.LoginRequest{User: "ann", Password: theirs, Provider: "platform"})
	refusedAs(t, "a provider of browsers", err, "auth.provider_no_password")
	_, err = h.stranger().Login(t.Context(), api.LoginRequest{User: "ann", Password: theirs, Provider: "nowhere"})
	refusedAs(t, "no provider", err, "auth.provider_unknown")
	_, err = h.stranger().Login(t.Context(), api.LoginRequest{User: "ann", Password: theirs, NewPassword: another, Provider: "company"})
	refusedAs(t, "a new password", err, "auth.provider_new_password")
	_, err = h.stranger().Login(t.Context(), through("ann", theirs))
	refusedAs(t, "a directory that is away", err, "auth.directory_away")
	_, err = newHarness(t).stranger().Login(t.Context(), through("ann", theirs))
	refusedAs(t, "without providers", err, "auth.provider_none")
}

func errorParams(err error) map[string]string {
	var refused *structs.Error
	if !errors.As(err, &refused) {
		return nil
	}
	return refused.Params
}
