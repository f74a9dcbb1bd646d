package structs

// AuditAsk asks a server for the audit records that the asker does not have yet.
type AuditAsk struct {
	Heads []AuditHead `json:"heads"` // of every chain that the asker has
	Wait  bool        `json:"wait"`  // answer when there is something, or after a while
}

// AuditHead is the last line of a chain that somebody has.
type AuditHead struct {
	Server string `json:"server"`
	Seq    uint64 `json:"seq"`
}

// AuditTail answers an AuditAsk; nothing when the asker has everything.
type AuditTail struct {
	Parts []AuditPart `json:"parts"`
}

// AuditPart is lines of the audit record of one server, one after the other.
type AuditPart struct {
	Server string `json:"server"`
	Lines  []byte `json:"lines"`
}

// NodeRefusals is what the agent of a node has refused at its own door, before a server
// heard of it. Servers believe the node's certificate, and the rest as its word.
type NodeRefusals struct {
	Refusals []NodeRefusal `json:"refusals"` // at most NodeRefusalsMax
}

// NodeRefusalsMax is how many of them are told at a time.
const NodeRefusalsMax = 64

// NodeRefusal is one of them, or several alike.
type NodeRefusal struct {
	Request string   `json:"request,omitempty"` // id that its answer had
	Address string   `json:"address"`           // that it came from
	Reason  string   `json:"reason"`            // id of the refusal
	Count   int      `json:"count,omitempty"`   // how many it stands for, where that is not one
	Ago     Duration `json:"ago,omitempty"`     // how long it has waited for a server
}

// NodeRefusalsKept says that a server has taken them.
type NodeRefusalsKept struct{}

// AuditCheckAsk has a server verify the chains on its disk.
type AuditCheckAsk struct{}

// AuditChecked answers an AuditCheckAsk.
type AuditChecked struct {
	Chains []AuditChain `json:"chains"`
}

// AuditChain is how the records of one server are on the disk of one server.
type AuditChain struct {
	Server string   `json:"server"`           // whose records they are
	Holder string   `json:"holder"`           // on whose disk
	First  uint64   `json:"first"`            // number of the first line that is kept
	Last   uint64   `json:"last"`             // number of the last line that follows the one before
	Hash   string   `json:"hash"`             // SHA-256 of that line
	At     UnixNano `json:"at"`               // time of that line
	Lines  int      `json:"lines"`            // that were read
	Broken string   `json:"broken,omitempty"` // how the next line does not follow: unreadable, server, missing, order, hash, copy; empty: all do
	Seq    uint64   `json:"seq,omitempty"`    // number of that next line
	File   string   `json:"file,omitempty"`   // that has it
	Line   int      `json:"line,omitempty"`   // its place in the file, from 1
}
