package staging

import (
	"hash/fnv"
	"time"
)

// The rhythm of a swarm.
const (
	perPeer       = 2                      // pieces asked of one peer at a time
	storageShared = 16                     // of the storage, by all that take part together
	aliveFor      = 5 * time.Second        // after a peer was heard of
	patience      = 2 * time.Second        // without anything new, until what others should bring is fetched
	storageRest   = 5 * time.Second        // after the storage has failed
	dryFor        = 100 * time.Millisecond // until what could not be fetched is looked for again
	looksMax      = 12                     // pieces among which the rarest is taken
)

// fromStorage stands for a peer where the storage is meant.
const fromStorage = -1

// fetch is one piece that is to be fetched.
type fetch struct {
	piece int
	from  int // peer, or fromStorage
}

// What a node knows of a piece.
const (
	wanted = iota
	flying
	here
)

// member is another node that has the version, or is getting it.
type member struct {
	id      string
	hash    uint64
	near    bool
	whole   bool // it has all
	have    bits
	count   int // of pieces that it has
	heard   time.Time
	alive   bool
	left    bool      // it has sent wrong bytes, and is not asked again
	rests   time.Time // until then it is busy
	flights int
}

// swarm decides which piece a node fetches next, and from whom. It is pure: time enters
// by its methods, chance by the names of nodes. It belongs to one goroutine.
//
// Each piece has an owner, drawn by the names of those that are known to take part: who
// owns a piece reads it from the storage, and all others get it from nodes. In each rack
// one node fetches it from outside. So a storage is read once, a rack is entered once,
// and every node has something that the others want. Nodes know different others, and
// that does no harm: two that both take themselves for the owner read twice.
//
// What does not come, because its owner hangs, the storage is asked for after a while.
type swarm struct {
	self    uint64
	window  int // pieces under way
	state   []byte
	left    int // pieces that are not here
	cursor  int
	members []*member
	flights int
	stored  int       // of them, from the storage
	gained  time.Time // when anything new came, or was heard of
	dry     time.Time // until then there is nothing to fetch
	broken  time.Time // until then the storage is not asked
	shy     bool      // there may be others, though none was heard of
	patient bool      // somebody is about to say what it has: the storage is not read yet

	// Derived from the members: how many of them have each piece, and how many of these
	// are near; and which pieces this node is to bring.
	holders, nears []uint16
	duties         []byte
	unsure         bool // who takes part has changed since duties were looked at
	others         int  // members that take part
}

// What a node is to bring.
const (
	toRack = 1 << iota
	toAll
)

// hashOf is the weight of a name.
func hashOf(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return mix(h.Sum64())
}

// mix scatters the bits of a number (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// newSwarm begins to fetch count pieces.
func newSwarm(self string, count, window int, now time.Time) *swarm {
	s := &swarm{
		self: hashOf(self), window: window, state: make([]byte, count), left: count, gained: now,
		holders: make([]uint16, count), nears: make([]uint16, count), duties: make([]byte, count), unsure: true,
	}
	if count > 0 {
		s.cursor = int(s.self % uint64(count))
	}
	return s
}

// got notes that a piece is here.
func (s *swarm) got(piece int, now time.Time) {
	if s.state[piece] != here {
		s.state[piece], s.gained = here, now
		s.left--
	}
}

// meet makes a member known, and returns its number.
func (s *swarm) meet(id string, near bool) int {
	for i, m := range s.members {
		if m.id == id {
			return i
		}
	}
	s.members = append(s.members, &member{id: id, hash: hashOf(id), near: near})
	return len(s.members) - 1
}

// heard notes which pieces a member has; have is nil where nothing is new.
func (s *swarm) heard(i int, have bits, count int, whole bool, now time.Time) {
	m := s.members[i]
	if m.left {
		return
	}
	if !m.alive {
		m.alive, s.unsure, s.others = true, true, s.others+1
		s.tally(m, 1)
	}
	m.heard = now
	if whole && !m.whole || have != nil && !whole && count != m.count {
		s.unsure = s.unsure || whole != m.whole
		if whole {
			have = newBits(len(s.state))
			for at := range have {
				have[at] = 0xff
			}
		}
		s.learn(m, have)
		m.whole, m.count = whole, count
		s.gained, s.dry = now, time.Time{}
	}
}

// learn takes what a member has now, and counts what is new of it.
func (s *swarm) learn(m *member, have bits) {
	for at := range (len(s.state) + 7) / 8 {
		before, now := m.have.byte(at), have.byte(at)
		if before == now {
			continue
		}
		for piece := at * 8; piece < min(at*8+8, len(s.state)); piece++ {
			if by := have.one(piece) - m.have.one(piece); by != 0 {
				s.count(m, piece, by)
			}
		}
	}
	m.have = have
}

// count notes that one member more, or fewer, has a piece.
func (s *swarm) count(m *member, piece, by int) {
	s.holders[piece] += uint16(by)
	if m.near {
		s.nears[piece] += uint16(by)
	}
}

// tally counts all that a member has, or takes that back.
func (s *swarm) tally(m *member, by int) {
	for piece := range s.state {
		if m.have.has(piece) {
			s.count(m, piece, by)
		}
	}
}

// silent notes that a member did not answer, or knows nothing of the version.
func (s *swarm) silent(i int) {
	if m := s.members[i]; m.alive {
		m.alive, s.unsure, s.others, s.dry = false, true, s.others-1, time.Time{}
		s.tally(m, -1)
	}
}

// lied notes that a member has sent something else than a piece.
func (s *swarm) lied(i int) {
	s.silent(i)
	s.members[i].left = true
}

// busy notes that a member is not to be asked for a while.
func (s *swarm) busy(i int, until time.Time) { s.members[i].rests = until }

// storageFailed notes that the storage did not answer.
func (s *swarm) storageFailed(now time.Time) { s.broken = now.Add(storageRest) }

// landed notes that a fetch is over; the piece came, or is wanted again.
func (s *swarm) landed(f fetch, came bool, now time.Time) {
	s.flights--
	if f.from == fromStorage {
		s.stored--
	} else {
		s.members[f.from].flights--
	}
	s.dry = time.Time{}
	if came {
		s.got(f.piece, now)
	} else if s.state[f.piece] == flying {
		s.state[f.piece] = wanted
	}
}

// refresh looks who takes part, and what of the work is this node's.
func (s *swarm) refresh(now time.Time) {
	for i, m := range s.members {
		if m.alive && now.Sub(m.heard) >= aliveFor {
			s.silent(i)
		}
	}
	if !s.unsure {
		return
	}
	s.unsure = false
	for piece := range s.duties {
		duty, own := byte(toRack|toAll), weight(s.self, piece)
		for _, m := range s.members {
			if m.alive && !m.whole && weight(m.hash, piece) > own {
				if duty &^= toAll; m.near {
					duty = 0
					break
				}
			}
		}
		s.duties[piece] = duty
	}
}

// next returns the next fetch to begin, if there is one.
func (s *swarm) next(now time.Time) (fetch, bool) {
	if s.flights >= s.window || s.left == 0 || now.Before(s.dry) {
		return fetch{}, false
	}
	s.refresh(now)
	waited := now.Sub(s.gained) >= patience
	best, rarest, looks := fetch{}, 0, 0
	for i := range s.state {
		piece := (s.cursor + i) % len(s.state)
		if s.state[piece] != wanted {
			continue
		}
		from, holders, ok := s.source(piece, waited, now)
		if !ok {
			continue
		}
		if looks == 0 || holders < rarest {
			best, rarest = fetch{piece, from}, holders
		}
		if looks++; looks == looksMax {
			break
		}
	}
	if looks == 0 {
		s.dry = now.Add(dryFor)
		return fetch{}, false
	}
	s.state[best.piece] = flying
	s.flights++
	if best.from == fromStorage {
		s.stored++
	} else {
		s.members[best.from].flights++
	}
	s.cursor = (best.piece + 1) % len(s.state)
	return best, true
}

// source is where a piece comes from now: a member that has it and has least to do, or
// the storage; holders is how many members have it.
func (s *swarm) source(piece int, waited bool, now time.Time) (from, holders int, ok bool) {
	holders = int(s.holders[piece])
	if s.nears[piece] > 0 || holders > 0 && (s.duties[piece]&toRack != 0 || waited) {
		near, far := -1, -1
		for i, m := range s.members {
			switch {
			case !m.alive || m.flights >= perPeer || now.Before(m.rests) || !m.have.has(piece):
			case m.near:
				near = s.lighter(near, i, piece)
			default:
				far = s.lighter(far, i, piece)
			}
		}
		switch {
		case near >= 0:
			return near, holders, true
		case far >= 0 && (s.nears[piece] == 0 || waited):
			return far, holders, true
		}
	}
	limit := max(1, min(storageShared/(s.others+1), s.window/2))
	switch {
	case s.others == 0 && !s.shy:
		limit = s.window
	case holders > 0 || s.duties[piece]&toAll == 0:
		if !waited {
			return 0, 0, false
		}
		limit = 1 // what another one should have brought
	}
	if s.patient || s.stored >= limit || now.Before(s.broken) {
		return 0, 0, false
	}
	return fromStorage, holders, true
}

// lighter is the one of two members with less to do for this node.
func (s *swarm) lighter(a, b, piece int) int {
	if a < 0 {
		return b
	}
	x, y := s.members[a], s.members[b]
	if x.flights != y.flights {
		if x.flights < y.flights {
			return a
		}
		return b
	}
	if weight(x.hash^s.self, piece) > weight(y.hash^s.self, piece) {
		return a
	}
	return b
}

// weight draws who owns a piece: the node for which it is highest.
func weight(node uint64, piece int) uint64 { return mix(node ^ mix(uint64(piece)+0x9e3779b97f4a7c15)) }
