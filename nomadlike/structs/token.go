package structs

import "slices"

// Token is a stored API credential. The secret itself is never stored.
type Token struct {
	ID          string   `json:"id"` // accessor, safe to show
	Name        string   `json:"name,omitempty"`
	Hash        []byte   `json:"hash,omitempty"`    // SHA-256 of the secret; never leaves the servers
	Role        string   `json:"role"`              // viewer | user | project-admin | operator | admin | account; of share links guest | board
	Project     string   `json:"project,omitempty"` // "" for roles of the whole cluster
	User        string   `json:"user,omitempty"`
	JobID       string   `json:"job_id,omitempty"` // of a guest: the one job that the link shows
	CreatedAt   UnixNano `json:"created_at"`
	CreatedBy   string   `json:"created_by,omitempty"`
	ExpiresAt   UnixNano `json:"expires_at,omitempty"`
	ModifyIndex uint64   `json:"modify_index"`

	// Of tokens for programs: what they are good for, within what the role gives. nil: for
	// all of it, and from everywhere.
	Verbs     []string `json:"verbs,omitempty" since:"27"`     // as the policy spells them
	Addresses []string `json:"addresses,omitempty" since:"27"` // that requests may come from: addresses and prefixes

	// Of tokens that a sign-in made.
	Method string   `json:"method,omitempty" since:"25"`  // password | ldap | oidc; "": somebody made it
	From   string   `json:"from,omitempty" since:"25"`    // the address that it was made for
	EndsAt UnixNano `json:"ends_at,omitempty" since:"25"` // up to when ExpiresAt may be put off
	// Provider is the one that the sign-in went through; "": none, but a password of the account.
	Provider string `json:"provider,omitempty" since:"28"`

	// Of tokens of service accounts: when it was used last, to the minute, and from where.
	UsedAt   UnixNano `json:"used_at,omitempty" since:"34"`
	UsedFrom string   `json:"used_from,omitempty" since:"34"`
}

// Bounds of what a token says that it is good for.
const (
	TokenVerbsMax     = 32
	TokenAddressesMax = 32
)

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
	RevivedAt       UnixNano `json:"revived_at,omitempty"` // when its state was last brought back from a backup or a survivor
	ModifyIndex     uint64   `json:"modify_index"`

	// Removed are the servers that an administrator took out, oldest first:
	// they stay out until an administrator lets them back in.
	Removed []RemovedServer `json:"removed,omitempty"`

	// RemovedNodes are the nodes that are shut out, oldest first.
	RemovedNodes []RemovedNode `json:"removed_nodes,omitempty" since:"12"`

	// Unwell are the servers that lack something, so that each change is told once,
	// whoever leads.
	Unwell []ServerCondition `json:"unwell,omitempty" since:"13"`

	// GossipKey is nil until the key is rotated for the first time.
	GossipKey *KeyState `json:"gossip_key,omitempty" since:"14"`

	// CA is nil until the CA is rotated for the first time.
	CA *CAState `json:"ca,omitempty" since:"16"`

	// Maintenance are the windows that have not ended, by start; at most
	// MaintenanceMax.
	Maintenance []Maintenance `json:"maintenance,omitempty" since:"18"`
}

// Bounds of ServerCondition.
const (
	UnwellServersMax    = 64
	ServerConditionText = 512 // bytes of each text
)

// ServerCondition is what a server lacks, as it says itself.
type ServerCondition struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Full   bool   `json:"full,omitempty"`   // its disk has no room for log entries
	Backup string `json:"backup,omitempty"` // why its last backup failed; "": it did not
}

// Well reports whether there is nothing to tell.
func (c ServerCondition) Well() bool { return !c.Full && c.Backup == "" }

// Condition is what the log last heard of a server.
func (c *Cluster) Condition(id string) ServerCondition {
	if c != nil {
		for _, known := range c.Unwell {
			if known.ID == id {
				return known
			}
		}
	}
	return ServerCondition{ID: id}
}

// RemovedServersMax bounds Cluster.Removed; beyond, the oldest is forgotten.
const RemovedServersMax = 256

// RemovedServer is a server that an administrator took out.
type RemovedServer struct {
	ID string   `json:"id"`
	By string   `json:"by,omitempty"`
	At UnixNano `json:"at"`
}

// IsRemoved reports whether an administrator took the server out.
func (c *Cluster) IsRemoved(id string) bool {
	return c != nil && slices.ContainsFunc(c.Removed, func(s RemovedServer) bool { return s.ID == id })
}
