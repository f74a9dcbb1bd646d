package httpapi

import (
	"errors"
	"fmt"
	"net"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// renew answers agent.renew: a node whose certificate is over proves by
// its key who it was, and gets a new certificate for the same identity while
// the grace lasts. Servers hold the CA's key and renew by themselves.
func (h *joinHandlers) renew(r *front.Request, body *api.RenewRequest) (*api.Renewed, error) {
	if _, err := auth.ParseCSR([]byte(body.CSR)); err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", err)
	}
	proofs, err := h.authority.Proofs(structs.At(h.now()))
	if err != nil {
		return nil, fmt.Errorf("read CAs of before: %w", err)
	}
	who, ended, err := proofs.VerifyLapsed([]byte(body.Certificate), []byte(body.CSR), body.Proof,
		auth.Expect{Role: auth.RoleClient}, h.lapseGrace, h.now())
	switch {
	case errors.Is(err, auth.ErrExpired):
		h.log.Warn("renewal refused: the certificate ended too long ago", "id", who.ID, "expired", ended, logkey.Addr, front.PeerKey(r.RemoteAddr))
		return nil, structs.NewError(structs.CodeForbidden, "agent.renew_grace", "at", ended.UTC().Format(time.RFC3339),
			"grace", structs.FormatDuration(structs.Duration(h.lapseGrace))).Because(err)
	case err != nil:
		return nil, structs.NewError(structs.CodeUnauthorized, "agent.renew_proof").Because(err)
	}
	// What this server knows of removals must be no older than the request.
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	if h.store.Snapshot().Cluster().IsNodeRemoved(who.ID) {
		return nil, structs.NewError(structs.CodeForbidden, "server.node_removed")
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return nil, fmt.Errorf("read address of node: %w", err)
	}
	chain, err := h.authority.Sign([]byte(body.CSR), who, h.now(), host)
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", err)
	}
	h.log.Info("lapsed certificate renewed", "id", who.ID, "expired", ended, logkey.Addr, front.PeerKey(r.RemoteAddr))
	held, err := h.authority.Welcome(who.Role)
	if err != nil {
		return nil, err
	}
	return &api.Renewed{Certificate: string(chain), CA: held.CA, PastCA: held.PastCA}, nil
}

// isWho reports whether a joiner holds the key of a certificate that this
// cluster once gave to the identity that it claims.
func (h *joinHandlers) isWho(body *api.JoinRequest, id auth.Identity) bool {
	if body.Certificate == "" {
		return false
	}
	proofs, err := h.authority.Proofs(structs.At(h.now()))
	if err != nil {
		return false
	}
	who, _, err := proofs.VerifyLapsed([]byte(body.Certificate), []byte(body.CSR), body.Proof,
		auth.Expect{Role: id.Role, ID: id.ID}, -1, h.now())
	return err == nil && who == id
}
