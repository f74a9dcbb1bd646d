package sim

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// errUnknown is a proposal's end when the proposer cannot know whether it
// was committed.
var errUnknown = errors.New("the outcome is unknown")

// hashEvery is how often replicas compare their states, in log entries.
const hashEvery = 40

// oracle is the replicated log with its replicas.
type oracle struct {
	w        *Cluster
	entries  [][]byte // entry i has index i+1
	replicas []*replica
	leads    int // index of the replica that leads
	term     int
	hashes   map[uint64]string // state hash by index, from whoever came first
	changed  func()            // called after the leader applied something
	old      []byte            // a snapshot of long ago, of PlantOldSnapshot
}

// replica is one server's copy of the state.
type replica struct {
	id      int
	store   *state.Store
	applied uint64
	down    bool
}

func newOracle(w *Cluster) *oracle {
	o := &oracle{w: w, hashes: make(map[uint64]string), changed: func() {}}
	for i := range w.config.Servers {
		o.replicas = append(o.replicas, &replica{id: i, store: state.New()})
	}
	return o
}

func (o *oracle) committed() uint64 { return uint64(len(o.entries)) }

// state is the leader's state.
func (o *oracle) state() *state.Snapshot { return o.replicas[o.leads].store.Snapshot() }

// propose offers a command. then is called with what came of it, at some
// later time, or with errUnknown although the entry may be in the log.
func (o *oracle) propose(kind structs.CommandKind, by string, body any, then func(structs.ApplyResult, error)) {
	command, err := wire.EncodeCommand(kind, o.w.wall(), by, body)
	if err != nil {
		o.w.fail("encode command %d: %v", kind, err)
		return
	}
	if o.w.flaky(0.01) { // lost on the way to the leader
		o.w.after(o.w.span(time.Second, 3*time.Second), func() { then(structs.ApplyResult{}, errUnknown) })
		return
	}
	term := o.term
	o.w.after(o.w.span(200*time.Microsecond, 4*time.Millisecond), func() {
		if term != o.term && o.w.chance(0.5) { // the old leader could not commit it
			then(structs.ApplyResult{}, errUnknown)
			return
		}
		result := o.commit(command)
		if o.w.flaky(0.02) { // committed, but nobody hears of it
			o.w.after(o.w.span(time.Second, 3*time.Second), func() { then(structs.ApplyResult{}, errUnknown) })
			return
		}
		then(result, nil)
	})
}

// commit appends an entry, applies it at the leader and lets the others
// follow in their own time.
func (o *oracle) commit(command []byte) structs.ApplyResult {
	o.entries = append(o.entries, command)
	index := o.committed()
	result := o.applyUpTo(o.replicas[o.leads], index)
	o.w.note("commit %d %s", index, describe(command, result))
	for _, r := range o.replicas {
		if r.id != o.leads && !r.down {
			o.w.after(o.w.span(time.Millisecond, 80*time.Millisecond), func() {
				if !r.down {
					o.applyUpTo(r, index)
				}
			})
		}
	}
	o.w.checkCommitted(index)
	if o.w.config.Break == PlantOldSnapshot && index == 100 {
		var image bytes.Buffer
		if err := o.state().Persist(&image); err != nil {
			o.w.fail("persist a snapshot: %v", err)
		}
		o.old = image.Bytes()
	}
	o.changed()
	return result
}

// applyUpTo lets a replica apply what it lacks, and compares states.
func (o *oracle) applyUpTo(r *replica, index uint64) structs.ApplyResult {
	var last structs.ApplyResult
	for r.applied < index {
		next := r.applied + 1
		command := o.entries[next-1]
		if o.w.config.Break == PlantLostCommit && r.id == 1 && next == 40 {
			r.applied = next
			continue
		}
		if o.w.config.Break == PlantWallClock && r.id == 1 {
			command = o.shifted(command)
		}
		last = r.store.Apply(next, command)
		r.applied = next
		if next%hashEvery == 0 {
			o.compare(r, next)
		}
	}
	return last
}

// shifted is a command as a replica would see it that stamps entries with a
// clock of its own.
func (o *oracle) shifted(data []byte) []byte {
	command, err := wire.DecodeCommand(data)
	if err != nil {
		o.w.fail("decode command: %v", err)
		return data
	}
	command.Now = command.Now.Add(time.Millisecond)
	data, err = wire.Marshal(command)
	if err != nil {
		o.w.fail("encode command: %v", err)
	}
	return data
}

// compare is I13: at one index all replicas have the same state.
func (o *oracle) compare(r *replica, index uint64) {
	hash := r.store.Snapshot().Hash()
	if first, known := o.hashes[index]; known && first != hash {
		o.w.fail("I13: replica %d has state %s at index %d, another has %s", r.id, hash, index, first)
		return
	}
	o.hashes[index] = hash
}

// elect makes another replica the leader: it has everything that was
// committed, since nothing else may lead.
func (o *oracle) elect() {
	up := make([]int, 0, len(o.replicas))
	for i, r := range o.replicas {
		if !r.down {
			up = append(up, i)
		}
	}
	o.leads = up[o.w.rng.IntN(len(up))]
	o.term++
	o.applyUpTo(o.replicas[o.leads], o.committed())
	o.w.note("leader %d term %d", o.leads, o.term)
	o.changed()
}

// crash takes a replica down; what it had in memory is gone. A minority only.
func (o *oracle) crash() {
	down := 0
	for _, r := range o.replicas {
		if r.down {
			down++
		}
	}
	if down >= (len(o.replicas)-1)/2 {
		return
	}
	r := o.replicas[o.w.rng.IntN(len(o.replicas))]
	if r.down {
		return
	}
	r.down = true
	o.w.note("replica %d down", r.id)
	if r.id == o.leads {
		o.elect()
		o.w.leader.elected()
	}
	o.w.after(o.w.span(2*time.Second, 15*time.Second), func() { o.restart(r) })
}

// restart brings a replica back: half of the time from a snapshot of another
// one and the entries after it, else by replaying the whole log.
func (o *oracle) restart(r *replica) {
	fresh := &replica{id: r.id, store: state.New()}
	if o.w.chance(0.5) {
		source := o.replicas[o.leads]
		var image bytes.Buffer
		if err := source.store.Snapshot().Persist(&image); err != nil {
			o.w.fail("I13: persist snapshot at %d: %v", source.applied, err)
			return
		}
		if err := fresh.store.Restore(&image); err != nil {
			o.w.fail("I13: restore snapshot of %d: %v", source.applied, err)
			return
		}
		fresh.applied = source.applied
	}
	if o.w.config.Break == PlantOldSnapshot && o.old != nil {
		if err := fresh.store.Restore(bytes.NewReader(o.old)); err != nil {
			o.w.fail("restore an old snapshot: %v", err)
		}
		fresh.applied = o.committed()
	}
	o.replicas[r.id] = fresh
	o.applyUpTo(fresh, o.committed())
	o.compareNow(fresh)
	o.w.note("replica %d up at %d", fresh.id, fresh.applied)
}

// compareNow compares a replica with the leader when both are at one index.
func (o *oracle) compareNow(r *replica) {
	leader := o.replicas[o.leads]
	if r.applied != leader.applied {
		return
	}
	if a, b := r.store.Snapshot().Hash(), leader.store.Snapshot().Hash(); a != b {
		o.w.fail("I13: replica %d has state %s at index %d, the leader has %s", r.id, a, r.applied, b)
	}
}

// describe is an entry for the trace: its kind, its size and hash, and what
// came of it.
func describe(data []byte, result structs.ApplyResult) string {
	h := newTraceHash()
	h.add(string(data))
	kind := structs.CommandKind(0)
	if command, err := wire.DecodeCommand(data); err == nil {
		kind = command.Kind
	}
	return fmt.Sprintf("kind %d by %d bytes %x: %v", kind, len(data), h.sum(), result.Err)
}
