package httpapi

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/auth/oidc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// How long what people sign in with lasts.
const (
	signInLife        = 7 * 24 * time.Hour  // of a token that is not used
	signInEnds        = 30 * 24 * time.Hour // of one that is: then one signs in again
	firstPasswordLife = 72 * time.Hour      // of a password that was drawn

	hashesMax = 2 // at a time: each takes auth.PasswordCost
)

// loginHandlers sign people in, and change their passwords. All of it happens on
// the leader: what was guessed wrong counts whichever server was asked.
type loginHandlers struct {
	*core
	callers *callers
	rand    io.Reader
	cost    auth.Cost
	hashing chan struct{} // a place for each hash

	providers []Provider
	desk      *oidc.Desk    // of sign-ins that go on at a provider
	asking    chan struct{} // a place for each question to such a provider

	mu struct {
		sync.Mutex
		guesses auth.Guesses
		tries   auth.Tries // of directories
	}
}

func newLoginHandlers(all *core, c *Config) *loginHandlers {
	h := &loginHandlers{
		core: all, callers: &callers{replica: all.replica, store: all.store, now: all.now}, rand: c.Rand, cost: c.PasswordCost, hashing: make(chan struct{}, hashesMax),
		providers: c.Providers, desk: oidc.NewDesk(c.Door.Now), asking: make(chan struct{}, askedMax),
	}
	if h.cost == (auth.Cost{}) {
		h.cost = auth.PasswordCost()
	}
	return h
}

// create answers login.create.
func (h *loginHandlers) create(r *front.Request, body *api.LoginRequest) (*api.NewToken, error) {
	secret, token, err := h.signIn(r, body)
	if err != nil {
		return nil, err
	}
	return &api.NewToken{Token: front.WithoutHash(token), Secret: secret}, nil
}

// signIn makes a token for whoever knows an account's password, or is known to a
// directory.
func (h *loginHandlers) signIn(r *front.Request, body *api.LoginRequest) (string, structs.Token, error) {
	if body.Pending != "" {
		return h.throughBrowser(r, body)
	}
	if body.Provider != "" {
		return h.throughDirectory(r, body)
	}
	none := structs.Token{}
	if structs.UserNameProblem(body.User) != "" || body.Password == "" || len(body.Password) > structs.PasswordBytesMax {
		return "", none, structs.NewError(structs.CodeUnauthorized, "auth.sign_in_wrong") // nobody's
	}
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return "", none, err
	}
	user := snapshot.User(body.User)
	if user != nil {
		r.Object.Kind, r.ID = auth.ObjectUser, user.Name // for the record; what is nobody's name may be a password
	}
	password, err := h.check(r, snapshot, body.User, body.Password)
	switch {
	case err != nil:
		return "", none, err
	case user == nil || password == nil:
		return "", none, structs.NewError(structs.CodeUnauthorized, "auth.sign_in_wrong")
	case user.Disabled:
		return "", none, structs.NewError(structs.CodeUnauthorized, "auth.user_disabled", "user", user.Name)
	}
	if password.First {
		if snapshot, err = h.replaceFirst(r, password, body); err != nil {
			return "", none, err
		}
		if user = snapshot.User(body.User); user == nil {
			return "", none, structs.NewError(structs.CodeUnauthorized, "auth.sign_in_wrong")
		}
	}
	secret, token, err := h.token(r, structs.MethodPassword, user.Name)
	if err != nil {
		return "", none, err
	}
	caller, err := h.callers.stand(snapshot, &token, "")
	if err != nil {
		return "", none, err // an account that may do nothing anywhere
	}
	guard := structs.Guard{Rests: []structs.Rest{{Kind: structs.RestUser, ID: user.Name, Index: user.ModifyIndex}}}
	_, index, err := h.replica.SubmitGuarded(r.Context(), guard, structs.CommandTokenPut, user.Name, structs.TokenPut{Token: token})
	if err != nil {
		return "", none, err
	}
	h.log.Info("signed in", logkey.User, user.Name, logkey.TokenID, token.ID, logkey.Addr, token.From, logkey.Method, token.Method)
	r.Caller = caller // for the record
	r.SetIndex(index)
	r.Made(token.ID)
	return secret, token, nil
}

// token draws what a sign-in makes.
func (h *loginHandlers) token(r *front.Request, method, user string) (string, structs.Token, error) {
	secret, token, err := NewToken(h.rand, h.now(), auth.TokenUser, api.TokenRequest{
		Name: "sign-in", Role: string(auth.RoleAccount), User: user, TTL: structs.Duration(signInLife),
	}, user)
	token.Method, token.From, token.EndsAt = method, front.Origin(r.Request), structs.At(h.now().Add(signInEnds))
	return secret, token, err
}

// check reports what is known of an account's password where the given one is right,
// nil where it is not. Whoever guesses has to wait, see auth.Guesses.
func (h *loginHandlers) check(r *front.Request, snapshot *state.Snapshot, user, given string) (*structs.Password, error) {
	address, stored := front.Origin(r.Request), snapshot.Password(user)
	known := knownAt(snapshot, user, address, h.now())
	if err := h.guess(user, address, known); err != nil {
		return nil, err
	}
	text := ""
	if stored != nil {
		text = stored.Hash
	}
	right, err := hashed(h, r.Context(), func() (bool, error) { return h.cost.Matches(text, given) })
	if err != nil || !right {
		return nil, err
	}
	h.right(user, address, known)
	return stored, nil
}

// guess counts a try of a password before it is known whether it is right: many at
// once are many. It refuses one that has to wait.
func (h *loginHandlers) guess(user, address string, known bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if wait := h.mu.guesses.Wait(user, address, known, h.now()); wait > 0 {
		return front.TooMany(structs.CodeUnauthorized, "auth.sign_in_wait", wait)
	}
	h.mu.guesses.Failed(user, address, known, h.now())
	return nil
}

// right takes back what guess counted.
func (h *loginHandlers) right(user, address string, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.guesses.Passed(user, address, known)
}

// hashed does what hashes a password when there is a place for it.
func hashed[T any](h *loginHandlers, ctx context.Context, do func() (T, error)) (out T, err error) {
	select {
	case h.hashing <- struct{}{}:
	case <-ctx.Done():
		return out, structs.NewError(structs.CodeUnavailable, "auth.sign_in_busy").Because(ctx.Err())
	}
	defer func() { <-h.hashing }()
	return do()
}

// knownAt reports whether an account is signed in at an address.
func knownAt(snapshot *state.Snapshot, user, address string, now time.Time) bool {
	for token := range snapshot.Tokens() {
		if token.User == user && token.Method != "" && token.From == address && structs.At(now) < token.ExpiresAt {
			return true
		}
	}
	return false
}

// replaceFirst puts the password that somebody chose in the place of the one that was
// drawn for them, and returns the state after that.
func (h *loginHandlers) replaceFirst(r *front.Request, first *structs.Password, body *api.LoginRequest) (*state.Snapshot, error) {
	switch {
	case first.Until != 0 && structs.At(h.now()) >= first.Until:
		return nil, structs.NewError(structs.CodeUnauthorized, "auth.password_over", "user", body.User, "at", first.Until.Time().Format(time.RFC3339))
	case body.NewPassword == "":
		return nil, structs.NewError(structs.CodeConflict, "auth.password_first", "min", structs.PasswordLengthMin)
	}
	if err := choosable(body.User, body.Password, body.NewPassword); err != nil {
		return nil, err
	}
	stored, err := hashed(h, r.Context(), func() (string, error) { return h.cost.Hash(body.NewPassword, h.rand) })
	if err != nil {
		return nil, err
	}
	user := h.store.Snapshot().User(body.User)
	if user == nil {
		return nil, structs.NewError(structs.CodeUnauthorized, "auth.sign_in_wrong")
	}
	guard := structs.Guard{Rests: []structs.Rest{{Kind: structs.RestUser, ID: user.Name, Index: user.ModifyIndex}}}
	_, _, err = h.replica.SubmitGuarded(r.Context(), guard, structs.CommandPasswordSet, user.Name,
		structs.PasswordSet{Password: structs.Password{User: user.Name, Hash: stored}})
	if err != nil {
		return nil, err
	}
	return h.store.Snapshot(), nil
}

// choosable refuses a new password that is none, or the one before.
func choosable(user, before, after string) error {
	id := structs.PasswordProblem(user, after)
	if id == "" && before == after {
		id = "password.same"
	}
	if id != "" {
		return structs.NewError(structs.CodeInvalid, id, "min", structs.PasswordLengthMin, "max", structs.PasswordBytesMax)
	}
	return nil
}

// setPassword answers users.password.
func (h *loginHandlers) setPassword(r *front.Request, user *structs.User, body *api.PasswordRequest) (*api.PasswordChanged, error) {
	own := r.Caller.Principal.Kind == auth.KindUser && user.Name == r.Caller.Principal.ID
	switch {
	case user.CreateIndex == 0:
		return nil, auth.NotFound(auth.ObjectUser, r.ID)
	case (body.Reset || body.Forget) && (body.Password != "" || body.Current != "" || body.Reset && body.Forget):
		return nil, structs.NewError(structs.CodeInvalid, "agent.password_both")
	case body.Reset || body.Forget:
		return h.reset(r, user, body.Forget)
	case !own:
		return nil, structs.NewError(structs.CodeConflict, "agent.password_of_another", "user", user.Name)
	}
	if err := choosable(user.Name, body.Current, body.Password); err != nil {
		return nil, err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	known, err := h.check(r, h.store.Snapshot(), user.Name, body.Current)
	switch {
	case err != nil:
		return nil, err
	case known == nil:
		return nil, structs.NewError(structs.CodeForbidden, "agent.password_wrong")
	}
	stored, err := hashed(h, r.Context(), func() (string, error) { return h.cost.Hash(body.Password, h.rand) })
	if err != nil {
		return nil, err
	}
	index, err := h.propose(r, structs.CommandPasswordSet, structs.PasswordSet{
		Password: structs.Password{User: user.Name, Hash: stored}, Keep: r.Caller.Token.ID,
	})
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	return &api.PasswordChanged{Index: index}, nil
}

// reset draws a first password for an account, or takes its password away. Only an
// administrator's word does.
func (h *loginHandlers) reset(r *front.Request, user *structs.User, forget bool) (*api.PasswordChanged, error) {
	if err := r.May(auth.VerbWrite, r.Object); err != nil {
		return nil, err
	}
	changed := api.PasswordChanged{}
	set := structs.PasswordSet{Password: structs.Password{User: user.Name}, Forget: forget}
	if !forget {
		first, err := auth.GeneratePassword(h.rand)
		if err != nil {
			return nil, err
		}
		changed.First, changed.Until = first, structs.At(h.now().Add(firstPasswordLife))
		set.Password.First, set.Password.Until = true, changed.Until
		set.Password.Hash, err = hashed(h, r.Context(), func() (string, error) { return h.cost.Hash(first, h.rand) })
		if err != nil {
			return nil, err
		}
	}
	var err error
	if changed.Index, err = h.propose(r, structs.CommandPasswordSet, set); err != nil {
		return nil, err
	}
	r.SetIndex(changed.Index)
	return &changed, nil
}

// extend answers tokens.extend.
func (h *loginHandlers) extend(r *front.Request, token *structs.Token) (*structs.Token, error) {
	switch {
	case token == nil:
		return nil, structs.NewError(structs.CodeUnauthorized, "auth.login_required")
	case token.Method == "":
		return nil, structs.NewError(structs.CodeConflict, "state.token_fixed", "token", token.ID)
	}
	index, err := h.propose(r, structs.CommandTokenExtend, structs.TokenExtend{ID: token.ID, ExpiresAt: structs.At(h.now().Add(signInLife))})
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	longer := h.store.Snapshot().Token(token.ID)
	if longer == nil {
		return nil, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	}
	return answer(front.WithoutHash(*longer))
}

// doorSigner signs people in at the door: here where this server leads, else by way of the
// leader.
type doorSigner struct {
	login  *loginHandlers
	leads  func() bool
	leader func() string
	agents http.RoundTripper // to servers of the cluster alone
}

// SignIn implements front.Signer.
func (s *doorSigner) SignIn(r *front.Request, body *api.LoginRequest) (string, error) {
	if s.leads() {
		secret, _, err := s.login.signIn(r, body)
		return secret, err
	}
	if provider, err := s.login.provider(body.Provider); body.Provider != "" && err == nil {
		r.Through = provider.through() // the leader signs in, the record here tells it, too
	}
	client, err := s.toLeader(r)
	if err != nil {
		return "", err
	}
	defer client.Close()
	made, err := client.Login(r.Context(), *body)
	if err != nil {
		return "", err
	}
	r.Made(made.Token.ID)
	return made.Secret, nil
}

// SignOut implements front.Signer.
func (s *doorSigner) SignOut(r *front.Request, token *structs.Token) (string, error) {
	_, err := s.login.propose(r, structs.CommandTokenDelete, structs.TokenDelete{ID: token.ID})
	if err != nil && structs.CodeOf(err) != structs.CodeNotFound { // it is gone already
		return "", err
	}
	return s.login.signOutAt(r.Context(), token, oidc.HomeAddress(r.Host)), nil
}

// onBehalf says whom a request is made for.
type onBehalf struct {
	http.RoundTripper
	origin string
	page   string // host of the pages that a browser asked at
}

func (o onBehalf) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.Header.Set(front.HeaderFor, o.origin)
	out.Header.Set(front.HeaderPage, o.page)
	return o.RoundTripper.RoundTrip(out)
}
