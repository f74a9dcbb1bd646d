package httpapi

import (
	"cmp"
	"io"
	"iter"
	"slices"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// serviceAccountHandlers answers about service accounts, and changes them and their tokens.
type serviceAccountHandlers struct {
	*core
	rand io.Reader
}

// list shows the service accounts of the project that the request acts in, and those of
// the cluster, as far as the caller may see them.
func (h *serviceAccountHandlers) list(r *front.Request) (*api.ServiceAccountList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot, out := h.store.Snapshot(), api.ServiceAccountList{Accounts: []api.ServiceAccountDetail{}}
	var of []*structs.ServiceAccount
	for _, accounts := range []iter.Seq[*structs.ServiceAccount]{snapshot.ServiceAccountsOf(r.Caller.Standing.Project), snapshot.ServiceAccountsOf("")} {
		for account := range accounts {
			if auth.Allowed(r.Caller.Principal, auth.VerbRead, serviceObject(account)).Allow {
				of = append(of, account)
			}
		}
	}
	var tokens map[string][]structs.Token
	if len(of) > 0 {
		tokens = tokensByUser(snapshot.Tokens(), func(string) bool { return true })
	}
	for _, account := range of {
		out.Accounts = append(out.Accounts, h.detail(r, account, tokens[account.ID()]))
	}
	return &out, nil
}

func (h *serviceAccountHandlers) read(r *front.Request, account *structs.ServiceAccount) (*api.ServiceAccountDetail, error) {
	if account.CreateIndex == 0 {
		return nil, auth.NotFound(auth.ObjectService, account.Name)
	}
	id := account.ID()
	tokens := tokensByUser(h.store.Snapshot().Tokens(), func(user string) bool { return user == id })
	return answer(h.detail(r, account, tokens[id]))
}

// tokensByUser collects tokens of service accounts, without their hashes.
func tokensByUser(all iter.Seq[*structs.Token], wanted func(user string) bool) map[string][]structs.Token {
	found := make(map[string][]structs.Token)
	for token := range all {
		if structs.IsServiceAccount(token.User) && wanted(token.User) {
			found[token.User] = append(found[token.User], front.WithoutHash(*token))
		}
	}
	return found
}

// detail is an account as the caller may see it. From where its tokens are used is for
// those who may revoke them, and for those who see all tokens of the cluster.
func (h *serviceAccountHandlers) detail(r *front.Request, account *structs.ServiceAccount, tokens []structs.Token) api.ServiceAccountDetail {
	out := api.ServiceAccountDetail{Account: *account, User: account.ID(), Verbs: []string{}}
	out.Live, _ = h.store.LiveOf(out.User, "")
	for _, verb := range auth.Verbs(r.Caller.Principal, serviceObject(account)) {
		out.Verbs = append(out.Verbs, string(verb))
	}
	mayChange := auth.Allowed(r.Caller.Principal, auth.VerbWrite, serviceObject(account)).Allow
	if mayChange || auth.Allowed(r.Caller.Principal, auth.VerbList, auth.Object{Kind: auth.ObjectToken}).Allow {
		slices.SortFunc(tokens, func(a, b structs.Token) int {
			return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.ID, b.ID))
		})
		out.Tokens = tokens
	}
	return out
}

// put makes a service account, or replaces what it says.
func (h *serviceAccountHandlers) put(r *front.Request, known *structs.ServiceAccount, body *api.ServiceAccountRequest) (*api.Changed, error) {
	next := *known
	next.Description = body.Description
	next.Owner, next.Role = cmp.Or(body.Owner, known.Owner), cmp.Or(body.Role, known.Role)
	if known.CreateIndex == 0 {
		roles := structs.ServiceRoles(known.Project)
		next.Role = cmp.Or(next.Role, roles[min(1, len(roles)-1)])
		if next.Owner == "" && structs.UserNameProblem(r.Caller.Principal.ID) == "" {
			next.Owner = r.Caller.Principal.ID
		}
	}
	if err := invalid("agent.service_invalid", next.Validate()); err != nil {
		return nil, err
	}
	if err := bounded(r, known, next.Role); err != nil {
		return nil, err
	}
	if body.Owner != "" && h.store.Snapshot().User(body.Owner) == nil {
		return nil, structs.NewError(structs.CodeNotFound, "agent.service_owner", "user", body.Owner)
	}
	return h.change(r, structs.CommandServiceAccountPut, structs.ServiceAccountPut{Account: next})
}

// bounded refuses what would have a service account do more than whoever asks: a role
// above theirs, or anything by a token that is itself good for some things only.
func bounded(r *front.Request, account *structs.ServiceAccount, role string) error {
	if own := r.Caller.Token; len(own.Verbs)+len(own.Addresses) > 0 {
		return structs.NewError(structs.CodeForbidden, "auth.scope_grows")
	}
	if !auth.MayGrant(r.Caller.Principal, account.Project, auth.UserRole(role)) {
		return structs.NewError(structs.CodeForbidden, "agent.service_role", "role", role, "account", account.Name)
	}
	return nil
}

func (h *serviceAccountHandlers) setState(r *front.Request, account *structs.ServiceAccount, body *api.ServiceAccountStateRequest) (*api.Changed, error) {
	switch {
	case account.CreateIndex == 0:
		return nil, auth.NotFound(auth.ObjectService, account.Name)
	case !body.Disabled && body.Jobs != "":
		return nil, structs.NewError(structs.CodeInvalid, "agent.user_jobs_kept")
	case !body.Disabled: // it can do again what its role lets it
		if err := bounded(r, account, account.Role); err != nil {
			return nil, err
		}
	}
	if err := checkHeir(body.Jobs, body.To); err != nil {
		return nil, err
	}
	return h.change(r, structs.CommandServiceAccountState, structs.ServiceAccountState{ID: account.ID(), Disabled: body.Disabled, Jobs: body.Jobs, To: body.To})
}

// checkHeir refuses jobs that are handed over to nobody, and an heir of none.
func checkHeir(jobs, to string) error {
	if (to != "") != (jobs == structs.JobsHandOver) {
		return structs.NewError(structs.CodeInvalid, "agent.user_heir")
	}
	return nil
}

// token makes a token of a service account: bound to its project, and for as long as
// the cluster allows.
func (h *serviceAccountHandlers) token(r *front.Request, account *structs.ServiceAccount, body *api.ServiceTokenRequest) (*api.NewToken, error) {
	if account.CreateIndex == 0 {
		return nil, auth.NotFound(auth.ObjectService, account.Name)
	}
	most := h.store.Snapshot().Settings().ServiceTokenMax()
	ttl := cmp.Or(body.TTL.Std(), min(structs.ServiceTokenTTLDefault, most))
	switch {
	case ttl < time.Minute, ttl > most:
		return nil, structs.NewError(structs.CodeInvalid, "agent.service_ttl", "ttl", body.TTL, "max", structs.Duration(most))
	case !structs.PlainText(body.Name, labelLengthMax):
		return nil, structs.NewError(structs.CodeInvalid, "agent.text_bad", "field", "name", "max", labelLengthMax)
	}
	if problem := auth.ScopeProblem(body.Verbs, body.Addresses); problem != nil {
		return nil, problem
	}
	if err := bounded(r, account, account.Role); err != nil {
		return nil, err
	}
	secret, token, err := NewToken(h.rand, h.now(), auth.TokenUser, api.TokenRequest{
		Name: body.Name, Role: structs.RoleAccount, Project: account.Project, User: account.ID(),
		TTL: structs.Duration(ttl), Verbs: body.Verbs, Addresses: body.Addresses,
	}, r.Caller.Principal.ID)
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

// revoke takes back one token of the account, or all of them.
func (h *serviceAccountHandlers) revoke(r *front.Request, account *structs.ServiceAccount, body *api.ServiceRevokeRequest) (*api.Changed, error) {
	switch {
	case account.CreateIndex == 0:
		return nil, auth.NotFound(auth.ObjectService, account.Name)
	case (body.Token != "") == body.All:
		return nil, structs.NewError(structs.CodeInvalid, "agent.service_revoke")
	case body.All:
		return h.change(r, structs.CommandServiceAccountRevoke, structs.ServiceAccountRevoke{ID: account.ID()})
	}
	token := h.store.Snapshot().Token(body.Token)
	if token == nil || token.User != account.ID() { // another's is as little to be found
		return nil, auth.NotFound(auth.ObjectToken, body.Token)
	}
	r.Made(token.ID)
	return h.change(r, structs.CommandTokenDelete, structs.TokenDelete{ID: token.ID})
}

func (h *serviceAccountHandlers) delete(r *front.Request, account *structs.ServiceAccount) (*api.Changed, error) {
	q := front.Query{R: r}
	jobs, to := q.Text("jobs"), q.Text("to")
	if q.Err != nil {
		return nil, q.Err
	}
	if account.CreateIndex == 0 {
		return nil, auth.NotFound(auth.ObjectService, account.Name)
	}
	if err := checkHeir(jobs, to); err != nil {
		return nil, err
	}
	return h.change(r, structs.CommandServiceAccountDelete, structs.ServiceAccountDelete{ID: account.ID(), Jobs: jobs, To: to})
}

// locateService finds the service account of a name in the project that the request
// acts in, or of the cluster. One that is not there is a record with its name and place
// alone, so that it can be made.
func locateService(r *front.Request, snapshot *state.Snapshot) (*structs.ServiceAccount, auth.Object, error) {
	q := front.Query{R: r}
	wide := q.Bool("cluster")
	if q.Err != nil {
		return nil, auth.Object{}, q.Err
	}
	account := &structs.ServiceAccount{Name: r.ID, Project: r.Caller.Standing.Project}
	if wide {
		account.Project = ""
	}
	id := account.ID()
	if known := snapshot.ServiceAccount(id); known != nil {
		account = known
		r.RestsOn(structs.RestService, id, known.ModifyIndex)
	}
	object := serviceObject(account)
	r.ID = id // in the record of who did what; refusals repeat the name
	return account, object, nil
}

// serviceObject is a service account as the policy sees it.
func serviceObject(account *structs.ServiceAccount) auth.Object {
	return auth.Object{Kind: auth.ObjectService, ID: account.Name, Project: account.Project, Owner: account.ID()}
}
