package structs

// Bounds of what nodes ask each other for.
const (
	StagingPeersMax = 64      // nodes that one node is told of
	StagingNearMax  = 48      // of them, those of its own rack at most, as long as there are others
	StagingPieceMax = 8 << 20 // bytes of one answer
)

// StagingPeersAsk asks a server which nodes have data that an allocation of the caller is
// being given, or are getting it.
type StagingPeersAsk struct {
	AllocID string `json:"alloc_id"`
	Project string `json:"project"` // of the data
	Digest  string `json:"digest"`  // of the version's manifest
}

// StagingPeers is the answer: at most StagingPeersMax nodes.
type StagingPeers struct {
	Peers []StagingPeer `json:"peers,omitempty"`
}

// StagingPeer is a node that may have a version of named data.
type StagingPeer struct {
	NodeID string `json:"node_id"`
	Name   string `json:"name"` // for people
	Addr   string `json:"addr"` // host:port of its agent
	Near   bool   `json:"near,omitempty"`
}

// StagingMayAsk asks a server whether a node may read a version of named data: because an
// allocation of that node, which has not ended, uses it.
type StagingMayAsk struct {
	NodeID  string `json:"node_id"` // whose certificate the caller has seen
	AllocID string `json:"alloc_id"`
	Project string `json:"project"`
	Digest  string `json:"digest"`
}

// StagingMay is the answer; a refusal is an error.
type StagingMay struct{}

// What a node asks another one for.
const (
	StagingHave     = "have"     // which pieces it has
	StagingManifest = "manifest" // a part of the version's manifest
	StagingRead     = "read"     // one piece
)

// StagingAsk asks a node for its copy of a version of named data. How a version is cut into
// pieces follows from its manifest.
type StagingAsk struct {
	What    string `json:"what"`
	AllocID string `json:"alloc_id"` // of the asking node, which uses the version
	Project string `json:"project"`
	Digest  string `json:"digest"`
	Known   int    `json:"known,omitempty"`  // of have: how many pieces the caller knows of
	Piece   int    `json:"piece,omitempty"`  // of read
	Offset  int64  `json:"offset,omitempty"` // of manifest
}

// StagingReply is what the node says.
type StagingReply struct {
	Count int    `json:"count,omitempty"` // pieces that it has
	Whole bool   `json:"whole,omitempty"` // these are all
	Have  []byte `json:"have,omitempty"`  // a bit for each piece; none where nothing is new, or all are there
	Data  []byte `json:"data,omitempty"`
	Total int64  `json:"total,omitempty"` // bytes of the manifest
	// Busy says instead of data after how many milliseconds the node may be asked again.
	Busy int64 `json:"busy,omitempty"`
}
