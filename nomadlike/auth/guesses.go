package auth

import (
	"math"
	"time"
)

// Bounds of wrong passwords.
const (
	guessesOfAddress = 5                // of one account from one address, at once
	guessesOfAccount = 20               // of one account, from all addresses that it is not known at, at once
	guessesFrom      = 30               // of any accounts that are not known there, from one address, at once
	guessRefill      = 12 * time.Second // until one more may be tried of an account
	guessRefillFrom  = time.Second      // and from an address
	guessesKept      = 16384            // buckets that are remembered
)

// Guesses bounds how often somebody may try passwords. It belongs to the leader, which
// answers all sign-ins, and to one goroutine at a time.
//
// An account has a bucket for each address that it has signed in from and is still
// signed in at, and one for all the rest; and an address has one for all accounts that
// are not known there, since each try takes the leader's time. So whoever guesses, from however many
// addresses, empties the bucket of the rest, and never that of the account's holder at
// a known address; and a token that is held already is never asked for a password.
type Guesses struct {
	buckets map[guess]*level
}

// guess is what a bucket is kept by; the address is "" for all the rest, the user for
// all accounts.
type guess struct{ user, address string }

type level struct {
	left float64
	at   time.Time
}

// Wait reports how long the next try for an account from an address must wait; 0: it
// need not. known: the account is signed in at that address.
func (g *Guesses) Wait(user, address string, known bool, now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, key := range keysOf(user, address, known) {
		if b := g.buckets[key]; b != nil {
			if left := b.now(key, now); left < 1 {
				longest = max(longest, time.Duration(math.Ceil((1-left)*float64(key.refill()))))
			}
		}
	}
	return longest
}

// Failed counts a try, as wrong until Passed says otherwise.
func (g *Guesses) Failed(user, address string, known bool, now time.Time) {
	if g.buckets == nil {
		g.buckets = make(map[guess]*level)
	}
	for _, key := range keysOf(user, address, known) {
		b := g.buckets[key]
		if b == nil {
			g.forget(now)
			b = &level{left: key.most(), at: now}
			g.buckets[key] = b
		}
		b.left, b.at = math.Max(0, b.now(key, now)-1), now
	}
}

// Passed takes back what Failed counted for a try that turned out right, and forgets the
// wrong ones from that address. Those of all the rest stay: an attacker may be at work
// all the while.
func (g *Guesses) Passed(user, address string, known bool) {
	delete(g.buckets, guess{user, address})
	if known {
		return
	}
	for _, key := range []guess{{user, ""}, {"", address}} {
		if b := g.buckets[key]; b != nil {
			b.left = math.Min(key.most(), b.left+1)
		}
	}
}

// Bounds of wrong passwords that a directory hears of: those lock people out everywhere,
// after ten as a rule.
const (
	directoryTries  = 4                // of one person, at once
	directoryRefill = 10 * time.Minute // until one more
	triesKept       = 16384
)

// Tries bounds how many wrong passwords of one person a directory is asked about, so
// that nobody is locked out there by way of here. As with Guesses, an address at which
// somebody is signed in has tries of its own, which strangers cannot use up.
type Tries struct {
	left map[guess]*level
}

// Wait reports how long the next try must wait, and counts it where it need not: as
// wrong, until Passed says otherwise. The address is "" where the person is not signed in.
func (t *Tries) Wait(person, address string, now time.Time) time.Duration {
	key := guess{person, address}
	l := t.left[key]
	if l == nil {
		if len(t.left) >= triesKept {
			for old, level := range t.left {
				if t.now(level, now) >= directoryTries {
					delete(t.left, old)
				}
			}
		}
		if t.left == nil {
			t.left = make(map[guess]*level)
		}
		l = &level{left: directoryTries, at: now}
		t.left[key] = l
	}
	left := t.now(l, now)
	if left < 1 {
		return time.Duration(math.Ceil((1 - left) * float64(directoryRefill)))
	}
	l.left, l.at = left-1, now
	return 0
}

// Passed forgets the wrong ones: so does the directory.
func (t *Tries) Passed(person, address string) { delete(t.left, guess{person, address}) }

func (t *Tries) now(l *level, now time.Time) float64 {
	return math.Min(directoryTries, l.left+math.Max(0, float64(now.Sub(l.at)))/float64(directoryRefill))
}

func keysOf(user, address string, known bool) []guess {
	if known {
		return []guess{{user, address}}
	}
	return []guess{{user, address}, {user, ""}, {"", address}}
}

func (k guess) most() float64 {
	switch {
	case k.address == "":
		return guessesOfAccount
	case k.user == "":
		return guessesFrom
	}
	return guessesOfAddress
}

func (k guess) refill() time.Duration {
	if k.user == "" {
		return guessRefillFrom
	}
	return guessRefill
}

// now is what is left in a bucket.
func (l *level) now(key guess, now time.Time) float64 {
	return math.Min(key.most(), l.left+math.Max(0, float64(now.Sub(l.at)))/float64(key.refill()))
}

// forget makes room: full buckets say nothing. When none is full the fullest half goes,
// so that a flood of names does not empty the bucket that somebody is being kept out by.
func (g *Guesses) forget(now time.Time) {
	if len(g.buckets) < guessesKept {
		return
	}
	for _, spare := range []float64{0, 1, 2, guessesOfAddress} {
		for key, b := range g.buckets {
			if b.now(key, now) >= key.most()-spare {
				delete(g.buckets, key)
			}
		}
		if len(g.buckets) < guessesKept/2 {
			return
		}
	}
}
