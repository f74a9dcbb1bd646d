// Package logkey names the keys of structured log records, so that one thing
// has one key in every package and log queries keep working.
package logkey

// Keys of structured log records.
const (
	JobID    = "job_id"
	Job      = "job"
	Subjob   = "subjob"
	Attempt  = "attempt"
	AllocID  = "alloc_id"
	TaskID   = "task_id"
	Rank     = "rank"
	NodeID   = "node_id"
	NodeName = "node"
	ServerID = "server_id"
	PeerID   = "peer_id"
	Addr     = "addr"
	Index    = "index"
	Term     = "term"
	Error    = "error"
	Reason   = "reason"
	State    = "state"
	Took     = "took"
	Path     = "path"
	PID      = "pid"
	Count    = "count"
	Method   = "method"
	Status   = "status"
	User     = "user"
	TokenID  = "token_id"
	Provider = "provider"
	Plugin   = "plugin"
	Driver   = "driver"
	Signal   = "signal"
	Version  = "version"
	Package  = "package"
	Request  = "request_id"
)
