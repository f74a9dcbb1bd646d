package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

// AuditList is a page of audit records, newest first.
type AuditList struct {
	Records []audit.Record    `json:"records"`
	Servers []AuditServer     `json:"servers"`         // whose records were looked at
	Next    string            `json:"next,omitempty"`  // cursor of the next page; empty when there is no more
	Until   *structs.UnixNano `json:"until,omitempty"` // back to when records were looked at, where the page is not full and there may be more
}

// AuditServer is a server whose audit records were looked at.
type AuditServer struct {
	ID       string           `json:"id"`
	Name     string           `json:"name,omitempty"`    // empty for one that is not there any more
	Answered bool             `json:"answered"`          // itself; else the records are those of its copies
	Last     uint64           `json:"last"`              // number of its newest record here; 0: there is none
	LastAt   structs.UnixNano `json:"last_at,omitempty"` // time of that
}

// AuditCheck is what a look at the audit records on all disks came to.
type AuditCheck struct {
	Whole  bool                 `json:"whole"` // every chain on every disk is, and every server answered
	Chains []structs.AuditChain `json:"chains"`
	Away   []string             `json:"away"`  // ids of servers that did not answer
	Names  map[string]string    `json:"names"` // of servers, by id
}

// The endpoints of the audit record.
var (
	AuditRead = endpoint[None, AuditList](Route{
		Name: "audit.list", Method: http.MethodGet, Pattern: "/v1/audit", Verb: VerbAudit, Kind: ObjectCluster, From: FromKind,
		Query: []Param{
			{"user", "string", "only what this user asked for"},
			{"object", "string", "only what this object was asked for: kind/id, a kind, or the beginning of an id"},
			{"action", "string", "only this action, such as jobs.stop, or all of a kind, such as tokens"},
			{"since", "string", "only what is as new: a time such as 2026-11-26T12:00:00Z, or how far back, such as 24h"},
			{"until", "string", "only what is as old, likewise"},
			{"refused", "boolean", "only what was refused"},
			{"limit", "integer", "at most so many records, 1 to 1000; 100 unless told"},
			{"after", "string", "the cursor `next` of the page before"},
		},
		Summary: "Who did what to which object, from where, allowed or refused; newest first, from all servers",
	})
	AuditVerify = endpoint[None, AuditCheck](Route{
		Name: "audit.verify", Method: http.MethodGet, Pattern: "/v1/audit/verify", Verb: VerbAudit, Kind: ObjectCluster, From: FromKind,
		Summary: "Whether the audit records on every server's disk are whole, else which line is the first that does not follow",
	})
)

func auditRoutes() []Route { return []Route{AuditRead.route, AuditVerify.route} }

// AuditQuery says which audit records are asked for.
type AuditQuery struct {
	User, Object, Action string
	Since, Until         string // times or spans, as the route takes them
	Refused              bool
	Limit                int    // 0: as many as the server says
	After                string // cursor
}

// Audit returns a page of the audit record.
func (c *Client) Audit(ctx context.Context, query AuditQuery) (*AuditList, error) {
	values := url.Values{}
	for name, value := range map[string]string{
		"user": query.User, "object": query.Object, "action": query.Action, "since": query.Since, "until": query.Until, "after": query.After,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if query.Refused {
		values.Set("refused", "true")
	}
	if query.Limit > 0 {
		values.Set("limit", strconv.Itoa(query.Limit))
	}
	out, _, err := read(ctx, c, AuditRead, "", values)
	return out, err
}

// VerifyAudit has every server verify the audit records on its disk.
func (c *Client) VerifyAudit(ctx context.Context) (*AuditCheck, error) {
	out, _, err := read(ctx, c, AuditVerify, "", nil)
	return out, err
}
