package server

import (
	"context"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

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
// no use.
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
	if refusal := auth.CheckJoin(snapshot.JoinToken(join.TokenID), join.Secret, join.Role, s.config.Now()); refusal != nil {
		return nil, refusal
	}
	certificatePEM, err = s.config.SignCSR(join.CSR, auth.Identity{Cluster: cluster.ID, Role: join.Role, ID: join.AgentID}, join.IP)
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "server.csr_refused").Because(err)
	}
	_, _, err = s.Submit(ctx, structs.CommandJoinTokenConsume, join.AgentID, &structs.JoinTokenConsume{
		ID: join.TokenID, Hash: auth.HashToken(join.Secret), Role: string(join.Role), AgentID: join.AgentID,
	})
	if err != nil {
		return nil, err
	}
	return certificatePEM, nil
}
