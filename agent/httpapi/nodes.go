package httpapi

import (
	"strings"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// drainMax bounds the time that a drain gives to what runs.
const drainMax = 30 * 24 * time.Hour

// nodeHandlers answers about nodes, and takes them out of work.
type nodeHandlers struct {
	*core
	members    nodeMembership
	futures    Forecasts
	lapseGrace time.Duration // how long after its end a certificate is renewed
}

// nodeMembership is what removing a node needs of the servers.
type nodeMembership interface {
	// Peers lists the servers of Raft's configuration.
	Peers() []api.RaftPeer
	// Protocol is the lowest version that a server of the log speaks.
	Protocol() int
}

func summarize(snapshot *state.Snapshot, node *structs.Node) api.NodeSummary {
	out := api.NodeSummary{Node: *node, Used: structs.Usage{NodeID: node.ID}, Root: snapshot.Pool(node.PoolName()).LetsRoot()}
	if usage := snapshot.Usage(node.ID); usage != nil {
		out.Used = *usage
	}
	return out
}

func (h *nodeHandlers) list(r *front.Request) (*api.NodeList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	paging, err := page(r)
	if err != nil {
		return nil, err
	}
	snapshot, err := h.block(r, everything((*state.Snapshot).WatchNodes))
	if err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	var wanted func(*structs.Node) bool
	if text := strings.ToLower(q.Text("text")); text != "" {
		wanted = func(node *structs.Node) bool {
			return strings.HasPrefix(node.ID, text) || strings.Contains(strings.ToLower(node.Name), text)
		}
	}
	nodes, next, refusal := snapshot.ListNodes(paging, wanted)
	if refusal != nil {
		return nil, refusal
	}
	out := api.NodeList{Nodes: make([]api.NodeSummary, len(nodes)), Next: next}
	for i, node := range nodes {
		out.Nodes[i] = summarize(snapshot, node)
		if r.Caller.Principal.Kind == auth.KindBoard { // a forecast on a wall, and no map for others
			out.Nodes[i].Addr, out.Nodes[i].RPCAddr, out.Nodes[i].Version, out.Nodes[i].Attributes = "", "", "", nil
		}
	}
	return &out, nil
}

func (h *nodeHandlers) read(r *front.Request, _ *structs.Node) (*api.NodeDetail, error) {
	snapshot, err := h.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			node := now.Node(r.ID)
			if node == nil {
				return now.Index()
			}
			held := newest(now.Occupants(r.ID), func(a *structs.Allocation) uint64 { return a.ModifyIndex })
			version := max(node.ModifyIndex, held)
			if usage := now.Usage(r.ID); usage != nil { // rises as well when the last allocation leaves
				version = max(version, usage.ModifyIndex)
			}
			return version
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchNode(r.ID) },
		also:  func(now *state.Snapshot) <-chan struct{} { return now.WatchOccupants(r.ID) },
	})
	if err != nil {
		return nil, err
	}
	node := snapshot.Node(r.ID)
	if node == nil {
		return nil, auth.NotFound(auth.ObjectNode, r.ID)
	}
	out := api.NodeDetail{NodeSummary: summarize(snapshot, node), Allocations: []structs.Allocation{}, May: may(r, nodeObject(node))}
	for alloc := range snapshot.Occupants(node.ID) {
		view, ok := snapshot.Job(alloc.JobID)
		if ok && auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(view.Job)).Allow {
			out.Allocations = append(out.Allocations, *shownAlloc(r, view.Job, alloc))
		}
	}
	return &out, nil
}

// events answers nodes.events. A device that is gone is known by its whole id
// only.
func (h *nodeHandlers) events(r *front.Request, node *structs.Node) (*api.EventList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	name, snapshot := q.Text("device"), h.store.Snapshot()
	if node := snapshot.Node(node.ID); node != nil && name != "" {
		chosen, err := chooseDevice(node, name)
		switch {
		case err == nil:
			name = chosen.ID
		case structs.CodeOf(err) != structs.CodeNotFound:
			return nil, err
		case len(snapshot.NodeEvents(node.ID, name)) == 0:
			return nil, err
		}
	}
	return &api.EventList{Events: values(snapshot.NodeEvents(node.ID, name))}, nil
}

func (h *nodeHandlers) drain(r *front.Request, node *structs.Node, body *api.DrainRequest) (*api.Changed, error) {
	deadline := body.Deadline.Std()
	if deadline < 0 || deadline > drainMax {
		return nil, structs.NewError(structs.CodeInvalid, "agent.ttl", "ttl", deadline)
	}
	change := structs.NodeEligibilityChange{NodeID: node.ID, Eligibility: structs.NodeDraining}
	if deadline > 0 {
		change.DrainDeadline = structs.At(h.now().Add(deadline))
	}
	return h.change(r, structs.CommandNodeEligibility, change)
}

func (h *nodeHandlers) cordon(r *front.Request, node *structs.Node) (*api.Changed, error) {
	return h.change(r, structs.CommandNodeEligibility, structs.NodeEligibilityChange{NodeID: node.ID, Eligibility: structs.NodeCordoned})
}

func (h *nodeHandlers) uncordon(r *front.Request, node *structs.Node) (*api.Changed, error) {
	return h.change(r, structs.CommandNodeEligibility, structs.NodeEligibilityChange{NodeID: node.ID, Eligibility: structs.NodeEligible})
}

// remove answers nodes.remove: the node is shut out and forgotten.
func (h *nodeHandlers) remove(r *front.Request, node *structs.Node) (*api.Changed, error) {
	if h.members.Protocol() < wire.ProtocolNodeRemovals {
		return nil, structs.NewError(structs.CodeConflict, "agent.upgrade_servers")
	}
	for _, peer := range h.members.Peers() {
		if peer.ID == node.ID {
			return nil, structs.NewError(structs.CodeConflict, "agent.remove_server", "id", node.ID)
		}
	}
	until := structs.At(h.now().Add(auth.AgentTTL + h.lapseGrace + 24*time.Hour))
	return h.change(r, structs.CommandNodeRemove, structs.NodeRemove{NodeID: node.ID, Revoke: true, Until: until})
}
