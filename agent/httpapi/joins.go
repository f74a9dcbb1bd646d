package httpapi

import (
	"net"
	"net/http"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// joinHandlers lets agents in, and renews certificates that are over.
type joinHandlers struct {
	*core
	joins      Joins
	members    Membership
	authority  Authority
	lapseGrace time.Duration // how long after its end a certificate is renewed
}

// Authority is what the API needs of the identity of a server, which holds the
// cluster's CA.
type Authority interface {
	// Self is who this agent is.
	Self() auth.Identity
	// Sign makes an agent's certificate, for one address besides loopback.
	Sign(csrPEM []byte, who auth.Identity, now time.Time, address string) ([]byte, error)
	// Proofs is what a certificate of this cluster is checked against, of whichever
	// of its CAs it is.
	Proofs(now structs.UnixNano) (*auth.Trust, error)
	// UseJoinToken takes one use of a token that the founder made before there was
	// a log.
	UseJoinToken(join *api.JoinRequest, role auth.Role, now time.Time) error
	// SSHAuthority is the public half of the key that certifies host keys of ssh.
	SSHAuthority() (string, error)
	// SSHHost makes the host key of one connection of ssh, for the names.
	SSHHost(names []string, now time.Time) (*structs.SSHHost, error)
	// Welcome is what a new agent of a role is given besides its certificate.
	Welcome(role auth.Role) (api.Joined, error)
	// SetupDone forgets the setup secret.
	SetupDone() error
}

// letIn answers agent.join: a new agent with a join token's secret gets its
// certificate, and with it the secrets of its role.
func (h *joinHandlers) letIn(r *front.Request, body *api.JoinRequest) (*api.Joined, error) {
	role := auth.Role(body.Role)
	if err := h.checkJoin(body, role); err != nil {
		return nil, err
	}
	chain, err := h.admitAgent(r, body, role)
	if err != nil {
		return nil, err
	}
	out, err := h.authority.Welcome(role)
	if err != nil {
		return nil, err
	}
	out.Certificate, out.Servers = string(chain), h.members.GossipServers()
	h.log.Info("agent let in", "role", body.Role, "id", body.AgentID, "name", body.Name, logkey.Addr, front.PeerKey(r.RemoteAddr), logkey.TokenID, body.TokenID)
	return &out, nil
}

// ownAddress is the IP that a request comes from, for the requester's
// certificate, "" when a node passed it on: the address is that node's then.
func ownAddress(r *http.Request) string {
	passedOn := front.Forwards(r) > 0 || r.TLS == nil || r.TLS.ServerName == auth.ServerName
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || passedOn {
		return ""
	}
	return host
}

// admitAgent checks and uses the token and signs the certificate: by the log,
// or, before there is one, by the founder's own record.
func (h *joinHandlers) admitAgent(r *front.Request, body *api.JoinRequest, role auth.Role) ([]byte, error) {
	if h.store.Snapshot().Cluster() != nil || len(h.members.Peers()) > 0 {
		return h.joins.Admit(r.Context(), server.Join{
			TokenID: body.TokenID, Secret: body.Secret, Role: role, AgentID: body.AgentID, CSR: []byte(body.CSR), IP: ownAddress(r.Request),
		})
	}
	if err := h.authority.UseJoinToken(body, role, h.now()); err != nil {
		return nil, err
	}
	chain, err := h.authority.Sign([]byte(body.CSR), auth.Identity{Cluster: h.authority.Self().Cluster, Role: role, ID: body.AgentID}, h.now(), ownAddress(r.Request))
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", err)
	}
	return chain, nil
}

// checkJoin refuses requests that no joiner of ours makes, and ids that are
// taken: a join token must not buy the identity of an agent that exists.
func (h *joinHandlers) checkJoin(body *api.JoinRequest, role auth.Role) error {
	id := auth.Identity{Cluster: h.authority.Self().Cluster, Role: role, ID: body.AgentID}
	problem := structs.NameProblem(body.Name)
	switch {
	case id.Validate() != nil:
		return structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", "role or id")
	case problem != "":
		return structs.NewError(structs.CodeInvalid, problem)
	case len(body.AgentID) != 32:
		return structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", "id")
	}
	if _, err := auth.ParseCSR([]byte(body.CSR)); err != nil {
		return structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", err)
	}
	if h.store.Snapshot().Cluster().IsNodeRemoved(body.AgentID) {
		return structs.NewError(structs.CodeForbidden, "server.node_removed")
	}
	if h.isWho(body, id) {
		return nil
	}
	taken := h.store.Snapshot().Node(body.AgentID) != nil || h.authority.Self().ID == body.AgentID
	for _, peer := range h.members.Peers() {
		taken = taken || peer.ID == body.AgentID
	}
	for _, member := range h.members.Members() {
		taken = taken || member.ID == body.AgentID
	}
	if h.store.Snapshot().Cluster().IsRemoved(body.AgentID) {
		return structs.NewError(structs.CodeConflict, "agent.join_removed", "id", body.AgentID)
	}
	if taken {
		return structs.NewError(structs.CodeConflict, "agent.join_id_taken", "id", body.AgentID)
	}
	return nil
}
