package staging

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// world is nodes and one storage whose links are all alike. What is sent waits for its
// turn on the sender's link and then on the receiver's; nothing is sent twice at once.
// Time is virtual, and each run is decided by its seed.
type world struct {
	now      time.Duration
	piece    time.Duration // that one piece takes on a link
	pieces   int
	poll     time.Duration
	racks    int
	nodes    []*node
	storage  link
	events   events
	seq      int
	reads    int // pieces read from the storage
	crossing int // pieces that came from another rack
	lies     func(node int) bool
	whole    bool                                   // only nodes that have all are known to have something
	plant    func(w *world, n *node, f fetch) fetch // a defect
}

type link time.Duration // until which it is busy

type node struct {
	number, rack int
	swarm        *swarm
	begins       time.Duration
	ends         time.Duration // 0: not yet
	dies         time.Duration // 0: never
	up, down     link
	queued       int // pieces that others wait for
	have         bits
	count        int
}

type event struct {
	at  time.Duration
	seq int
	run func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].seq, e[j].seq)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) after(d time.Duration, run func()) {
	w.seq++
	heap.Push(&w.events, event{w.now + d, w.seq, run})
}

func (w *world) clock() time.Time { return time.Unix(0, 0).Add(w.now) }

// pass has a piece take its turn on a link, and returns when it has passed.
func (w *world) pass(l *link) time.Duration {
	*l = link(max(time.Duration(*l), w.now) + w.piece)
	return time.Duration(*l)
}

func newWorld(seed uint64, count, pieces, racks int) *world {
	chance := rand.New(rand.NewPCG(seed, 1))
	w := &world{piece: 10 * time.Millisecond, pieces: pieces, poll: pollEvery, racks: racks}
	for i := range count {
		w.nodes = append(w.nodes, &node{number: i, rack: i % racks, have: newBits(pieces), begins: time.Duration(chance.IntN(300)) * time.Millisecond})
	}
	for _, n := range w.nodes {
		w.after(n.begins, func() {
			n.swarm = newSwarm(fmt.Sprintf("node-%d-%d", seed, n.number), pieces, windowShared, w.clock())
			for _, other := range w.nodes {
				if other != n {
					n.swarm.meet(fmt.Sprintf("node-%d-%d", seed, other.number), other.rack == n.rack)
				}
			}
			n.swarm.shy = len(w.nodes) > 1
			w.look(n)
		})
	}
	return w
}

// dead reports whether a node has ended.
func (w *world) dead(n *node) bool { return n.dies > 0 && w.now >= n.dies }

// other is the node that a member of another one is.
func (w *world) other(n *node, member int) *node {
	if member >= n.number {
		member++
	}
	return w.nodes[member]
}

// look asks the others what they have, now and then.
func (w *world) look(n *node) {
	if w.dead(n) {
		return
	}
	for i := range n.swarm.members {
		other := w.other(n, i)
		if other.swarm == nil || w.dead(other) {
			n.swarm.silent(i)
			continue
		}
		if w.whole && other.count < w.pieces {
			n.swarm.heard(i, nil, 0, false, w.clock())
			continue
		}
		n.swarm.heard(i, append(bits(nil), other.have...), other.count, other.count == w.pieces, w.clock())
	}
	w.drive(n)
	if n.swarm.left > 0 {
		w.after(w.poll, func() { w.look(n) })
	}
}

func (w *world) drive(n *node) {
	for {
		f, ok := n.swarm.next(w.clock())
		if !ok || w.dead(n) {
			return
		}
		if w.plant != nil {
			f = w.plant(w, n, f)
		}
		var leaves time.Duration
		good := true
		if f.from == fromStorage {
			w.reads++
			leaves = w.pass(&w.storage)
		} else {
			other := w.other(n, f.from)
			if w.dead(other) {
				w.after(time.Second, func() { n.swarm.landed(f, false, w.clock()); n.swarm.silent(f.from); w.drive(n) })
				continue
			}
			if other.queued == servedMax {
				n.swarm.landed(f, false, w.clock())
				n.swarm.busy(f.from, w.clock().Add(busyFor))
				continue
			}
			if other.queued++; other.rack != n.rack {
				w.crossing++
			}
			good = w.lies == nil || !w.lies(other.number)
			leaves = w.pass(&other.up)
		}
		w.after(leaves-w.now, func() {
			var have bits
			count := 0
			if f.from != fromStorage { // every answer says what else there is
				other := w.other(n, f.from)
				other.queued--
				have, count = append(bits(nil), other.have...), other.count
			}
			w.after(w.pass(&n.down)-w.now, func() {
				if have != nil {
					n.swarm.heard(f.from, have, count, count == w.pieces, w.clock())
				}
				w.land(n, f, good)
			})
		})
	}
}

func (w *world) land(n *node, f fetch, good bool) {
	if w.dead(n) {
		return
	}
	n.swarm.landed(f, good, w.clock())
	if !good {
		n.swarm.lied(f.from)
	} else {
		n.have.set(f.piece)
		n.count++
	}
	if n.swarm.left == 0 && n.ends == 0 {
		n.ends = w.now
	}
	w.drive(n)
}

// run lets everything happen, and returns when the last node that lives has all, counted
// from when the first one began.
func (w *world) run(t *testing.T) time.Duration {
	t.Helper()
	for len(w.events) > 0 {
		e := heap.Pop(&w.events).(event)
		if w.now = e.at; w.now > time.Hour {
			t.Fatal("it goes on for ever")
		}
		e.run()
	}
	first, last := time.Hour, time.Duration(0)
	for _, n := range w.nodes {
		if w.dead(n) {
			continue
		}
		if n.ends == 0 {
			t.Fatalf("node %d lacks %d of %d pieces and fetches nothing more", n.number, n.swarm.left, w.pieces)
		}
		first, last = min(first, n.begins), max(last, n.ends)
	}
	return last - first
}

// costOf is how much longer a gang takes than a node alone.
func costOf(t *testing.T, seed uint64, count, pieces, racks int, change func(*world)) (float64, *world) {
	t.Helper()
	one := newWorld(seed, 1, pieces, 1).run(t)
	w := newWorld(seed, count, pieces, racks)
	if change != nil {
		change(w)
	}
	return float64(w.run(t)) / float64(one), w
}

const (
	mostCost  = 1.5
	simPieces = 300
)

// TestManyCostAsOne: over links that are all alike, 64 nodes have a version in at most
// one and a half times what one node takes, and the storage is read about once. In racks
// each rack is entered about once.
func TestManyCostAsOne(t *testing.T) {
	for seed, of := range []struct{ count, racks int }{{2, 1}, {5, 1}, {16, 1}, {64, 1}, {32, 4}} {
		cost, w := costOf(t, uint64(seed), of.count, simPieces, of.racks, nil)
		t.Logf("%d nodes in %d racks: cost %.2f, storage read %.2f times, racks entered %.2f times", of.count, of.racks, cost, float64(w.reads)/simPieces, float64(w.crossing)/simPieces)
		if cost > mostCost || w.reads > simPieces*12/10 || w.crossing > simPieces*of.racks {
			t.Errorf("seed %d: %d nodes take %.2f times as long as one; the storage was read %.2f times, and racks were entered %.2f times",
				seed, of.count, cost, float64(w.reads)/simPieces, float64(w.crossing)/simPieces)
		}
	}
}

// TestCostSeesDefects: what the bound above is there for is more than it allows: nodes that
// all read the storage, and nodes that give nothing before they have all.
func TestCostSeesDefects(t *testing.T) {
	for what, plant := range map[string]func(*world, *node, fetch) fetch{
		"all read the storage": func(_ *world, n *node, f fetch) fetch {
			if f.from != fromStorage {
				n.swarm.members[f.from].flights--
				n.swarm.stored++
				f.from = fromStorage
			}
			return f
		},
		"nobody gives before it has all": nil,
	} {
		if cost, _ := costOf(t, 1, 16, 200, 1, func(w *world) { w.plant, w.whole = plant, plant == nil }); cost <= mostCost {
			t.Errorf("%s: cost %.2f", what, cost)
		}
	}
}

// TestSwarmGoesOn: nodes that die in the middle, the owner of pieces among them, and nodes
// that send other bytes, keep nobody from having all.
func TestSwarmGoesOn(t *testing.T) {
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 2))
		cost, w := costOf(t, seed, 12, 100, 1+int(seed%3), func(w *world) {
			for _, n := range w.nodes[:1+chance.IntN(8)] {
				n.dies = n.begins + time.Duration(1+chance.IntN(600))*time.Millisecond
			}
			liar := 8 + chance.IntN(3)
			w.lies = func(node int) bool { return node == liar }
		})
		if cost > 30 || w.reads > 400 {
			t.Errorf("seed %d: cost %.2f, %d of 100 pieces read", seed, cost, w.reads)
		}
	}
}
