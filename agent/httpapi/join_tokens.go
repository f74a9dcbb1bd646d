package httpapi

import (
	"io"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// Bounds of join tokens.
const (
	joinTTLDefault = time.Hour
	joinTTLMax     = 30 * 24 * time.Hour
	joinUsesMax    = 10_000
)

// joinTokenHandlers makes tokens for new agents, and takes them back.
type joinTokenHandlers struct {
	*core
	rand io.Reader
	addr string        // host:port of this agent
	ca   func() string // names the CA that this agent uses
}

func (h *joinTokenHandlers) list(r *front.Request) (*api.JoinTokenList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	out := api.JoinTokenList{Tokens: []structs.JoinToken{}}
	for token := range h.store.Snapshot().JoinTokens() {
		shown := *token
		shown.Hash = nil
		out.Tokens = append(out.Tokens, shown)
	}
	return &out, nil
}

func (h *joinTokenHandlers) create(r *front.Request, body *api.JoinTokenRequest) (*api.NewJoinToken, error) {
	uses, ttl := body.Uses, body.TTL.Std()
	if uses == 0 {
		uses = 1
	}
	if ttl == 0 {
		ttl = joinTTLDefault
	}
	switch {
	case !auth.Role(body.Role).Valid():
		return nil, structs.NewError(structs.CodeInvalid, "agent.role_unknown", "role", body.Role)
	case ttl < 0 || ttl > joinTTLMax:
		return nil, structs.NewError(structs.CodeInvalid, "agent.ttl", "ttl", body.TTL)
	case uses < auth.JoinUsesUnlimited || uses > joinUsesMax:
		return nil, structs.NewError(structs.CodeInvalid, "agent.uses", "uses", body.Uses, "max", joinUsesMax)
	}
	token, stored, err := auth.GenerateJoinToken(h.ca(), h.addr, auth.Role(body.Role), uses, ttl, h.rand, h.now())
	if err != nil {
		return nil, err
	}
	stored.CreatedBy = r.Caller.Principal.ID
	index, err := h.propose(r, structs.CommandJoinTokenPut, structs.JoinTokenPut{Token: *stored})
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	r.Made(stored.ID)
	shown := *stored
	shown.Hash = nil
	return &api.NewJoinToken{Token: shown, Join: token.String()}, nil
}

func (h *joinTokenHandlers) delete(r *front.Request) (*api.Changed, error) {
	if h.store.Snapshot().JoinToken(r.ID) == nil {
		return nil, auth.NotFound(auth.ObjectJoinToken, r.ID)
	}
	return h.change(r, structs.CommandJoinTokenDelete, structs.JoinTokenDelete{ID: r.ID})
}
