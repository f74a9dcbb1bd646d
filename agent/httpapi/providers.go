package httpapi

import (
	"context"
	"slices"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/auth/oidc"
	"nomadlike/nomadlike/structs"
)

// Provider is something outside of the cluster that says who somebody is.
type Provider struct {
	Name    string
	Kind    string // structs.MethodLDAP | structs.MethodOIDC
	Caption string
	Rules   []auth.Rule
	Fold    func(group string) string // of auth.Grants; may be nil

	Directory Directory      // of kind ldap; nil: it takes no passwords
	Relying   *oidc.Provider // of kind oidc; nil: nobody is sent there
}

// Directory finds out whose a name and a password are.
type Directory interface {
	// Ask returns who signs in with a name, where the password is theirs. Before the
	// password is tried, found is told whom the name stands for; its error ends the
	// try. What is wrong with name or password is the refusal auth.sign_in_wrong, the
	// same whatever it is.
	Ask(ctx context.Context, name, password string, found func(subject string) error) (*auth.External, error)
}

// through is how the record of who did what says that a sign-in went.
func (p *Provider) through() string { return p.Kind + ":" + p.Name }

// signInNameMax bounds the names that directories are asked for, in bytes.
const signInNameMax = 256

// list answers login.list.
func (h *loginHandlers) list(*front.Request) (*api.LoginProviders, error) {
	out := api.LoginProviders{Providers: []api.LoginProvider{}}
	for i := range h.providers {
		p := &h.providers[i]
		out.Providers = append(out.Providers, api.LoginProvider{Name: p.Name, Kind: p.Kind, Caption: p.Caption})
	}
	return &out, nil
}

// provider finds a provider by its name.
func (h *loginHandlers) provider(name string) (*Provider, error) {
	at := slices.IndexFunc(h.providers, func(p Provider) bool { return p.Name == name })
	if at >= 0 {
		return &h.providers[at], nil
	}
	names := make([]string, len(h.providers))
	for i := range h.providers {
		names[i] = h.providers[i].Name
	}
	if len(names) == 0 {
		return nil, structs.NewError(structs.CodeNotFound, "auth.provider_none")
	}
	if !structs.PlainText(name, signInNameMax) {
		name = "?"
	}
	return nil, structs.NewError(structs.CodeNotFound, "auth.provider_unknown", "provider", name, "providers", strings.Join(names, ", "))
}

// throughDirectory signs in whoever a directory knows by name and password.
func (h *loginHandlers) throughDirectory(r *front.Request, body *api.LoginRequest) (string, structs.Token, error) {
	none := structs.Token{}
	provider, err := h.provider(body.Provider)
	switch {
	case err != nil:
		return "", none, err
	case provider.Directory == nil:
		return "", none, structs.NewError(structs.CodeInvalid, "auth.provider_no_password", "provider", provider.Name)
	case body.NewPassword != "":
		return "", none, structs.NewError(structs.CodeInvalid, "auth.provider_new_password", "provider", provider.Name)
	}
	r.Through = provider.through()
	wrong := structs.NewError(structs.CodeUnauthorized, "auth.directory_wrong", "provider", provider.Name)
	// An empty password is none: directories take it for a bind as nobody, and say yes.
	name, _ := auth.AccountName(body.User)
	if name == "" || body.Password == "" || len(body.Password) > structs.PasswordBytesMax || !structs.PlainText(name, signInNameMax) {
		return "", none, wrong
	}
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return "", none, err
	}
	address := front.Origin(r.Request)
	type counted struct {
		user  string
		known bool
	}
	var tries []counted
	// try counts for whom the name stands, so that several names of one person are no
	// more tries than one.
	try := func(user string) error {
		if slices.ContainsFunc(tries, func(c counted) bool { return c.user == user }) {
			return nil
		}
		one := counted{user, knownAt(snapshot, user, address, h.now())}
		tries = append(tries, one)
		return h.guess(one.user, address, one.known)
	}
	if err := try(name); err != nil {
		return "", none, err
	}
	person, known := "", ""
	who, err := provider.Directory.Ask(r.Context(), name, body.Password, func(subject string) error {
		person = provider.Name + "\x00" + subject
		as := person
		if account := snapshot.UserOf(provider.Name, subject); account != nil {
			r.Object.Kind, r.ID = auth.ObjectUser, account.Name // for the record; what is nobody's name may be a password
			as = account.Name
			if knownAt(snapshot, as, address, h.now()) {
				known = address
			}
		}
		if err := try(as); err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if wait := h.mu.tries.Wait(person, known, h.now()); wait > 0 {
			return front.TooMany(structs.CodeUnauthorized, "auth.sign_in_wait", wait)
		}
		return nil
	})
	if err != nil {
		return "", none, err
	}
	h.mu.Lock()
	h.mu.tries.Passed(person, known)
	h.mu.Unlock()
	for _, one := range tries {
		h.right(one.user, address, one.known)
	}
	return h.admit(r, provider, who)
}

// admit signs in whom a provider vouches for: the account is found or made, gets what
// the provider's rules give, and a token.
func (h *loginHandlers) admit(r *front.Request, provider *Provider, who *auth.External) (string, structs.Token, error) {
	none := structs.Token{}
	r.Through = provider.through()
	in, refusal := auth.SignInOf(provider.Name, provider.Rules, who, provider.Fold)
	if refusal != nil {
		return "", none, refusal
	}
	secret, token, err := h.token(r, provider.Kind, in.Name)
	if err != nil {
		return "", none, err
	}
	in.Token = token
	_, index, err := h.replica.SubmitGuarded(r.Context(), structs.Guard{}, structs.CommandSignIn, in.Name, in)
	if err != nil {
		return "", none, err
	}
	snapshot := h.store.Snapshot()
	stored := snapshot.Token(token.ID)
	if stored == nil {
		return "", none, structs.NewError(structs.CodeForbidden, "auth.identity_no_grant", "user", in.Name, "provider", provider.Name)
	}
	caller, err := h.callers.stand(snapshot, stored, "")
	if err != nil {
		return "", none, err
	}
	r.Object.Kind, r.ID = auth.ObjectUser, stored.User
	h.log.Info("signed in", logkey.User, stored.User, logkey.TokenID, stored.ID, logkey.Addr, stored.From, logkey.Method, stored.Method, logkey.Provider, provider.Name)
	r.Caller = caller // for the record
	r.SetIndex(index)
	r.Made(stored.ID)
	return secret, *stored, nil
}

// identify answers users.identity.
func (h *loginHandlers) identify(r *front.Request, user *structs.User, body *api.IdentityRequest) (*api.Changed, error) {
	if user.CreateIndex == 0 {
		return nil, auth.NotFound(auth.ObjectUser, r.ID)
	}
	if body.Subject != "" {
		if _, err := h.provider(body.Provider); err != nil {
			return nil, err
		}
		if id := structs.SubjectProblem(body.Subject); id != "" {
			return nil, structs.NewError(structs.CodeInvalid, id, "max", structs.SubjectMax)
		}
	}
	return h.change(r, structs.CommandUserIdentity, structs.UserIdentity{User: user.Name, Provider: body.Provider, Subject: body.Subject})
}
