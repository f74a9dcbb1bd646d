package httpapi

import (
	"io"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// Bounds of the names in a token.
const (
	labelLengthMax = 100 // bytes of its own
	userLengthMax  = 64  // bytes of its user's
)

// tokenHandlers makes tokens of people, and takes them back.
type tokenHandlers struct {
	*core
	setup Setup
	rand  io.Reader
	done  func() error // forgets the setup secret
	login *loginHandlers
}

func (h *tokenHandlers) list(r *front.Request) (*api.TokenList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	paging, err := page(r)
	if err != nil {
		return nil, err
	}
	tokens, next, refusal := h.store.Snapshot().ListTokens(paging)
	if refusal != nil {
		return nil, refusal
	}
	out := api.TokenList{Tokens: values(tokens), Next: next}
	for i := range out.Tokens {
		out.Tokens[i] = front.WithoutHash(out.Tokens[i])
	}
	return &out, nil
}

func (h *tokenHandlers) read(r *front.Request, token *structs.Token) (*structs.Token, error) {
	if token == nil {
		return nil, auth.NotFound(auth.ObjectToken, r.ID)
	}
	return answer(front.WithoutHash(*token))
}

func (h *tokenHandlers) delete(r *front.Request, token *structs.Token) (*api.TokenDeleted, error) {
	if token == nil {
		return nil, auth.NotFound(auth.ObjectToken, r.ID)
	}
	changed, err := h.change(r, structs.CommandTokenDelete, structs.TokenDelete{ID: token.ID})
	if err != nil {
		return nil, err
	}
	deleted := &api.TokenDeleted{Index: changed.Index}
	if r.Caller.Token.ID == token.ID { // nobody signs another out
		deleted.Address = h.login.signOutAt(r.Context(), token, "")
	}
	return deleted, nil
}

func (h *tokenHandlers) create(r *front.Request, body *api.TokenRequest) (*api.NewToken, error) {
	if err := checkTokenRequest(body); err != nil {
		return nil, err
	}
	if own := r.Caller.Token; len(own.Verbs)+len(own.Addresses) > 0 { // it would make one that is good for more
		return nil, structs.NewError(structs.CodeForbidden, "auth.scope_grows")
	}
	if err := h.checkAccount(r, body); err != nil {
		return nil, err
	}
	kind := auth.TokenUser
	if auth.UserRole(body.Role) == auth.RoleAdmin {
		kind = auth.TokenManagement
	}
	secret, token, err := NewToken(h.rand, h.now(), kind, *body, r.Caller.Principal.ID)
	if err != nil {
		return nil, err
	}
	index, err := h.propose(r, structs.CommandTokenPut, structs.TokenPut{Token: token})
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	r.Made(token.ID)
	return &api.NewToken{Token: front.WithoutHash(token), Secret: secret}, nil
}

func checkTokenRequest(body *api.TokenRequest) error {
	role := auth.UserRole(body.Role)
	wide := role == auth.RoleAdmin || role == auth.RoleOperator
	account := role == auth.RoleAccount // in every project of its user, or in one
	switch {
	case account && body.User == "":
		return structs.NewError(structs.CodeInvalid, "agent.token_account")
	case !account && !role.Valid():
		return structs.NewError(structs.CodeInvalid, "agent.role_unknown", "role", body.Role)
	case wide && body.Project != "":
		return structs.NewError(structs.CodeInvalid, "agent.role_no_project", "role", body.Role)
	case !wide && !account && body.Project == "":
		return structs.NewError(structs.CodeInvalid, "agent.role_project", "role", body.Role)
	case body.TTL < 0:
		return structs.NewError(structs.CodeInvalid, "agent.ttl", "ttl", body.TTL)
	case !structs.PlainText(body.Name, labelLengthMax):
		return structs.NewError(structs.CodeInvalid, "agent.text_bad", "field", "name", "max", labelLengthMax)
	case structs.IsServiceAccount(body.User): // it would speak for nobody
		return structs.NewError(structs.CodeInvalid, "agent.token_service", "user", body.User)
	case !structs.PlainText(body.User, userLengthMax):
		return structs.NewError(structs.CodeInvalid, "agent.text_bad", "field", "user", "max", userLengthMax)
	}
	if body.Project != "" {
		if id := structs.NameProblem(body.Project); id != "" {
			return structs.NewError(structs.CodeInvalid, id)
		}
	}
	if problem := auth.ScopeProblem(body.Verbs, body.Addresses); problem != nil {
		return problem
	}
	return nil
}

// checkAccount refuses a token that could do nothing, or that would speak for an
// account with more than that has.
func (h *tokenHandlers) checkAccount(r *front.Request, body *api.TokenRequest) error {
	if err := h.refresh(r); err != nil {
		return err
	}
	user, role := h.store.Snapshot().User(body.User), auth.UserRole(body.Role)
	switch {
	case user == nil && role == auth.RoleAccount:
		return structs.NewError(structs.CodeNotFound, "agent.member_no_account", "user", body.User)
	case user == nil:
		return nil
	case user.Disabled:
		return structs.NewError(structs.CodeConflict, "auth.user_disabled", "user", body.User)
	case role == auth.RoleAdmin && user.ClusterRole() != structs.RoleAdmin, role == auth.RoleOperator && user.ClusterRole() == "":
		return structs.NewError(structs.CodeConflict, "agent.token_above", "user", body.User, "role", body.Role)
	}
	return nil
}

// NewToken draws a secret and makes its record, in the name of by.
func NewToken(random io.Reader, now time.Time, kind auth.TokenKind, body api.TokenRequest, by string) (string, structs.Token, error) {
	secret, err := auth.GenerateToken(kind, random)
	if err != nil {
		return "", structs.Token{}, err
	}
	id, err := auth.NewTokenID(random)
	if err != nil {
		return "", structs.Token{}, err
	}
	token := structs.Token{
		ID: id, Name: body.Name, Hash: auth.HashToken(secret), Role: body.Role, Project: body.Project, User: body.User,
		CreatedAt: structs.At(now), CreatedBy: by, Verbs: body.Verbs, Addresses: body.Addresses,
	}
	if body.TTL > 0 {
		token.ExpiresAt = structs.At(now.Add(body.TTL.Std()))
	}
	return secret, token, nil
}

// bootstrap makes the first management token for whoever holds the
// setup secret; the log lets exactly one through.
func (h *tokenHandlers) bootstrap(r *front.Request, body *api.BootstrapRequest) (*api.NewToken, error) {
	given := body.Secret
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	cluster := snapshot.Cluster()
	if cluster == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.no_cluster")
	}
	if cluster.Bootstrapped || !auth.TokenMatches(cluster.SetupHash, given) {
		return nil, structs.NewError(structs.CodeUnauthorized, "agent.setup_wrong")
	}
	secret, token, err := NewToken(h.rand, h.now(), auth.TokenManagement, api.TokenRequest{Name: "bootstrap", Role: string(auth.RoleAdmin), User: "admin"}, "setup")
	if err != nil {
		return nil, err
	}
	_, index, err := h.setup.Submit(r.Context(), structs.CommandTokenBootstrap, "setup",
		structs.TokenBootstrap{SetupHash: auth.HashToken(given), Token: token})
	if err != nil {
		return nil, err
	}
	if err := h.done(); err != nil {
		h.log.Warn("setup secret is left", logkey.Error, err)
	}
	h.log.Warn("first management token was made", logkey.TokenID, token.ID, logkey.Addr, front.PeerKey(r.RemoteAddr))
	r.SetIndex(index)
	r.Made(token.ID)
	return &api.NewToken{Token: front.WithoutHash(token), Secret: secret}, nil
}
