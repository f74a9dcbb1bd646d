package httpapi

import (
	"context"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// callers knows callers by their tokens.
type callers struct {
	replica Log
	store   *state.Store
	now     clockFunc
}

// Authenticate finds whom the secret of a token speaks for, in the project that the
// request names, "" for none.
func (c *callers) Authenticate(ctx context.Context, secret, project string, thorough bool) (front.Caller, error) {
	unknown := structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	if _, err := auth.ParseToken(secret); err != nil {
		return front.Caller{}, unknown.Because(err)
	}
	hash := auth.HashToken(secret)
	snapshot := c.store.Snapshot()
	token := snapshot.TokenByHash(hash)
	if token == nil && thorough {
		var err error
		if snapshot, err = c.replica.Consistent(ctx); err != nil {
			return front.Caller{}, err
		}
		token = snapshot.TokenByHash(hash)
	}
	if token == nil {
		return front.Caller{}, unknown
	}
	caller, err := c.stand(snapshot, token, project)
	if structs.CodeOf(err) == structs.CodeForbidden && thorough { // this copy may not know yet who was let in
		if snapshot, err = c.replica.Consistent(ctx); err != nil {
			return front.Caller{}, err
		}
		return c.stand(snapshot, token, project)
	}
	return caller, err
}

// Again finds what a caller may now, where what was found before has changed since.
func (c *callers) Again(ctx context.Context, caller front.Caller) (front.Caller, error) {
	snapshot, err := c.replica.Consistent(ctx)
	if err != nil {
		return front.Caller{}, err
	}
	token := snapshot.Token(caller.Token.ID)
	if token == nil {
		return front.Caller{}, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	}
	return c.stand(snapshot, token, caller.Named())
}

func (c *callers) stand(snapshot *state.Snapshot, token *structs.Token, project string) (front.Caller, error) {
	standing, refusal := auth.Stand(snapshot, token, project, c.now())
	if refusal != nil {
		return front.Caller{}, refusal
	}
	caller := front.Caller{Principal: standing.Principal, Standing: standing, Token: token}
	caller.In = func(other string) (auth.Principal, bool) {
		there, refusal := auth.Stand(snapshot, token, other, c.now())
		return there.Principal, refusal == nil
	}
	return caller, nil
}
