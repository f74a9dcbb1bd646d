package front

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client/store"
)

const (
	sessionIDSize = 16 // bytes of randomness
	ticketMax     = 1024
	ticketRenewal = 10 * time.Minute // a cookie says to so much when it was used
	crowdedMax    = 16384            // sessions that made room for others, as long as they are remembered
)

type sessionID [sessionIDSize]byte

// ticket is what a cookie says, sealed: whoever holds it may do what the token
// may, for a while. It is made and read by servers alone.
type ticket struct {
	ID      sessionID `json:"id"`
	Secret  string    `json:"secret"`
	Expires time.Time `json:"expires"`
	Used    time.Time `json:"used"`
	Acting  string    `json:"acting,omitempty"` // of a pass: the project that its holder acts in
}

func (t ticket) over(now time.Time) bool {
	return !now.Before(t.Expires) || now.Sub(t.Used) > sessionIdle
}

// seal makes tickets unreadable and unforgeable to everybody without its key.
type seal struct{ box cipher.AEAD }

// newSeal takes a key that all servers of a cluster have; without one it makes
// one, and the tickets end with the process.
func newSeal(key []byte) *seal {
	if key == nil {
		key = make([]byte, sha256.Size)
		rand.Read(key) // never fails
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("agent: " + err.Error()) // the key's length is ours
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("agent: " + err.Error())
	}
	return &seal{box}
}

// close seals a ticket for one purpose: for another one it is none.
func (s *seal) close(t ticket, purpose string) string {
	plain, err := json.Marshal(t)
	if err != nil {
		panic("agent: " + err.Error()) // nothing in it can fail
	}
	return base64.RawURLEncoding.EncodeToString(s.box.Seal(nil, nil, plain, []byte(purpose)))
}

func (s *seal) open(text, purpose string) (ticket, bool) {
	var t ticket
	if len(text) > ticketMax {
		return t, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return t, false
	}
	plain, err := s.box.Open(nil, nil, sealed, []byte(purpose))
	if err != nil || json.Unmarshal(plain, &t) != nil {
		return ticket{}, false
	}
	return t, true
}

// signedOut are sessions whose tickets are no longer taken: of those who signed
// out, which a restart remembers, and of those who made room for others.
type signedOut struct {
	mu   sync.Mutex
	path string // none: in memory alone
	told func(error)
	left map[sessionID]departed
	full map[sessionID]struct{}
}

// departed is a session that was signed out. Token tells the tickets of one token apart
// from those of others, so that nobody's can be pushed out by another's.
type departed struct {
	Expires time.Time `json:"expires"`
	Token   string    `json:"token"` // hash
}

func newSignedOut() *signedOut {
	return &signedOut{left: map[sessionID]departed{}, full: map[sessionID]struct{}{}, told: func(error) {}}
}

// load reads who has signed out before, and writes it down from now on.
func (o *signedOut) load(path string, told func(error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.path, o.told = path, told
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var kept []storedDeparture
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil {
		told(err)
		return
	}
	for _, one := range kept {
		o.left[one.ID] = one.departed
	}
}

type storedDeparture struct {
	ID sessionID `json:"id"`
	departed
}

func (o *signedOut) has(id sessionID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, left := o.left[id]
	_, crowded := o.full[id]
	return left || crowded
}

// add remembers that somebody has signed out.
func (o *signedOut) add(t ticket, now time.Time) {
	hash := sha256.Sum256([]byte(t.Secret))
	token := base64.RawURLEncoding.EncodeToString(hash[:])
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.left[t.ID]; known {
		return
	}
	count, soonest := 0, sessionID{}
	for id, one := range o.left {
		if !now.Before(one.Expires) {
			delete(o.left, id)
		} else if one.Token == token {
			if count++; count == 1 || one.Expires.Before(o.left[soonest].Expires) {
				soonest = id
			}
		}
	}
	if count >= sessionsOf {
		delete(o.left, soonest)
	}
	o.left[t.ID] = departed{Expires: t.Expires, Token: token}
	o.writeLocked()
}

func (o *signedOut) writeLocked() {
	if o.path == "" {
		return
	}
	kept := make([]storedDeparture, 0, len(o.left))
	for id, one := range o.left {
		kept = append(kept, storedDeparture{id, one})
	}
	data, err := json.Marshal(kept)
	if err == nil {
		err = store.WriteFile(o.path, data, 0o600, false)
	}
	if err != nil {
		o.told(err)
	}
}

// crowded remembers for a while that a session made room for another.
func (o *signedOut) crowded(id sessionID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.full) >= crowdedMax {
		clear(o.full)
	}
	o.full[id] = struct{}{}
}

// Keep has the sign-ins of a server outlive it: with a key that all servers
// share, derived from the CA, and a file that says who has signed out; tell has
// the other servers know of a ticket that is over. Call it before the first
// request.
func (s *Sessions) Keep(ca func() *auth.CA, path string, tell func(ticket string), log *slog.Logger) {
	s.tell = tell
	var of atomic.Pointer[struct {
		ca   *auth.CA
		seal *seal
	}]
	own := s.seals()
	s.seals = func() *seal {
		ca := ca()
		if held := of.Load(); held != nil && held.ca == ca {
			return held.seal
		}
		key, err := ca.Derived("tickets of the pages")
		if err != nil {
			log.Warn("sign-ins end with this agent", logkey.Error, err)
			return own
		}
		made := newSeal(key)
		of.Store(&struct {
			ca   *auth.CA
			seal *seal
		}{ca, made})
		return made
	}
	s.out.load(path, func(err error) { log.Warn("who signed out is not kept", logkey.Error, err) })
}

// SignOutRequest tells another server that the session of a ticket is over; it
// goes no further than to that server.
func SignOutRequest(addr, ticket string) (*http.Request, error) {
	request, err := http.NewRequest(http.MethodDelete, "https://"+addr+"/v1/session", nil)
	if err != nil {
		return nil, err
	}
	request.AddCookie(&http.Cookie{Name: sessionCookie, Value: ticket})
	request.Header.Set(api.HeaderRequestedBy, "server")
	request.Header.Set(headerForwarded, strconv.Itoa(forwardsMax))
	return request, nil
}
