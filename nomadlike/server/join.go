package server

import (
	"context"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// joinSpan is for how long an agent that was let in is answered again, at least;
// at most it is twice that. It asks every few seconds until an answer arrives.
const joinSpan = 10 * time.Minute

// Join is what a new agent asks with: a join token and a request for a
// certificate.
type Join struct {
	TokenID string
	Secret  string
	Role    auth.Role
	AgentID string
	CSR     []byte // PEM
	IP      string // where the agent's own connection comes from; "" when it is not known
}

// Admit lets a new agent in: it checks the join token against everything that
// was acknowledged, signs the certificate, and takes one use of the token
// before it hands the certificate out. A request that cannot be signed costs
// no use, nor does one of an agent that was let in minutes ago: its answer was
// lost. It is known by its token, its id and its key, whatever is left of the
// token.
func (s *Server) Admit(ctx context.Context, join Join) (certificatePEM []byte, err error) {
	if s.config.SignCSR == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "server.no_ca")
	}
	snapshot, err := s.Consistent(ctx)
	if err != nil {
		return nil, err
	}
	cluster := snapshot.Cluster()
	if cluster == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "state.cluster_unknown")
	}
	now := s.config.Now()
	use, unreadable := auth.NewJoinUse(join.TokenID, join.Role, join.AgentID, join.CSR)
	again := wasLetIn(snapshot, use, now)
	refusal := auth.CheckJoin(snapshot.JoinToken(join.TokenID), join.Secret, join.Role, now)
	if refusal != nil && !(again && auth.IsSpentJoin(refusal)) {
		return nil, refusal
	}
	if unreadable != nil { // told to who knows the secret
		return nil, structs.NewError(structs.CodeInvalid, "server.csr_refused").Because(unreadable)
	}
	certificatePEM, err = s.config.SignCSR(join.CSR, auth.Identity{Cluster: cluster.ID, Role: join.Role, ID: join.AgentID}, join.IP)
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "server.csr_refused").Because(err)
	}
	if again {
		return certificatePEM, nil
	}
	_, _, err = s.SubmitOnce(ctx, use.Name(joinSpanOf(now)), structs.CommandJoinTokenConsume, join.AgentID, &structs.JoinTokenConsume{
		ID: join.TokenID, Hash: auth.HashToken(join.Secret), Role: string(join.Role), AgentID: join.AgentID,
	})
	if err != nil {
		return nil, err
	}
	return certificatePEM, nil
}

// joinSpanOf numbers the span of time that now is in.
func joinSpanOf(now time.Time) int64 { return now.UnixNano() / int64(joinSpan) }

// wasLetIn reports whether the log has a use of a token by the same agent with
// the same key, in this span of time or the one before; the next one is of a
// server whose clock is ahead.
func wasLetIn(snapshot *state.Snapshot, use *auth.JoinUse, now time.Time) bool {
	if use == nil {
		return false
	}
	span := joinSpanOf(now)
	return snapshot.CountedOnce(use.Name(span)) || snapshot.CountedOnce(use.Name(span-1)) || snapshot.CountedOnce(use.Name(span+1))
}
