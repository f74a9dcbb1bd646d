package audit

import (
	"strings"

	"nomadlike/nomadlike/structs"
)

// Outcome says what became of what somebody asked for.
type Outcome string

// The outcomes.
const (
	Allowed Outcome = "allowed" // it was done
	Refused Outcome = "refused" // the caller may not do it, or did not say who they are
	Failed  Outcome = "failed"  // the caller may do it, and it could not be done
)

// Actions of records that no route causes. Those of requests are the names of
// their routes, such as jobs.stop.
const (
	ActionDoor       = "door"                 // a request that was refused before its route was known; with Node: at that node's door
	ActionTokenUse   = "token.use"            // a token is used from an address for the first time in an hour
	ActionShareUse   = "share.use"            // the same of a share link
	ActionSecretUse  = "secrets.use"          // a node was given a secret for an allocation that it runs
	ActionCodeUse    = "jobs.code_use"        // a node was given code for an allocation that it runs
	ActionChannelUse = "channels.use"         // a server opened the address of a channel to send a message there
	ActionExecEnd    = "allocations.exec_end" // a terminal has ended
	ActionBegin      = "audit.begin"          // a server began to record
	ActionRecovered  = "audit.recovered"      // a last line was not whole, and was cut off
	ActionLost       = "audit.lost"           // records could not be written; count says how many
	ActionForget     = "audit.forget"         // files were removed because of their age or size
	ActionDiverged   = "audit.diverged"       // another server's chain is not what it was before
	ActionBehind     = "audit.behind"         // others have lines of this server's chain that it lacks
	ActionUnsent     = "audit.unsent"         // records were removed before they were forwarded
)

// textMax bounds each text of a record, in bytes.
const textMax = 256

// Actor is who asked. The zero value is somebody unknown.
type Actor struct {
	Kind    string `json:"kind,omitempty"`     // user | guest | board | server; empty for somebody unknown
	User    string `json:"user,omitempty"`     // name; of a server its id
	Role    string `json:"role,omitempty"`     // of a user
	Method  string `json:"method,omitempty"`   // token | session | share; of sign-ins through a provider ldap:NAME or oidc:NAME
	TokenID string `json:"token_id,omitempty"` // of the token that was shown or that the session stands for
}

// Object is what was asked about.
type Object struct {
	Kind    string `json:"kind,omitempty"`
	ID      string `json:"id,omitempty"`      // empty for a kind as a whole
	Part    string `json:"part,omitempty"`    // allocation of a job, or the link that was made to it
	Project string `json:"project,omitempty"` // of kinds inside a project
	Owner   string `json:"owner,omitempty"`   // user who made it
}

// Record is one line of the audit record: who did what to which object, from
// where, and what became of it. It holds no secret and nothing of a request's
// body. The journal fills in Seq, Server and Prev.
type Record struct {
	Seq       uint64           `json:"seq"`    // place in the chain, from 1
	Server    string           `json:"server"` // id of the server that wrote it
	Time      structs.UnixNano `json:"time"`
	Request   string           `json:"request,omitempty"` // the request's id, which its answer has as X-Request-Id
	Actor     Actor            `json:"actor"`
	Address   string           `json:"address,omitempty"`   // that the request came from
	Forwarded int              `json:"forwarded,omitempty"` // agents that passed it on before: the address is the last one's
	// Node is the id, by its certificate, of the node through which it came, or that has
	// refused it at its own door; Said is the address that it came from there, by the
	// word of that node alone.
	Node     string           `json:"node,omitempty"`
	Said     string           `json:"said,omitempty"`
	Action   string           `json:"action"`
	Object   Object           `json:"object"`
	Outcome  Outcome          `json:"outcome"`
	Status   int              `json:"status,omitempty"`   // HTTP status of the answer
	Reason   string           `json:"reason,omitempty"`   // id of the refusal or failure
	Index    uint64           `json:"index,omitempty"`    // of the log, at which the change was made
	Count    int              `json:"count,omitempty"`    // how many requests it stands for, where that is not one
	Sent     int64            `json:"sent,omitempty"`     // bytes, to the caller
	Received int64            `json:"received,omitempty"` // bytes, from the caller
	Took     structs.Duration `json:"took,omitempty"`
	Prev     string           `json:"prev"` // SHA-256 of the line before, in hexadecimal; empty in the first line
}

// Bounded is the record with texts that are valid and not longer than a record
// may have: names and addresses come from callers.
func (r Record) Bounded() Record {
	for _, text := range []*string{
		&r.Server, &r.Request, &r.Actor.Kind, &r.Actor.User, &r.Actor.Role, &r.Actor.Method, &r.Actor.TokenID, &r.Address, &r.Node, &r.Said, &r.Action,
		&r.Object.Kind, &r.Object.ID, &r.Object.Part, &r.Object.Project, &r.Object.Owner, &r.Reason,
	} {
		*text = bounded(*text)
	}
	return r
}

func bounded(text string) string {
	if len(text) > textMax {
		text = text[:textMax]
	}
	return strings.ToValidUTF8(text, "")
}
