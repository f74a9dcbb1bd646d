package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// Caller is who makes a request. The zero value is anonymous.
type Caller struct {
	Principal auth.Principal
	Standing  auth.Standing // where it acts
	Token     *structs.Token
	In        func(project string) (auth.Principal, bool) // whom it would be there; nil for anonymous
	session   *session                                    // of a person at the page; nil for a bearer of the token
}

// Named is the project that the request named, "" for none.
func (c Caller) Named() string {
	if c.Standing.Named {
		return c.Standing.Project
	}
	return ""
}

// Request is one authorised request on its way through a handler. Handlers
// run only after front has authenticated the caller, decoded the body, found
// the object and asked auth.Allowed about it. Body and object are arguments of the
// handler, with their types.
type Request struct {
	*http.Request
	Route  api.Route
	Caller Caller
	Object auth.Object    // what was judged
	Verb   auth.Verb      // what it was judged for: the route's, or a narrower one that the finder chose
	ID     string         // the full id behind {id}
	Rests  []structs.Rest // records that the decision to allow it rests on
	// Through is how a sign-in proves who it is, for the record: KIND:PROVIDER, "" for
	// what Caller tells.
	Through string
	Writer  http.ResponseWriter

	unhealthy bool   // the answer says by its status that the agent is unhealthy
	trail     *trail // nil: nothing is recorded here
}

// Handler answers an authorised request. An error is rendered by front, so a
// handler that returns one must not have written anything yet.
type Handler func(*Request) error

// Callers are those that the cluster knows.
type Callers interface {
	// Authenticate finds whom the secret of a token speaks for, in the project
	// that the request names, "" for none. With thorough it asks the leader about
	// a token that is unknown here, since it may be new.
	Authenticate(ctx context.Context, secret, project string, thorough bool) (Caller, error)
	// Again finds what a caller may now, where the records that said so have
	// changed since.
	Again(ctx context.Context, caller Caller) (Caller, error)
}

// Front is the HTTP door of an agent: it maps routes to handlers and lets
// nothing through that the policy does not allow.
type Front struct {
	log      *slog.Logger
	now      func() time.Time
	callers  Callers
	hosts    hostList
	guard    *limiter
	sessions *Sessions // nil: nobody signs in here
	metrics  Observer  // may be nil
	audit    *auditor  // nil: nothing is recorded here
	remote   bool      // requests are passed on
	signer   Signer    // nil: nobody signs in with a password here
	used     func(token *structs.Token, address string)
	mux      *http.ServeMux
	entries  map[string]entry // by the route's name

	// Beside answers for other origins at the same port. It is set before the first
	// request; nil: there are none.
	Beside Beside

	bodyPatience time.Duration // for a whole JSON body
	bodyStall    time.Duration // for its next bytes, and those of any other
}

// Observer counts answered requests; stream says that the time it took tells
// nothing.
type Observer interface {
	Observe(route string, stream bool, status int, took time.Duration)
}

// Config is what a door is made from.
type Config struct {
	Log      *slog.Logger
	Now      func() time.Time
	Hosts    []string     // names that the agent answers for
	Limits   Limits       // of each caller
	Rest     http.Handler // serves what is outside the API
	Callers  Callers
	Observer Observer // may be nil
	Audit    Recorder // of who did what; nil: nothing is recorded
	Signer   Signer   // nil: nobody signs in with a password
	// Used is told of each request that a token was good for; nil: nobody is.
	Used func(token *structs.Token, address string)
}

// Signer signs people in.
type Signer interface {
	// SignIn makes a token for whoever knows an account's password, or is vouched for
	// by a provider, and notes in the request who that is.
	SignIn(r *Request, body *api.LoginRequest) (secret string, err error)
	// Begin begins a sign-in of a browser at a provider, which sends it back to the
	// pages of the host that was asked.
	Begin(r *Request, provider string) (*api.LoginBegun, error)
	// SignOut revokes a token that SignIn made. It returns where its holder signs out
	// at the provider, "" for nowhere.
	SignOut(r *Request, token *structs.Token) (address string, err error)
}

// New makes a door without routes.
func New(c Config) *Front {
	f := &Front{
		log: c.Log, now: c.Now, callers: c.Callers, hosts: newHostList(c.Hosts), guard: newLimiter(c.Limits, c.Now), sessions: newSessions(c.Now),
		metrics: c.Observer, audit: newAuditor(c.Audit, c.Now), signer: c.Signer, used: c.Used, mux: http.NewServeMux(), bodyPatience: bodyTimeout, bodyStall: bodyStall,
	}
	f.mux.Handle("/", c.Rest)
	return f
}

// Beside answers for hosts that are not this door's.
type Beside interface {
	http.Handler
	// Answers reports whether a host, with its port or without, is one of them.
	Answers(host string) bool
}

// SignIns are the sessions of people at this door.
func (f *Front) SignIns() *Sessions { return f.sessions }

// Route builds the router from the table of routes. Every route needs a
// handler and every handler a route, else it panics: the table is code. The
// routes of signing in are handled here.
func (f *Front) Route(behind *Table) {
	f.entries = behind.with(f.sessionTable())
	for _, route := range api.Routes() {
		entry, ok := f.entries[route.Name]
		if !ok {
			panic("front: route " + route.Name + " has no handler")
		}
		f.mux.Handle(route.Method+" "+route.Pattern, f.serve(route, entry))
	}
	if len(f.entries) != len(api.Routes()) {
		panic(fmt.Sprintf("front: %d handlers for %d routes", len(f.entries), len(api.Routes())))
	}
	f.mux.Handle("/v1/", f.outside(func(r *http.Request) error { return noRoute(f.mux, r) }))
}

// Alone is a door with one route, which lets in whom this one does: for looking at
// what is judged without doing it.
func (f *Front) Alone(route api.Route, handle Handler) http.Handler {
	g := &Front{log: f.log, now: f.now, callers: f.callers, hosts: f.hosts, guard: f.guard, mux: http.NewServeMux(), bodyPatience: f.bodyPatience, bodyStall: f.bodyStall}
	alone := f.entries[route.Name]
	alone.through = func(Handler) Handler { return handle }
	g.mux.Handle(route.Method+" "+route.Pattern, g.serve(route, alone))
	return g
}

// Streams is how many streams a token has open here.
func (f *Front) Streams(tokenID string) int { return f.guard.streams(tokenID) }

// noRoute reports whether it is the path or only the method that is unknown.
func noRoute(mux *http.ServeMux, r *http.Request) error {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); strings.HasPrefix(pattern, method+" ") {
			return &StatusError{http.StatusMethodNotAllowed, structs.NewError(structs.CodeInvalid, "agent.method", "path", r.URL.Path, "method", r.Method)}
		}
	}
	return structs.NewError(structs.CodeNotFound, "agent.route_unknown", "path", r.URL.Path)
}

// outside answers requests that belong to no route.
func (f *Front) outside(fail func(*http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.Fail(w, r, fail(r)) })
}

// ServeHTTP checks what holds for every request, whatever its route.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.Beside != nil && f.Beside.Answers(r.Host) {
		defer f.recoverPanic(w, r)
		f.Beside.ServeHTTP(w, r)
		return
	}
	secure(w.Header())
	if !f.remote {
		f.audit.name(w)
	}
	defer f.recoverPanic(w, r)
	watchBody(w, r, f.bodyStall)
	if err := f.admit(r); err != nil {
		if f.remote { // what is passed on the server names
			f.audit.name(w)
		}
		f.audit.atDoor(w, r, err)
		f.Fail(w, r, err)
		return
	}
	f.mux.ServeHTTP(w, r)
}

// recoverPanic turns a defect into an answer, and keeps the agent running:
// one hostile request must not end what thousands of others depend on.
func (f *Front) recoverPanic(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause) // a handler breaks off its answer on purpose
	}
	f.log.Error("request panicked", logkey.Request, w.Header().Get(api.HeaderRequestID), logkey.Method, r.Method, logkey.Path, r.URL.Path, logkey.Error, fmt.Sprint(cause), "stack", string(debug.Stack()))
	f.Fail(w, r, errors.New("panic"))
}

// secure sets the headers that make answers harmless in a browser.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Content-Security-Policy",
		"default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
}

// admit refuses requests that no honest client of this agent makes: for
// another host (DNS rebinding), or from another site's page.
func (f *Front) admit(r *http.Request) error {
	// Who asked for a server by its name in TLS is no browser, and wrote the
	// name of the node that passed the connection on.
	program := r.TLS != nil && r.TLS.ServerName == auth.ServerName
	if !program && !f.hosts.has(r.Host) {
		return &StatusError{http.StatusMisdirectedRequest, structs.NewError(structs.CodeInvalid, "agent.misdirected", "host", r.Host)}
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "https://"+r.Host {
		return structs.NewError(structs.CodeForbidden, "agent.foreign_origin", "origin", origin)
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "", site == "same-origin", site == "none":
	case r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate": // somebody follows a link to us
	default:
		return structs.NewError(structs.CodeForbidden, "agent.foreign_origin", "origin", site)
	}
	return admitCookie(r)
}

// serve makes the handler of one route: authenticate, decode, locate, judge,
// handle. This is the one place where requests are authorised.
func (f *Front) serve(route api.Route, entry entry) http.Handler {
	stream := route.Blocking || route.Stream != api.StreamNone
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := f.now()
		trail := f.audit.trail(&route, r, begin)
		told := &statusWriter{ResponseWriter: w, trail: trail}
		if err := f.answer(route, entry, told, r, trail); err != nil {
			f.Fail(told, r, err)
		}
		trail.answering(w.Header(), max(told.status, http.StatusOK)) // of an answer without a byte
		if f.metrics != nil {
			f.metrics.Observe(route.Name, stream, max(told.status, http.StatusOK), f.now().Sub(begin))
		}
	})
}

func (f *Front) answer(route api.Route, entry entry, w http.ResponseWriter, r *http.Request, trail *trail) (err error) {
	defer func() { trail.failed(err) }()
	if len(r.TransferEncoding) > 0 && !route.Upload {
		// net/http has dropped a Content-Length beside it, and whoever stands
		// between may have gone by that: the root of request smuggling.
		w.Header().Set("Connection", "close")
		return structs.NewError(structs.CodeInvalid, "agent.chunked")
	}
	who, release, err := f.identify(route, w, r)
	if err != nil {
		return err
	}
	defer release()
	if who.session != nil {
		var done func()
		r, done = who.session.until(r)
		defer done()
	}
	req := &Request{Request: r, Route: route, Caller: who, Writer: w, ID: r.PathValue("id"), Verb: auth.Verb(route.Verb), Rests: slices.Clip(who.Standing.Rests), trail: trail}
	trail.of(req)
	call := entry.open()
	answered, err := f.decodeBody(req, call.into)
	defer answered()
	if err != nil {
		return err
	}
	err = f.decide(req, call.find, entry.through(call.handle))
	if route.Verb == api.VerbLogin && structs.CodeOf(err) == structs.CodeUnauthorized {
		return f.wrongSecret(w, Origin(r), err)
	}
	return err
}

// decisionsMax bounds how often a request is judged anew because what its
// judgement rested on changed before the log had it.
const decisionsMax = 5

// decide judges a request and has it handled, anew where the ground of the
// judgement has changed meanwhile.
func (f *Front) decide(r *Request, find func(*Request) (auth.Object, error), handle Handler) error {
	for again := 1; ; again++ {
		if err := f.judge(r, find); err != nil {
			return err
		}
		err := handle(r)
		var refused *structs.Error
		if again == decisionsMax || !errors.As(err, &refused) || refused.ID != structs.RestChanged {
			return err
		}
		if r.Caller.Token != nil {
			session := r.Caller.session
			if r.Caller, err = f.callers.Again(r.Context(), r.Caller); err != nil {
				return err
			}
			r.Caller.session = session
		}
		r.ID, r.Verb, r.Object, r.Rests = r.PathValue("id"), auth.Verb(r.Route.Verb), auth.Object{}, slices.Clip(r.Caller.Standing.Rests)
	}
}

// identify authenticates the caller and takes its place within the limits;
// release frees the place.
func (f *Front) identify(route api.Route, w http.ResponseWriter, r *http.Request) (Caller, func(), error) {
	nothing := func() {}
	peer := PeerKey(r.RemoteAddr)
	open := route.Verb == api.VerbHealth || route.Verb == api.VerbLogin // a cookie that is over must not close them
	if id, given := cookieOf(r); given && f.sessions != nil && !open {
		return f.identifyCookie(route, w, r, id)
	}
	secret, given := bearer(r.Header)
	if !given {
		return f.anonymous(route, peer)
	}
	who, err := f.callers.Authenticate(r.Context(), secret, actingProject(r), f.guard.patient(peer) == 0)
	if structs.CodeOf(err) == structs.CodeUnauthorized {
		return Caller{}, nothing, f.wrongSecret(w, peer, err)
	}
	if err != nil {
		return Caller{}, nothing, err
	}
	if err := reaches(who.Token, r); err != nil {
		return Caller{}, nothing, err
	}
	release, err := f.guard.enter(who.Token.ID, route)
	if err != nil {
		return Caller{}, nothing, err
	}
	if f.used != nil {
		f.used(who.Token, Address(r))
	}
	return who, release, nil
}

// reaches refuses a token from where it is not good.
func reaches(token *structs.Token, r *http.Request) error {
	if auth.ReachesFrom(token, Address(r)) {
		return nil
	}
	return structs.NewError(structs.CodeUnauthorized, "auth.token_address", "address", Address(r))
}

// wrongSecret counts a wrong token or secret of a peer. Only a peer that sends wrong
// ones has to wait: an address is shared, and whoever else is behind it must
// not be able to lock out the holder of a good token.
func (f *Front) wrongSecret(w http.ResponseWriter, peer string, err error) error {
	if count := f.guard.failed(peer); count > 0 {
		f.log.Warn("credentials refused", logkey.Request, w.Header().Get(api.HeaderRequestID), logkey.Addr, peer, logkey.Count, count, logkey.Reason, err)
	}
	if wait := f.guard.patient(peer); wait > 0 {
		return TooMany(structs.CodeUnauthorized, "agent.token_failures", wait)
	}
	return err
}

// anonymous lets callers without a token through to the routes that the
// policy opens to everybody.
func (f *Front) anonymous(route api.Route, peer string) (Caller, func(), error) {
	object := auth.Object{Kind: auth.ObjectKind(route.Kind)}
	if err := auth.Allowed(auth.Principal{}, auth.Verb(route.Verb), object).Err(auth.Verb(route.Verb), object); err != nil {
		return Caller{}, func() {}, err
	}
	release, err := f.guard.enter("peer "+peer, route)
	return Caller{}, release, err
}

// judge asks the policy, once the object is known.
func (f *Front) judge(r *Request, find func(*Request) (auth.Object, error)) error {
	object, err := find(r)
	if err != nil {
		return err
	}
	r.Object = object
	decision := auth.Allowed(r.Caller.Principal, r.Verb, object)
	refusal := decision.Err(r.Verb, object)
	switch {
	case refusal == nil:
		return r.covered(r.Verb)
	case r.elsewhere(object):
		refusal = structs.NewError(structs.CodeForbidden, "auth.elsewhere", "kind", string(object.Kind), "id", r.PathValue("id"),
			"project", object.Project, "acting", r.Caller.Standing.Project)
	case refusal.Code == structs.CodeNotFound && r.Route.From == api.FromAllocation:
		refusal = auth.NotFound("allocation", r.PathValue("id"))
	}
	r.refusedBy(decision.Reason, refusal)
	return refusal
}

// elsewhere reports whether the caller could see the object if only the request
// acted in the object's project: then there is nothing to hide, and much to say.
func (r *Request) elsewhere(object auth.Object) bool {
	if r.Caller.In == nil || object.ID == "" || object.Project == "" || object.Project == r.Caller.Principal.Project {
		return false
	}
	there, ok := r.Caller.In(object.Project)
	return ok && auth.Allowed(there, auth.VerbRead, object).Allow
}

// May asks the policy about a second verb or another object.
func (r *Request) May(verb auth.Verb, object auth.Object) error {
	decision := auth.Allowed(r.Caller.Principal, verb, object)
	if err := decision.Err(verb, object); err != nil {
		r.refusedBy(decision.Reason, err)
		return err
	}
	return r.covered(verb)
}

// covered refuses a verb that the caller's token is not good for, whatever its role.
func (r *Request) covered(verb auth.Verb) error {
	if r.Caller.Token == nil || auth.Covers(r.Caller.Token, verb) {
		return nil
	}
	err := structs.NewError(structs.CodeForbidden, "auth.token_verb", "verb", string(verb), "verbs", strings.Join(r.Caller.Token.Verbs, ", "))
	r.refusedBy(auth.ReasonScope, err)
	return err
}

// actingProject is the project that a request names, "" for none. A browser sets no
// headers of a websocket and of a link, so these say it in their address.
func actingProject(r *http.Request) string {
	if named := r.Header.Get(api.HeaderProject); named != "" || r.Method != http.MethodGet {
		return named
	}
	return r.URL.Query().Get(api.ParamActing)
}

func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) == 0 {
		return "", false
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return "", true // given, and wrong
	}
	return strings.TrimSpace(secret), true
}

// PeerKey is what failures are counted by: the IPv4 address, or the /64 of
// an IPv6 address, of which one host owns all.
func PeerKey(remote string) string { return keyOf(hostOf(remote)) }

func keyOf(host string) string {
	ip := net.ParseIP(host)
	if ip == nil || ip.To4() != nil {
		return host
	}
	return ip.Mask(net.CIDRMask(64, 128)).String()
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
	trail  *trail // is told before the first byte; may be nil
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.status = status
		w.trail.answering(w.Header(), status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
		w.trail.answering(w.Header(), http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController and websockets reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
