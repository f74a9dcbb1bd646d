package httpapi

import (
	"context"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// serverHandlers answers about the servers, and changes who they are.
type serverHandlers struct {
	*core
	members Membership
	servers Servers
}

// joinAddrsMax bounds the addresses of one request.
const joinAddrsMax = 16

// Membership is what the API reads of the servers of the cluster.
type Membership interface {
	// Peers lists the servers of Raft's configuration.
	Peers() []api.RaftPeer
	// Members lists the agents that gossip knows, with the role that each says of
	// itself.
	Members() []api.Member
	// GossipServers lists where a new agent finds gossip, this agent first.
	GossipServers() []string
	// Protocol is the lowest version that a server of the log speaks.
	Protocol() int
	// Lowest is Protocol as admission of changes sees it, with the server's name.
	Lowest() (protocol int, server string)
	// Speaks is the version that an agent tells in gossip, 0 when it tells none.
	Speaks(id string) int
}

// Servers is what the API changes of them. Its errors are answers.
type Servers interface {
	// Join tells gossip of further addresses, and returns how many answered.
	Join(ctx context.Context, addresses []string) (joined int, err error)
	// AppliedIndex is the newest index of the log that this server has applied.
	AppliedIndex() uint64
	// MayRemove reports why a server cannot be removed; nil when it can.
	MayRemove(id string) error
	// Remove takes a server out of Raft's configuration.
	Remove(ctx context.Context, id string) error
	// Health is how the servers are, as the leader sees them.
	Health() api.AutopilotHealth
}

// list answers servers.list.
func (h *serverHandlers) list(r *front.Request) (*api.MemberList, error) {
	snapshot := h.store.Snapshot()
	out := api.MemberList{Members: h.members.Members()}
	for i := range out.Members {
		if member := &out.Members[i]; member.Role == string(auth.RoleServer) && snapshot.Node(member.ID) != nil {
			member.Role = "both"
		}
	}
	return &out, nil
}

func (h *serverHandlers) join(r *front.Request, body *api.ServersJoinRequest) (*api.ServersJoined, error) {
	addresses := body.Addresses
	if len(addresses) == 0 || len(addresses) > joinAddrsMax {
		return nil, structs.NewError(structs.CodeInvalid, "agent.join_addresses", "max", joinAddrsMax)
	}
	joined, err := h.servers.Join(r.Context(), addresses)
	if err != nil {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.join_failed", "reason", err).Because(err)
	}
	return &api.ServersJoined{Joined: joined}, nil
}

func (h *serverHandlers) peers(r *front.Request) (*api.RaftPeerList, error) {
	if _, err := h.replica.Consistent(r.Context()); err != nil {
		return nil, err
	}
	out := api.RaftPeerList{Peers: h.members.Peers(), Index: h.servers.AppliedIndex()}
	if cluster := h.store.Snapshot().Cluster(); cluster != nil {
		out.Removed = cluster.Removed
	}
	return &out, nil
}

// removePeer takes a server out for good: first the log says that it is not to
// come back, so that nobody adds it again, then Raft's configuration changes.
func (h *serverHandlers) removePeer(r *front.Request) (*api.Changed, error) {
	if err := h.servers.MayRemove(r.ID); err != nil {
		return nil, err
	}
	if h.members.Protocol() >= wire.ProtocolRemovals { // in an upgrade, servers of before would stop at the command
		if _, err := h.propose(r, structs.CommandServerRemoval, structs.ServerRemoval{ID: r.ID}); err != nil {
			return nil, err
		}
	}
	if err := h.servers.Remove(r.Context(), r.ID); err != nil {
		return nil, err
	}
	h.log.Warn("server removed by request", logkey.PeerID, r.ID, logkey.User, r.Caller.Principal.ID)
	index := h.servers.AppliedIndex()
	r.SetIndex(index)
	return &api.Changed{Index: index}, nil
}

// addPeer lets a server that was removed back in: autopilot adds it as soon as
// it runs and has proven itself.
func (h *serverHandlers) addPeer(r *front.Request) (*api.Changed, error) {
	if !h.store.Snapshot().Cluster().IsRemoved(r.ID) {
		return nil, structs.NewError(structs.CodeNotFound, "agent.not_removed", "id", r.ID)
	}
	return h.change(r, structs.CommandServerRemoval, structs.ServerRemoval{ID: r.ID, Back: true})
}

func (h *serverHandlers) autopilot(r *front.Request) (*api.AutopilotHealth, error) {
	return answer(h.servers.Health())
}
