package front

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// The cookie of somebody who has signed in at the page. A browser takes a
// cookie whose name begins with __Host- from this very host over TLS only.
const (
	sessionCookie = "__Host-nomadlike"
	begunCookie   = "__Host-nomadlike-begun" // of a sign-in that goes on at a provider

	sessionIdle = 12 * time.Hour     // without a request, it ends
	sessionLife = 7 * 24 * time.Hour // then one signs in again
	sessionsMax = 4096               // of one agent; beyond, one of the token that has most ends
	sessionsOf  = 256                // of one token
	sessionsAt  = 32                 // of one token from one address; beyond, the one of them that was quiet for longest ends

	offerLife = 10 * time.Minute // of a code that signs in once
	offersMax = 16
)

// session is one sign-in of a person at the page.
type session struct {
	id      sessionID
	secret  string // of the token; leaves this process to the leader, and sealed in a cookie
	peer    string // address, as limits count it
	expires time.Time
	used    time.Time
	alive   context.Context // ends with the session, and with it the streams that it opened
	end     context.CancelCauseFunc
}

// Sessions are the sign-ins that this server knows. The browser holds a ticket,
// which every server of the cluster can open and nobody else: a session outlives
// the server that made it. What is kept here is what bounds them: who is in,
// who was put out, and the streams that end with a session.
type Sessions struct {
	now   func() time.Time
	seals func() *seal // the present one: it changes with the cluster's CA
	out   *signedOut
	tell  func(ticket string) // tells the other servers who signed out; may be nil

	mu struct {
		sync.Mutex
		byID    map[sessionID]*session
		offers  map[[sha256.Size]byte]offer
		entered map[[sha256.Size]byte]time.Time // entries that were taken, until they would be over
	}
}

// offer is a code that signs in once, in the place of a token, which should
// stand in no address and on no screen.
type offer struct {
	secret  string
	expires time.Time
}

func newSessions(now func() time.Time) *Sessions {
	own := newSeal(nil)
	s := &Sessions{now: now, seals: func() *seal { return own }, out: newSignedOut()}
	s.mu.byID = map[sessionID]*session{}
	s.mu.offers = map[[sha256.Size]byte]offer{}
	s.mu.entered = map[[sha256.Size]byte]time.Time{}
	return s
}

// offer makes a code that signs in once with the secret of a token.
func (s *Sessions) offer(secret string) string {
	code := rand.Text()
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, one := range s.mu.offers {
		if len(s.mu.offers) >= offersMax || !now.Before(one.expires) {
			delete(s.mu.offers, hash)
		}
	}
	s.mu.offers[sha256.Sum256([]byte(code))] = offer{secret: secret, expires: now.Add(offerLife)}
	return code
}

// accept returns the secret behind a code, once.
func (s *Sessions) accept(code string) (string, bool) {
	hash := sha256.Sum256([]byte(code))
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.mu.offers[hash]
	delete(s.mu.offers, hash)
	return one.secret, ok && s.now().Before(one.expires)
}

// begin makes a session for the secret of a token, until then at the latest,
// and returns the text of its cookie.
func (s *Sessions) begin(secret, peer string, until time.Time) (text string, expires time.Time) {
	now := s.now()
	expires = now.Add(sessionLife)
	if !until.IsZero() && until.Before(expires) {
		expires = until
	}
	made := ticket{Secret: secret, Expires: expires, Used: now}
	rand.Read(made.ID[:]) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admitLocked(made, peer, now)
	return s.seals().close(made, sessionCookie), expires
}

// admitLocked takes a session in, and makes room for it.
func (s *Sessions) admitLocked(made ticket, peer string, now time.Time) *session {
	s.forgetLocked(now, made.Secret, peer)
	alive, end := context.WithCancelCause(context.Background())
	one := &session{id: made.ID, secret: made.Secret, peer: peer, expires: made.Expires, used: now, alive: alive, end: end}
	s.mu.byID[made.ID] = one
	return one
}

// forgetLocked makes room for a session of a token at an address: it ends those
// whose time is over, and the one that was quiet for longest where there are too
// many still, of the token from there, of the token, or of the one that has
// most. So whoever signs in again and again, by a link that everybody has,
// takes the place of nobody else.
func (s *Sessions) forgetLocked(now time.Time, secret, peer string) {
	byToken := make(map[string]int)
	here, most := 0, secret
	for id, one := range s.mu.byID {
		if one.over(now) {
			s.dropLocked(id)
			continue
		}
		byToken[one.secret]++
		if one.secret == secret && one.peer == peer {
			here++
		}
	}
	for token, count := range byToken {
		if count > byToken[most] {
			most = token
		}
	}
	switch {
	case here >= sessionsAt:
		s.dropQuietestLocked(func(one *session) bool { return one.secret == secret && one.peer == peer })
	case byToken[secret] >= sessionsOf:
		s.dropQuietestLocked(func(one *session) bool { return one.secret == secret })
	case len(s.mu.byID) >= sessionsMax:
		s.dropQuietestLocked(func(one *session) bool { return one.secret == most })
	}
}

func (s *Sessions) dropQuietestLocked(among func(*session) bool) {
	var quietest *sessionID
	for id, one := range s.mu.byID {
		if among(one) && (quietest == nil || one.used.Before(s.mu.byID[*quietest].used)) {
			quietest = &id
		}
	}
	if quietest != nil {
		s.out.crowded(*quietest)
		s.dropLocked(*quietest)
	}
}

func (s *session) over(now time.Time) bool {
	return !now.Before(s.expires) || now.Sub(s.used) > sessionIdle
}

func (s *Sessions) dropLocked(id sessionID) {
	if one := s.mu.byID[id]; one != nil {
		one.end(sessionOver())
		delete(s.mu.byID, id)
	}
}

// find returns the session of a cookie, nil without one. A session that another
// server made, or this one before it was started anew, is taken in.
func (s *Sessions) find(text, peer string) *session {
	shown, good := s.seals().open(text, sessionCookie)
	if !good {
		return nil
	}
	return s.take(shown, peer)
}

// take returns the session of a ticket, nil when it is over.
func (s *Sessions) take(shown ticket, peer string) *session {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.mu.byID[shown.ID]
	if one == nil {
		if shown.over(now) || s.out.has(shown.ID) {
			return nil
		}
		one = s.admitLocked(shown, peer, now)
	}
	if one.over(now) {
		s.dropLocked(shown.ID)
		return nil
	}
	one.used = now
	return one
}

// renewed is the text that a cookie should have from now on, where it should
// have another: other servers learn from it that the session is used.
func (s *Sessions) renewed(text string) (string, time.Time, bool) {
	shown, good := s.seals().open(text, sessionCookie)
	now := s.now()
	if !good || now.Sub(shown.Used) < ticketRenewal {
		return "", time.Time{}, false
	}
	shown.Used = now
	return s.seals().close(shown, sessionCookie), shown.Expires, true
}

// finish ends the session of a cookie, if there is one, here and for good.
func (s *Sessions) finish(text string) {
	shown, good := s.seals().open(text, sessionCookie)
	if !good {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.add(shown, s.now())
	s.dropLocked(shown.ID)
}

func sessionOver() *structs.Error {
	return structs.NewError(structs.CodeUnauthorized, "agent.session_over")
}

// cookieOf reads the cookie of a request that carries no token of its own: a
// token goes before a cookie.
func cookieOf(r *http.Request) (string, bool) {
	if _, given := bearer(r.Header); given {
		return "", false
	}
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return "", false
	}
	return cookie.Value, true
}

// admitCookie refuses what a page of another site could make a browser send
// with the cookie. SameSite keeps the cookie back from those already; this
// holds when a browser does not.
func admitCookie(r *http.Request) error {
	if _, given := cookieOf(r); !given {
		return nil
	}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(api.HeaderRequestedBy) == "":
		return structs.NewError(structs.CodeForbidden, "agent.request_header", "header", api.HeaderRequestedBy)
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && r.Header.Get("Origin") == "" && Forwards(r) == 0:
		return structs.NewError(structs.CodeForbidden, "agent.foreign_origin", "origin", "?")
	}
	return nil
}

// identifyCookie finds who signed in. From here on the request carries the
// token that the session stands for, since the leader, to which some requests
// are passed on, knows tokens and no cookies.
func (f *Front) identifyCookie(route api.Route, w http.ResponseWriter, r *http.Request, text string) (Caller, func(), error) {
	nothing := func() {}
	one := f.sessions.find(text, PeerKey(r.RemoteAddr))
	if one == nil {
		release, err := f.guard.enter("peer "+PeerKey(r.RemoteAddr), route)
		if err == nil {
			release()
			err = sessionOver()
		}
		return Caller{}, nothing, err
	}
	who, err := f.callers.Authenticate(r.Context(), one.secret, actingProject(r), false)
	if structs.CodeOf(err) == structs.CodeUnauthorized {
		// A server that was just started has not read all of the log: only what
		// the leader says of a token ends a session.
		who, err = f.callers.Authenticate(r.Context(), one.secret, actingProject(r), true)
	}
	if structs.CodeOf(err) == structs.CodeUnauthorized {
		f.sessions.finish(text)
		return Caller{}, nothing, err
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
	who.session = one
	if text, expires, due := f.sessions.renewed(text); due {
		setCookie(w, sessionCookie, text, int(expires.Sub(f.now())/time.Second))
	}
	r.Header.Set("Authorization", "Bearer "+one.secret)
	r.Header.Del("Cookie")
	return who, release, nil
}

// until bounds a request by the session that made it: whoever signs out ends
// the streams that are open.
func (s *session) until(r *http.Request) (*http.Request, func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(s.alive, func() { cancel(context.Cause(s.alive)) })
	return r.WithContext(ctx), func() {
		stop()
		cancel(context.Canceled)
	}
}

// sessionTable answers the routes of signing in and out. They stand at the
// door itself, since nothing behind it knows of cookies.
func (f *Front) sessionTable() *Table {
	t := NewTable()
	Write(t, api.SessionCreate, f.signIn)
	Write(t, api.SessionBegin, beginner(f))
	Read(t, api.SessionDelete, f.signOut)
	return t
}

// SignInLink is where a browser is signed in at once, with a code that works
// once. The code stands behind the #, which browsers send to nobody; the page
// takes it out of the address.
func (f *Front) SignInLink(addr, secret string) string {
	return "https://" + addr + "/#code=" + f.sessions.offer(secret)
}

// signIn exchanges a token for a cookie. Its text is not in the answer's body,
// where a script could read it.
func (f *Front) signIn(r *Request, asked *api.SessionRequest) (*api.Session, error) {
	if r.Header.Get(api.HeaderRequestedBy) == "" {
		return nil, structs.NewError(structs.CodeForbidden, "agent.request_header", "header", api.HeaderRequestedBy)
	}
	secret := strings.TrimSpace(asked.Token)
	switch {
	case asked.User != "" && (secret != "" || asked.Code != ""), asked.Code != "" && secret != "", asked.Answer != nil && asked.User+secret+asked.Code != "":
		return nil, structs.NewError(structs.CodeInvalid, "agent.sign_in_both")
	case asked.Answer != nil && f.signer != nil:
		var err error
		if secret, err = f.signer.SignIn(r, &api.LoginRequest{Provider: asked.Provider, Pending: begunOf(r.Request), Answer: asked.Answer}); err != nil {
			return nil, err
		}
		setCookie(r.Writer, begunCookie, "", -1)
	case asked.User != "" && f.signer != nil:
		var err error
		if secret, err = f.signer.SignIn(r, &api.LoginRequest{User: asked.User, Password: asked.Password, NewPassword: asked.NewPassword, Provider: asked.Provider}); err != nil {
			return nil, err
		}
	case asked.Code != "":
		var good bool
		if secret, good = f.sessions.accept(asked.Code); !good {
			return nil, structs.NewError(structs.CodeUnauthorized, "agent.sign_in_code")
		}
	}
	// A token that a sign-in has just made may be new to this server.
	thorough := asked.User != "" || asked.Answer != nil || f.guard.patient(PeerKey(r.RemoteAddr)) == 0
	who, err := f.callers.Authenticate(r.Context(), secret, "", thorough)
	if err != nil {
		return nil, err
	}
	if err := reaches(who.Token, r.Request); err != nil {
		return nil, err
	}
	if who.Principal.Service {
		return nil, structs.NewError(structs.CodeForbidden, "agent.sign_in_service", "account", who.Principal.ID)
	}
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		f.sessions.finish(cookie.Value)
	}
	r.Caller = who // for the record
	id, expires := f.sessions.begin(secret, PeerKey(r.RemoteAddr), who.Token.ExpiresAt.Time())
	setCookie(r.Writer, sessionCookie, id, int(expires.Sub(f.now())/time.Second))
	return &api.Session{Token: WithoutHash(*who.Token), ExpiresAt: structs.At(expires)}, nil
}

// signOut ends the session of the cookie, and has the browser forget it.
func (f *Front) signOut(r *Request) (*api.SessionEnded, error) {
	ended := new(api.SessionEnded)
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		if one := f.sessions.find(cookie.Value, PeerKey(r.RemoteAddr)); one != nil {
			if who, err := f.callers.Authenticate(r.Context(), one.secret, "", false); err == nil {
				who.session = one
				r.Caller = who // for the record
				if who.Token.Method != "" && f.signer != nil {
					if ended.Address, err = f.signer.SignOut(r, who.Token); err != nil {
						return nil, err
					}
				}
			}
		}
		f.sessions.finish(cookie.Value)
		if f.sessions.tell != nil && Forwards(r.Request) < forwardsMax {
			f.sessions.tell(cookie.Value)
		}
	}
	setCookie(r.Writer, sessionCookie, "", -1)
	return ended, nil
}

// beginner begins sign-ins at providers. What finishes it is kept in a cookie: only the
// browser that began finishes, so nobody is signed in as another by a link.
func beginner(f *Front) func(*Request, *api.SessionBeginRequest) (*api.SessionBegun, error) {
	return func(r *Request, asked *api.SessionBeginRequest) (*api.SessionBegun, error) {
		switch {
		case r.Header.Get(api.HeaderRequestedBy) == "":
			return nil, structs.NewError(structs.CodeForbidden, "agent.request_header", "header", api.HeaderRequestedBy)
		case f.signer == nil, Forwards(r.Request) > 0: // the address that the browser shows is not known here
			return nil, structs.NewError(structs.CodeInvalid, "oidc.at_a_server")
		}
		begun, err := f.signer.Begin(r, asked.Provider)
		if err != nil {
			return nil, err
		}
		setCookie(r.Writer, begunCookie, begun.Pending, int(begun.ExpiresAt.Time().Sub(f.now())/time.Second))
		return &api.SessionBegun{Address: begun.Address}, nil
	}
}

// begunOf is the sign-in that a browser has begun, in a form that nobody can open: never
// "", which would be no sign-in through a provider.
func begunOf(r *http.Request) string {
	if cookie, err := r.Cookie(begunCookie); err == nil && cookie.Value != "" {
		return cookie.Value
	}
	return "none"
}

// setCookie sets a cookie for so many seconds; fewer than none take it away.
func setCookie(w http.ResponseWriter, name, text string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: text, Path: "/", MaxAge: seconds,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// WithoutHash is a token as people may see it.
func WithoutHash(token structs.Token) structs.Token {
	token.Hash = nil
	return token
}
