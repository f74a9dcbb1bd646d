package oidc

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"sync"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// Pending is a sign-in that somebody has begun.
type Pending struct {
	ID       string    `json:"id"`
	Provider string    `json:"provider"`
	Expires  time.Time `json:"expires"`

	// With a browser.
	Redirect string `json:"redirect,omitempty"` // where the provider sends it
	State    string `json:"state,omitempty"`
	Nonce    string `json:"nonce,omitempty"`
	Verifier string `json:"verifier,omitempty"`

	// Without one.
	DeviceCode string        `json:"device_code,omitempty"`
	Every      time.Duration `json:"every,omitempty"` // the provider may be asked so often
}

// Answers reports whether what a browser brought back from a provider belongs to this
// sign-in, by its state.
func (p *Pending) Answers(provider, state string) bool {
	return p.Provider == provider && !p.Device() && subtle.ConstantTimeCompare([]byte(p.State), []byte(state)) == 1
}

// Device reports whether no browser is sent back.
func (p *Pending) Device() bool { return p.DeviceCode != "" }

const (
	pendingMax = 4 << 10 // bytes of a sealed one
	spentMax   = 1 << 16 // that are remembered at a time
)

// Desk seals what is begun and opens it again, once. It belongs to the process of the
// leader, which begins and finishes all sign-ins, and its key dies with it: what one
// leader has seen used, another cannot open. So "once" needs no entry in the log, and
// the price is that those who sign in while the leader changes begin again.
type Desk struct {
	key *auth.SealKey
	now func() time.Time

	mu struct {
		sync.Mutex
		spent map[string]time.Time // ids, and when they may be forgotten
		asked map[string]turn      // ids without a browser
	}
}

// turn is when a provider may be asked next about a sign-in without a browser.
type turn struct {
	next  time.Time
	every time.Duration
	until time.Time // may be forgotten
}

// slower is what a provider wants added when it is asked too often (RFC 8628, section 3.5).
const slower = 5 * time.Second

// NewDesk makes a desk with a key of its own.
func NewDesk(now func() time.Time) *Desk {
	d := &Desk{key: auth.NewSealKey(), now: now}
	d.mu.spent, d.mu.asked = make(map[string]time.Time), make(map[string]turn)
	return d
}

var deskBinding = []byte("nomadlike sign-in at a provider")

// Seal hides a pending sign-in from whoever keeps it.
func (d *Desk) Seal(p *Pending) string {
	plain, err := json.Marshal(p)
	if err != nil {
		panic("oidc: " + err.Error()) // nothing in it can fail
	}
	return base64.RawURLEncoding.EncodeToString(d.key.Seal(plain, deskBinding))
}

// Open returns what Seal hid, unless it is over or was used.
func (d *Desk) Open(text string) (*Pending, error) {
	if len(text) > pendingMax {
		return nil, overdue()
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, overdue()
	}
	plain, err := d.key.Open(sealed, deskBinding)
	if err != nil {
		return nil, overdue()
	}
	p := new(Pending)
	if err := json.Unmarshal(plain, p); err != nil || !d.now().Before(p.Expires) {
		return nil, overdue()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, spent := d.mu.spent[p.ID]; spent {
		return nil, overdue()
	}
	return p, nil
}

// Spend takes a pending sign-in, for the first time and the last: of many at once, one
// gets it.
func (d *Desk) Spend(p *Pending) error {
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, spent := d.mu.spent[p.ID]; spent {
		return overdue()
	}
	if !room(d.mu.spent, func(until time.Time) bool { return !now.Before(until) }) {
		return structs.NewError(structs.CodeUnavailable, "auth.sign_in_busy")
	}
	d.mu.spent[p.ID] = p.Expires
	delete(d.mu.asked, p.ID)
	return nil
}

// Ask reports whether the provider may be asked now about a sign-in without a browser, and
// if so has the next time wait.
func (d *Desk) Ask(p *Pending) bool {
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	its, asked := d.mu.asked[p.ID]
	if !asked {
		if !room(d.mu.asked, func(its turn) bool { return !now.Before(its.until) }) {
			return false
		}
		its = turn{every: p.Every, until: p.Expires}
	}
	if now.Before(its.next) {
		return false
	}
	its.next = now.Add(its.every)
	d.mu.asked[p.ID] = its
	return true
}

// Slow has a provider that complained be asked less often.
func (d *Desk) Slow(p *Pending) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if its, asked := d.mu.asked[p.ID]; asked {
		its.every += slower
		its.next = d.now().Add(its.every)
		d.mu.asked[p.ID] = its
	}
}

// room forgets what is over where a table is full, and reports whether one more fits.
func room[T any](table map[string]T, over func(T) bool) bool {
	if len(table) < spentMax {
		return true
	}
	for id, one := range table {
		if over(one) {
			delete(table, id)
		}
	}
	return len(table) < spentMax
}

func overdue() *structs.Error {
	return structs.NewError(structs.CodeUnauthorized, "oidc.begin_again")
}
