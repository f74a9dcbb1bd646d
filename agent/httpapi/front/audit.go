package front

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// Bounds of how much one caller can have recorded.
const (
	refusalsPer    = time.Minute // in which what a caller is refused is counted together
	refusalsSingle = 30          // of them that are records of their own, of a caller with a token
	refusalsMax    = 4096        // callers and reasons that are told apart
	usesPer        = time.Hour   // in which a use of a token, or a read, is recorded once
	usesMax        = 65536       // of them that are remembered
)

// Recorder takes audit records; journal.Journal does. A record that it cannot
// keep it logs itself.
type Recorder interface {
	Append(r audit.Record) error
}

// auditor records what is asked at a door. Its methods may be called from any
// goroutine.
type auditor struct {
	to  Recorder
	now func() time.Time

	mu struct {
		sync.Mutex
		refusals audit.Tally
		uses     audit.Seen[use]
	}
}

// use is what is recorded once in a while, however often it happens.
type use struct{ token, peer, action, object string }

func newAuditor(to Recorder, now func() time.Time) *auditor {
	if to == nil {
		return nil
	}
	a := &auditor{to: to, now: now}
	a.mu.refusals = audit.Tally{Per: refusalsPer, Single: refusalsSingle, Max: refusalsMax}
	a.mu.uses = audit.Seen[use]{Per: usesPer, Max: usesMax}
	return a
}

// SweepAudit records the refusals that were only counted so far: those whose time
// is over, or all. The agent calls it every now and then, and at its end.
func (f *Front) SweepAudit(all bool) { f.audit.sweep(all) }

func (a *auditor) sweep(all bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	due := a.mu.refusals.Due(structs.At(a.now()), all)
	a.mu.Unlock()
	for _, r := range due {
		_ = a.to.Append(r)
	}
}

// name draws the id of a request, which the answer tells. What the request itself
// says of an id counts for nothing.
func (a *auditor) name(w http.ResponseWriter) {
	if a == nil {
		return
	}
	var id [12]byte
	rand.Read(id[:]) // never fails
	w.Header().Set(api.HeaderRequestID, hex.EncodeToString(id[:]))
}

// trail is what the record of one request is made from, as it becomes known. A
// nil trail records nothing.
type trail struct {
	auditor *auditor
	route   *api.Route
	http    *http.Request
	begun   time.Time

	request *Request    // once the caller is known
	err     error       // what the answer says
	refusal error       // by the policy, the last one
	reason  auth.Reason // of that; the answer may say that there is no such object
	made    string      // id of what the request made
	written bool
}

func (a *auditor) trail(route *api.Route, r *http.Request, begun time.Time) *trail {
	if a == nil {
		return nil
	}
	return &trail{auditor: a, route: route, http: r, begun: begun}
}

// of notes who asks what, once that is known.
func (t *trail) of(r *Request) {
	if t != nil {
		t.request = r
	}
}

// failed notes what the answer says; nil: nothing is wrong.
func (t *trail) failed(err error) {
	if t != nil {
		t.err = err
	}
}

// Made names what a request has made, which its path does not: a job, a token, a
// window.
func (r *Request) Made(id string) {
	if r.trail != nil {
		r.trail.made = id
	}
}

// refusedBy notes why the policy refuses a request.
func (r *Request) refusedBy(reason auth.Reason, refusal error) {
	if r.trail != nil {
		r.trail.reason, r.trail.refusal = reason, refusal
	}
}

// EndTerminal records the end of a terminal, with the bytes that went to its
// caller and came from it.
func (r *Request) EndTerminal(sent, received int64, err error) {
	t := r.trail
	if t == nil {
		return
	}
	record := t.record(r.Writer.Header().Get(api.HeaderRequestID), 0)
	record.Action, record.Outcome = audit.ActionExecEnd, audit.Allowed
	record.Sent, record.Received, record.Took = sent, received, structs.Duration(t.auditor.now().Sub(t.begun))
	var failure *structs.Error
	if errors.As(err, &failure) {
		record.Reason = failure.ID
	}
	_ = t.auditor.to.Append(record)
}

// answering records the request before the first byte of its answer is sent. It
// may be called again.
func (t *trail) answering(h http.Header, status int) {
	if t == nil || t.written {
		return
	}
	t.written = true
	ids := h[api.HeaderRequestID]
	if len(ids) > 1 { // the leader, which answers in our place, has named it too
		ids = ids[len(ids)-1:]
		h[api.HeaderRequestID] = ids
	}
	id := ""
	if len(ids) > 0 {
		id = ids[0]
	}
	t.use(id)
	if t.err == nil && status < http.StatusBadRequest && !t.changes() && !t.watched() {
		return // most requests
	}
	record := t.record(id, status)
	if index, err := strconv.ParseUint(h.Get(api.HeaderIndex), 10, 64); err == nil && t.route.Mutates() {
		record.Index = index
	}
	if t.weigh(&record) {
		_ = t.auditor.to.Append(record)
	}
}

// weigh reports whether a request has a record of its own.
func (t *trail) weigh(r *audit.Record) bool {
	changes := t.changes()
	switch {
	case r.Outcome == audit.Refused, r.Outcome == audit.Failed && changes && r.Status < http.StatusInternalServerError:
		// Nothing was done: however often somebody tries, few lines tell of it.
		t.auditor.mu.Lock()
		defer t.auditor.mu.Unlock()
		cause := audit.Cause{Address: PeerKey(t.http.RemoteAddr), TokenID: r.Actor.TokenID, Reason: r.Reason}
		return t.auditor.mu.refusals.Note(cause, *r)
	case changes:
		return true
	case r.Outcome == audit.Allowed && t.watched():
		return t.auditor.first(use{r.Actor.TokenID, "", r.Action, r.Object.ID}, r.Time)
	}
	return false
}

// changes reports whether the request has something done, or everything told.
func (t *trail) changes() bool {
	return !t.route.Question && (t.route.Mutates() || t.route.Verb == api.VerbSnapshot || t.route.Stream == api.StreamWebsocket)
}

// watched reports whether a read is one that people should know of: of somebody
// else's logs and files, on the strength of a role, or of the record itself.
func (t *trail) watched() bool {
	if t.route.Verb == api.VerbAudit {
		return true
	}
	if t.route.Verb != api.VerbLogs || t.request == nil {
		return false
	}
	who := t.request.Caller.Principal
	wide := who.Role == auth.RoleAdmin || who.Role == auth.RoleOperator || who.Role == auth.RoleProjectAdmin
	return who.Kind == auth.KindUser && wide && t.request.Object.Owner != who.ID
}

func (a *auditor) first(what use, now structs.UnixNano) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.uses.First(what, now)
}

// use records that a token is used, for the first time in a while from where it
// is.
func (t *trail) use(id string) {
	if t.request == nil || t.request.Caller.Token == nil || t.route.Verb == api.VerbLogin {
		return
	}
	action := audit.ActionTokenUse
	switch t.request.Caller.Principal.Kind {
	case auth.KindGuest, auth.KindBoard:
		action = audit.ActionShareUse
	}
	token, now := t.request.Caller.Token, structs.At(t.auditor.now())
	if !t.auditor.first(use{token: token.ID, peer: PeerKey(t.http.RemoteAddr), action: action}, now) {
		return
	}
	node, said := passedOnBy(t.http)
	_ = t.auditor.to.Append(audit.Record{
		Time: now, Request: id, Actor: actorOf(&t.request.Caller), Address: hostOf(t.http.RemoteAddr), Forwarded: Forwards(t.http), Node: node, Said: said,
		Action: action, Object: audit.Object{Kind: string(auth.ObjectToken), ID: token.ID, Project: token.Project}, Outcome: audit.Allowed,
	})
}

// record is what is known of the request.
func (t *trail) record(id string, status int) audit.Record {
	r := audit.Record{
		Time: structs.At(t.auditor.now()), Request: id, Address: hostOf(t.http.RemoteAddr), Forwarded: Forwards(t.http),
		Action: t.route.Name, Object: audit.Object{Kind: string(t.route.Kind), ID: t.http.PathValue("id")}, Status: status,
	}
	r.Node, r.Said = passedOnBy(t.http)
	if t.request != nil {
		r.Actor, r.Object = actorOf(&t.request.Caller), t.object()
		r.Actor.Method = cmp.Or(t.request.Through, r.Actor.Method)
	}
	r.Outcome, r.Reason = t.outcome(status)
	return r
}

// outcome says what became of the request, and why.
func (t *trail) outcome(status int) (audit.Outcome, string) {
	var failure *structs.Error
	code, reason := structs.ErrorCode(""), ""
	if errors.As(t.err, &failure) {
		code, reason = failure.Code, failure.ID
	} else if t.err != nil {
		reason = "agent.internal"
	}
	switch {
	case t.err != nil && t.refusal != nil && errors.Is(t.err, t.refusal):
		return audit.Refused, "auth.forbidden." + string(t.reason)
	case code == structs.CodeUnauthorized, code == structs.CodeForbidden,
		t.err == nil && (status == http.StatusUnauthorized || status == http.StatusForbidden): // the leader's answer
		return audit.Refused, reason
	case t.err != nil, status >= http.StatusBadRequest:
		return audit.Failed, reason
	}
	return audit.Allowed, ""
}

// object is what the request was about, by its full id.
func (t *trail) object() audit.Object {
	r := t.request
	out := audit.Object{Kind: string(r.Object.Kind), ID: r.ID, Project: r.Object.Project, Owner: r.Object.Owner}
	if out.Kind == "" {
		out.Kind = string(t.route.Kind)
	}
	if t.route.From == api.FromAllocation {
		out.ID, out.Part = "", r.ID
		for _, rest := range r.Rests {
			if rest.Kind == structs.RestJob {
				out.ID = rest.ID
			}
		}
	}
	switch {
	case t.made == "":
	case out.ID == "":
		out.ID = t.made
	default:
		out.Part = t.made
	}
	return out
}

func actorOf(c *Caller) audit.Actor {
	who := audit.Actor{Kind: string(c.Principal.Kind), Role: string(c.Principal.Role)}
	if c.Principal.Kind == auth.KindUser {
		who.User = c.Principal.ID
	}
	if c.Token == nil {
		return who
	}
	who.TokenID = c.Token.ID
	switch {
	case c.session != nil:
		who.Method = "session"
	case c.Principal.Kind == auth.KindGuest, c.Principal.Kind == auth.KindBoard:
		who.Method = "share"
	default:
		who.Method = "token"
	}
	return who
}

// passedOnBy is the node that passed a request on, by its certificate, and the address
// that it says the request came from; nothing for any other request.
func passedOnBy(r *http.Request) (node, said string) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "", ""
	}
	who, err := auth.ParseIdentity(r.TLS.PeerCertificates[0]) // verified by the handshake
	if err != nil || who.Role != auth.RoleClient {
		return "", ""
	}
	if said = r.Header.Get(HeaderFor); len(said) > originMax {
		said = ""
	}
	return who.ID, said
}

func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

// atDoor records a request that was refused before its route was known.
func (a *auditor) atDoor(w http.ResponseWriter, r *http.Request, err error) {
	if a == nil {
		return
	}
	t := &trail{auditor: a, route: &api.Route{Name: audit.ActionDoor, Kind: api.ObjectCluster}, http: r, err: err}
	t.answering(w.Header(), http.StatusForbidden)
}
