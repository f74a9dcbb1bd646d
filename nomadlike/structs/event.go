package structs

// Event says what happened to an object, when, by whom and why. Events are
// append-only; ID and Params are rendered by the reader's catalogue.
type Event struct {
	Index    uint64            `json:"index"` // Raft index that made it
	Seq      int               `json:"seq"`   // order within the index
	Time     UnixNano          `json:"time"`  // when, by the proposing server's clock
	Topic    string            `json:"topic"` // job | attempt | alloc | node | token | cluster | data
	ID       string            `json:"id"`    // message id
	Params   map[string]string `json:"params,omitempty"`
	By       string            `json:"by,omitempty"` // user or agent that caused it
	Project  string            `json:"project,omitempty"`
	JobID    string            `json:"job_id,omitempty"`
	Subjob   int               `json:"subjob,omitempty"`
	Attempt  uint64            `json:"attempt,omitempty"`
	AllocID  string            `json:"alloc_id,omitempty"`
	NodeID   string            `json:"node_id,omitempty"`
	Severity string            `json:"severity,omitempty"` // "" info | warn | error
	Cause    *Reason           `json:"cause,omitempty"`    // why, in words of its own, to be put behind those of ID
}
