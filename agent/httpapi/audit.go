package httpapi

import (
	"context"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/audit/journal"
	"nomadlike/nomadlike/structs"
)

// auditHandlers answers from the audit record.
type auditHandlers struct {
	*core
	record  AuditRecord
	members Membership
}

// AuditRecord is the audit record of all servers, as this one has it.
type AuditRecord interface {
	// Refresh fetches what the other servers have, and returns the ids of those
	// that answered.
	Refresh(ctx context.Context) (answered map[string]bool)
	// Query looks for records, from behind a cursor on.
	Query(ctx context.Context, filter audit.Filter, after string, limit int) (journal.Page, error)
	// Servers lists the servers of which there are records here, with the newest
	// of each.
	Servers() []api.AuditServer
	// Verify has every server verify what is on its disk, and returns the ids of
	// those that did not answer.
	Verify(ctx context.Context) (chains []structs.AuditChain, away []string, err error)
}

// auditPatience bounds how long a look at the record may take.
const auditPatience = 30 * time.Second

// list answers audit.list.
func (h *auditHandlers) list(r *front.Request) (*api.AuditList, error) {
	q := front.Query{R: r}
	filter := audit.Filter{
		User: q.Text("user"), Object: q.Text("object"), Action: q.Text("action"), Refused: q.Bool("refused"),
		Since: h.moment(&q, "since"), Until: h.moment(&q, "until"),
	}
	after, limit := q.Text("after"), q.Limit()
	if q.Err != nil {
		return nil, q.Err
	}
	ctx, cancel := context.WithTimeout(r.Context(), auditPatience)
	defer cancel()
	answered := h.record.Refresh(ctx)
	page, err := h.record.Query(ctx, filter, after, limit)
	if err != nil {
		return nil, err
	}
	out := api.AuditList{Records: page.Records, Next: page.Next, Servers: h.record.Servers()}
	if page.Until > 0 {
		out.Until = &page.Until
	}
	names := h.names()
	known := make(map[string]bool)
	for i := range out.Servers {
		one := &out.Servers[i]
		one.Name, one.Answered = names[one.ID], answered[one.ID]
		known[one.ID] = true
	}
	for _, peer := range h.members.Peers() { // one that never gave its records is named, too
		if !known[peer.ID] {
			out.Servers = append(out.Servers, api.AuditServer{ID: peer.ID, Name: names[peer.ID], Answered: answered[peer.ID]})
		}
	}
	return &out, nil
}

// verify answers audit.verify.
func (h *auditHandlers) verify(r *front.Request) (*api.AuditCheck, error) {
	ctx, cancel := context.WithTimeout(r.Context(), auditPatience)
	defer cancel()
	chains, away, err := h.record.Verify(ctx)
	if err != nil {
		return nil, err
	}
	out := api.AuditCheck{Whole: len(away) == 0, Chains: chains, Away: append([]string{}, away...), Names: h.names()}
	for _, chain := range chains {
		out.Whole = out.Whole && chain.Broken == ""
	}
	return &out, nil
}

func (h *auditHandlers) names() map[string]string {
	names := make(map[string]string)
	for _, member := range h.members.Members() {
		names[member.ID] = member.Name
	}
	return names
}

// moment reads a time, or a span before now; 0 when there is none.
func (h *auditHandlers) moment(q *front.Query, name string) structs.UnixNano {
	text := q.Text(name)
	if text == "" {
		return 0
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return structs.At(at)
	}
	span, err := structs.ParseDuration(text)
	if err != nil || span < 0 {
		q.Refuse(name, text)
		return 0
	}
	return structs.At(time.Now().Add(-span.Std()))
}
