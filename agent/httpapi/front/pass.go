package front

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// A pass lets the holder of a sign-in act at another origin, whose pages are a task's:
// they must not read the cookie of the sign-in, and no pass but their own. The way
// there is an entry, which stands in an address for a moment and works once. Both say
// what a ticket says, sealed for one host.
const (
	purposeEntry = "entry of "
	purposePass  = "pass of "

	entryLife  = 30 * time.Second
	entriesMax = 16384 // taken in the last entryLife
	passLife   = 12 * time.Hour
)

// Entry makes an entry for the caller of a request to a host. It works once, at any
// server of the cluster that has not taken it yet, for half a minute; then also the
// pass ends at the latest that it is exchanged for. Programs' accounts get none.
func (s *Sessions) Entry(r *Request, host string) (entry string, until time.Time, err error) {
	if r.Caller.Principal.Service {
		return "", until, structs.NewError(structs.CodeForbidden, "agent.sign_in_service", "account", r.Caller.Principal.ID)
	}
	secret, given := bearer(r.Header) // identifyCookie puts it there for a cookie
	if !given {
		return "", until, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	}
	now := s.now()
	made := ticket{Secret: secret, Expires: now.Add(passLife), Used: now, Acting: r.Caller.Named()}
	if end := r.Caller.Token.ExpiresAt; end != 0 && end.Time().Before(made.Expires) {
		made.Expires = end.Time()
	}
	if one := r.Caller.session; one != nil {
		made.ID = one.id
		if one.expires.Before(made.Expires) {
			made.Expires = one.expires
		}
	} else {
		rand.Read(made.ID[:]) // never fails
	}
	return s.seals().close(made, purposeEntry+host), now.Add(entryLife), nil
}

// Enter exchanges an entry for a pass, both of one host, and says for how long the pass
// is good.
func (s *Sessions) Enter(entry, host string) (pass string, life time.Duration, ok bool) {
	shown, good := s.seals().open(entry, purposeEntry+host)
	now := s.now()
	if !good || now.Sub(shown.Used) > entryLife || shown.over(now) {
		return "", 0, false
	}
	hash := sha256.Sum256([]byte(entry))
	s.mu.Lock()
	defer s.mu.Unlock()
	for one, until := range s.mu.entered {
		if now.After(until) {
			delete(s.mu.entered, one)
		}
	}
	if _, again := s.mu.entered[hash]; again || len(s.mu.entered) >= entriesMax {
		return "", 0, false
	}
	s.mu.entered[hash] = shown.Used.Add(entryLife)
	shown.Used = now
	return s.seals().close(shown, purposePass+host), shown.Expires.Sub(now), true
}

// Holder is who holds a pass.
type Holder struct {
	// Key tells the sign-ins behind passes apart, and where they act.
	Key string

	secret, acting string
	alive          context.Context
}

// Holder returns who holds a pass of a host, at an address. The pass is over when the
// sign-in is.
func (s *Sessions) Holder(pass, host, remote string) (*Holder, bool) {
	shown, good := s.seals().open(pass, purposePass+host)
	if !good {
		return nil, false
	}
	one := s.take(shown, PeerKey(remote))
	if one == nil {
		return nil, false
	}
	return &Holder{Key: string(shown.ID[:]) + shown.Acting, secret: shown.Secret, acting: shown.Acting, alive: one.alive}, true
}

// Request is a request of the holder's own to this server, which its sign-in ends; what
// it was made for names the address and the language. Call done when it is answered.
func (h *Holder) Request(ctx context.Context, made *http.Request, method, path string) (r *http.Request, done func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r, err = http.NewRequestWithContext(ctx, method, "https://localhost"+path, nil)
	if err != nil {
		cancel(err)
		return nil, nil, err
	}
	r.RemoteAddr = made.RemoteAddr
	r.Header.Set("Authorization", "Bearer "+h.secret)
	r.Header.Set("Accept-Language", made.Header.Get("Accept-Language"))
	if h.acting != "" {
		r.Header.Set(api.HeaderProject, h.acting)
	}
	stop := context.AfterFunc(h.alive, func() { cancel(context.Cause(h.alive)) })
	return r, func() {
		stop()
		cancel(context.Canceled)
	}, nil
}
