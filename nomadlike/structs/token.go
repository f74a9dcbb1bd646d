package structs

// Token is a stored API credential. The secret itself is never stored.
type Token struct {
	ID          string   `json:"id"` // accessor, safe to show
	Name        string   `json:"name,omitempty"`
	Hash        []byte   `json:"hash,omitempty"`    // SHA-256 of the secret; never leaves the servers
	Role        string   `json:"role"`              // viewer | user | project-admin | operator | admin; of share links guest | board
	Project     string   `json:"project,omitempty"` // "" for roles of the whole cluster
	User        string   `json:"user,omitempty"`
	JobID       string   `json:"job_id,omitempty"` // of a guest: the one job that the link shows
	CreatedAt   UnixNano `json:"created_at"`
	CreatedBy   string   `json:"created_by,omitempty"`
	ExpiresAt   UnixNano `json:"expires_at,omitempty"`
	ModifyIndex uint64   `json:"modify_index"`
}

// JoinToken lets agents into the cluster: bound to one role, limited in uses
// and time. The secret itself is never stored.
type JoinToken struct {
	ID          string   `json:"id"`
	Hash        []byte   `json:"hash,omitempty"` // SHA-256 of the secret
	Role        string   `json:"role"`           // server | client
	UsesLeft    int      `json:"uses_left"`      // -1: without limit
	ExpiresAt   UnixNano `json:"expires_at"`
	CreatedAt   UnixNano `json:"created_at"`
	CreatedBy   string   `json:"created_by,omitempty"`
	ModifyIndex uint64   `json:"modify_index"`
}

// Cluster is the one record of what the cluster is.
type Cluster struct {
	ID              string   `json:"id"`
	CAFingerprint   string   `json:"ca_fingerprint"`
	SetupHash       []byte   `json:"setup_hash,omitempty"` // SHA-256 of the one-time bootstrap secret
	Bootstrapped    bool     `json:"bootstrapped"`         // the first management token was made
	ProtocolVersion int      `json:"protocol_version"`
	CreatedAt       UnixNano `json:"created_at"`
	ModifyIndex     uint64   `json:"modify_index"`
}
