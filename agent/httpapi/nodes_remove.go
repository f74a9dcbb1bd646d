package httpapi

import (
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// removeNode answers nodes.remove: the node is shut out and forgotten.
func (s *handlers) removeNode(r *front.Request, node *structs.Node) (*api.Changed, error) {
	if s.members.Protocol() < wire.ProtocolNodeRemovals {
		return nil, structs.NewError(structs.CodeConflict, "agent.upgrade_servers")
	}
	for _, peer := range s.members.Peers() {
		if peer.ID == node.ID {
			return nil, structs.NewError(structs.CodeConflict, "agent.remove_server", "id", node.ID)
		}
	}
	until := structs.At(s.now().Add(auth.AgentTTL + s.lapseGrace + 24*time.Hour))
	return s.change(r, structs.CommandNodeRemove, structs.NodeRemove{NodeID: node.ID, Revoke: true, Until: until})
}
