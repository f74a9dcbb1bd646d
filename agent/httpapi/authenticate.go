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

// Authenticate finds whom the secret of a token speaks for.
func (c *callers) Authenticate(ctx context.Context, secret string, thorough bool) (front.Caller, error) {
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
	principal, refusal := auth.TokenPrincipal(token, c.now())
	if refusal != nil {
		return front.Caller{}, refusal
	}
	return front.Caller{Principal: principal, Token: token, Revoked: snapshot.WatchToken(token.ID)}, nil
}
