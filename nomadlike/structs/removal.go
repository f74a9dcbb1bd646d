package structs

import "slices"

// RemovedNodesMax bounds the removed nodes that the cluster's record names. They
// leave it when no certificate of theirs can be renewed any more.
const RemovedNodesMax = 4096

// RemovedNode is a node whose certificate is refused everywhere, however long
// it is still good.
type RemovedNode struct {
	ID    string   `json:"id"`
	Name  string   `json:"name,omitempty"`
	At    UnixNano `json:"at"`
	By    string   `json:"by,omitempty"`
	Until UnixNano `json:"until"` // until then a certificate of it could be good, or be renewed
}

// IsNodeRemoved reports whether a node is shut out.
func (c *Cluster) IsNodeRemoved(id string) bool {
	return c != nil && slices.ContainsFunc(c.RemovedNodes, func(n RemovedNode) bool { return n.ID == id })
}

// NodeRemove makes the servers forget a node; what ran there is lost with it.
// With Revoke the node is shut out as well: its certificate is refused from
// then on. Without, it is a node that was down for long and may come back by
// registering: RegisterIndex is then that of the registration that was judged,
// and another is left alone.
type NodeRemove struct {
	NodeID        string   `json:"node_id"`
	Revoke        bool     `json:"revoke,omitempty"`
	Until         UnixNano `json:"until,omitempty"` // with Revoke, see RemovedNode
	RegisterIndex uint64   `json:"register_index,omitempty"`
}

// TellsTrust reports whether the record says anything that nodes must know.
func (c *Cluster) TellsTrust() bool {
	return len(c.RemovedNodes) > 0 || c.GossipKey != nil || c.CA != nil
}

// TrustNews is what the leader tells an agent about whom to trust. News that are
// older than what the agent has are not taken.
type TrustNews struct {
	Index     uint64   `json:"index"`                // log index of the cluster's record that says it
	RevivedAt UnixNano `json:"revived_at,omitempty"` // of that record: the index may begin anew with it
	Removed   []string `json:"removed,omitempty"`    // ids of nodes that are shut out

	// Gossip are the keys of gossip that the agent is to hold, the one to use
	// first; nothing leaves it as it is.
	Gossip [][]byte `json:"gossip,omitempty"`

	// CA are the certificates to trust, that which signs first; nothing leaves it
	// as it is. PastCA are those of before, for an agent that brings one along.
	CA     []CACertificate `json:"ca,omitempty"`
	PastCA []PastCA        `json:"past_ca,omitempty"`
}

// TrustAck reports that the news are kept, and which keys the agent holds, by
// fingerprint, the one that it uses first.
type TrustAck struct {
	Index  uint64   `json:"index"`
	Gossip []string `json:"gossip,omitempty"`
	CA     []string `json:"ca,omitempty"` // of the certificates that it trusts; that first which signed its own
}
