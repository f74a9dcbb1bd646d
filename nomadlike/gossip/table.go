package gossip

import (
	"net"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// State is what this agent believes of a member.
type State string

// The states of members. Suspect means that this agent's own probes go
// unanswered; Dead that the cluster gave the member up; Left that it said
// goodbye; Unknown that it is not heard of (any more).
const (
	StateUnknown State = "unknown"
	StateAlive   State = "alive"
	StateSuspect State = "suspect"
	StateDead    State = "dead"
	StateLeft    State = "left"
)

// Member is an agent as gossip knows it. Only ID was checked by nobody: rpc
// proves identities.
type Member struct {
	ID    string
	Addr  string // host:port of its gossip
	Meta  Meta
	State State
	Since time.Time // when State began, by this agent's clock
}

// Event reports that a member changed; Member.State says how. Changes that
// follow each other faster than they are read are merged, so an event always
// carries the newest state, and none is lost.
type Event struct {
	Member Member
}

// table is what this agent knows of the members. memberlist calls it with
// its own lock held, so it never calls back, and never blocks.
type table struct {
	self    string
	cluster string

	wake   chan struct{} // holds a token when pending is not empty
	proofs *proofs       // may be nil

	mu struct {
		sync.Mutex
		members map[string]*Member
		acks    map[string]time.Time // last direct answer to a probe of ours
		pending map[string]struct{}  // ids with an event to deliver
		order   []string             // of pending, oldest first
		servers uint64               // counts changes of servers
		refused map[string]bool      // ids that are not heard any more
	}
}

func newTable(self, cluster string) *table {
	t := &table{self: self, cluster: cluster, wake: make(chan struct{}, 1)}
	t.mu.members = make(map[string]*Member)
	t.mu.acks = make(map[string]time.Time)
	t.mu.pending = make(map[string]struct{})
	return t
}

// setLocked changes a member's state and notes an event.
func (t *table) setLocked(m *Member, state State) {
	if m.State != state {
		m.State, m.Since = state, time.Now()
	}
	if m.Meta.Role == roleServer {
		t.mu.servers++
	}
	t.noteLocked(m.ID)
}

func (t *table) noteLocked(id string) {
	if _, waiting := t.mu.pending[id]; !waiting {
		t.mu.pending[id] = struct{}{}
		t.mu.order = append(t.mu.order, id)
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// next takes the oldest event, or reports that there is none.
func (t *table) next() (Event, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.mu.order) > 0 {
		id := t.mu.order[0]
		t.mu.order = t.mu.order[1:]
		delete(t.mu.pending, id)
		if m := t.mu.members[id]; m != nil {
			return Event{Member: *m}, true
		}
	}
	t.mu.order = nil
	return Event{}, false
}

// NotifyAlive is memberlist's question whether a member may be heard at all.
// An error keeps it out.
func (t *table) NotifyAlive(node *memberlist.Node) error {
	if !validName(node.Name) {
		return errBadName
	}
	meta, err := decodeMeta(node.Meta)
	if err != nil {
		return err
	}
	if meta.Cluster != t.cluster {
		return errOtherCluster
	}
	if t.proofs != nil {
		if err := t.proofs.admit(node, meta); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.refused[node.Name] {
		return errRefused
	}
	if _, known := t.mu.members[node.Name]; !known && (len(t.mu.members) >= MembersMax || meta.Role == roleServer && t.serversLocked() >= serversMax) {
		return errTooMany
	}
	return nil
}

func (t *table) serversLocked() int {
	servers := 0
	for _, m := range t.mu.members {
		if m.Meta.Role == roleServer {
			servers++
		}
	}
	return servers
}

// NotifyJoin is memberlist's news of a member that is alive (again).
func (t *table) NotifyJoin(node *memberlist.Node) { t.update(node) }

// NotifyUpdate is memberlist's news of changed metadata.
func (t *table) NotifyUpdate(node *memberlist.Node) { t.update(node) }

func (t *table) update(node *memberlist.Node) {
	meta, err := decodeMeta(node.Meta)
	if err != nil {
		return // NotifyAlive refused it, or the next alive message will be refused
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.mu.members[node.Name]
	if m == nil {
		m = &Member{ID: node.Name, State: StateUnknown}
		t.mu.members[node.Name] = m
	}
	m.Addr = net.JoinHostPort(node.Addr.String(), strconv.Itoa(int(node.Port)))
	m.Meta = meta
	t.setLocked(m, StateAlive)
}

// NotifyLeave is memberlist's news of a member that is gone. It does not say
// whether in order; the member itself said so before (Meta.Leaving).
func (t *table) NotifyLeave(node *memberlist.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.mu.members[node.Name]
	if m == nil {
		return
	}
	state := StateDead
	if m.Meta.Leaving {
		state = StateLeft
	}
	t.setLocked(m, state)
	delete(t.mu.acks, node.Name)
}

// suspect notes that a probe of ours went unanswered.
func (t *table) suspect(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.mu.members[id]; m != nil && m.State == StateAlive && id != t.self {
		t.setLocked(m, StateSuspect)
	}
}

// AckPayload adds nothing to answers of probes.
func (t *table) AckPayload() []byte { return nil }

// NotifyPingComplete is memberlist's news of an answered probe of ours.
func (t *table) NotifyPingComplete(node *memberlist.Node, _ time.Duration, _ []byte) {
	t.answered(node.Name)
}

func (t *table) answered(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.mu.members[id]
	if m == nil {
		return
	}
	t.mu.acks[id] = time.Now()
	if m.State == StateSuspect {
		t.setLocked(m, StateAlive)
	}
}

// get finds one member.
func (t *table) get(id string) (member Member, ack time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.mu.members[id]
	if m == nil {
		return Member{ID: id, State: StateUnknown}, time.Time{}, false
	}
	return *m, t.mu.acks[id], true
}

// state is what memberlist believes of a member.
func (t *table) state(id string) State {
	member, _, _ := t.get(id)
	return member.State
}

// list returns all members by id.
func (t *table) list() []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	members := make([]Member, 0, len(t.mu.members))
	for _, m := range t.mu.members {
		members = append(members, *m)
	}
	sort.Slice(members, func(i, j int) bool { return members[i].ID < members[j].ID })
	return members
}

// serverChanges counts changes of servers, so that nobody needs to walk all
// members to find out that there was none.
func (t *table) serverChanges() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.servers
}

// prune drops members that are gone for long, and returns the ids of those that
// had left in order.
func (t *table) prune(now time.Time) (left []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, m := range t.mu.members {
		if (m.State == StateDead || m.State == StateLeft) && now.Sub(m.Since) > deadKept {
			if m.State == StateLeft {
				left = append(left, id)
			}
			delete(t.mu.members, id)
			delete(t.mu.acks, id)
		}
	}
	return left
}
