package staging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/structs"
)

const (
	windowAlone   = 8                      // pieces under way where no other node takes part
	windowShared  = 12                     // where others do
	pollEvery     = 200 * time.Millisecond // looks at what others have
	pollBytes     = 4 << 20                // of such looks, in a second: more pieces and nodes are looked at less often
	pollQuiet     = time.Second            // looks at those that knew nothing, or did not answer
	peersEvery    = 10 * time.Second       // questions to the servers who takes part
	peersSoonest  = time.Second            // where somebody asks who is not known
	askTimeout    = 3 * time.Second
	pieceTimeout  = 8 * time.Second        // of one piece of another node
	firstPatience = time.Second            // with those that the servers named, before the storage is read as if alone
	firstWord     = 300 * time.Millisecond // with them, before the storage is read at all
	manifestPeers = 4                      // that are asked for a manifest
	brokenMax     = 3                      // failures of the storage in a row, where nobody else has anything
)

// landing is what became of a fetch.
type landing struct {
	fetch fetch
	reply *structs.StagingReply // of a node that answered
	err   error
	ours  bool // the failure is this node's own: its disk
	lie   bool
}

// news is what a member said that it has.
type news struct {
	member int
	reply  *structs.StagingReply
	err    error
}

// flow is one copy that is being brought. It belongs to one goroutine.
type flow struct {
	*Exchange
	wanted  *Wanted
	filling *data.Filling
	making  *making
	swarm   *swarm
	begun   time.Time

	peers    []structs.StagingPeer // by the number of the member
	asked    []time.Time           // when each was last asked what it has
	asking   []bool
	landings chan landing
	news     chan news
	met      chan []structs.StagingPeer
	meeting  bool
	metAt    time.Time
	broken   int
	brought  Brought
	senders  map[int]bool
}

// Bring brings what a copy lacks, from other nodes and the storage. The error of a storage
// is returned when nobody else has what is missing. The caller calls Leave after that.
func (e *Exchange) Bring(ctx context.Context, w *Wanted, filling *data.Filling) (Brought, error) {
	p := cut(filling.Manifest())
	m, err := e.enter(w, filling, p)
	if err != nil {
		return Brought{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	now := e.config.Now()
	f := &flow{
		Exchange: e, wanted: w, filling: filling, making: m, begun: now,
		swarm:    newSwarm(e.config.NodeID, p.count(), e.config.Window, now),
		landings: make(chan landing, max(e.config.Window, windowShared)), news: make(chan news, structs.StagingPeersMax),
		met: make(chan []structs.StagingPeer, 1), senders: make(map[int]bool),
	}
	for piece := range p.count() {
		if f.there(piece) {
			m.got(piece)
			f.swarm.got(piece, now)
		}
	}
	err = f.run(ctx)
	cancel()
	for f.swarm.flights > 0 { // who writes into the copy has ended before anybody goes on with it
		_ = f.landed(<-f.landings) // err says already how it ended
	}
	f.brought.Nodes = len(f.senders)
	return f.brought, err
}

// there reports whether the copy has all of a piece.
func (f *flow) there(piece int) bool {
	for _, s := range f.making.pieces.of(piece) {
		if !f.filling.Has(s.file, s.chunk) {
			return false
		}
	}
	return true
}

func (f *flow) run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery / 2)
	defer tick.Stop()
	for f.swarm.left > 0 {
		now := f.config.Now()
		f.meet(ctx, now)
		f.look(ctx, now)
		f.swarm.shy = f.early(now)
		f.swarm.patient = f.swarm.shy && now.Sub(f.begun) < firstWord && f.expects()
		f.swarm.window = f.config.Window
		if f.swarm.others > 0 {
			f.swarm.window = windowShared
		}
		for next, ok := f.swarm.next(now); ok; next, ok = f.swarm.next(now) {
			f.begin(ctx, next)
		}
		select {
		case l := <-f.landings:
			if err := f.landed(l); err != nil {
				return err
			}
		case n := <-f.news:
			f.heard(n)
		case peers := <-f.met:
			f.meeting, f.metAt = false, f.config.Now()
			for i := range peers {
				if peers[i].NodeID == f.config.NodeID || f.swarm.meet(peers[i].NodeID, peers[i].Near) < len(f.peers) {
					continue
				}
				f.peers, f.asked, f.asking = append(f.peers, peers[i]), append(f.asked, time.Time{}), append(f.asking, false)
				f.making.known.Store(peers[i].NodeID, true)
			}
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// early reports whether others may take part that were not heard of yet.
func (f *flow) early(now time.Time) bool {
	return now.Sub(f.begun) < firstPatience && (len(f.peers) > 0 || f.meeting)
}

// expects reports whether a first word of somebody is still to come.
func (f *flow) expects() bool {
	for i := range f.peers {
		if f.asking[i] && f.swarm.members[i].heard.IsZero() {
			return true
		}
	}
	return f.meeting && f.metAt.IsZero()
}

// meet asks the servers who takes part, now and then.
func (f *flow) meet(ctx context.Context, now time.Time) {
	every := peersEvery
	select {
	case <-f.making.strangers:
		every = peersSoonest
	default:
	}
	if !f.open() || f.meeting || !f.metAt.IsZero() && now.Sub(f.metAt) < every {
		return
	}
	f.meeting = true
	go func() {
		peers, err := f.Exchange.peers(ctx, f.wanted)
		if err != nil {
			f.config.Log.Debug("no server says who else has data", logkey.Error, err)
		}
		f.met <- peers
	}()
}

// look asks others what they have.
func (f *flow) look(ctx context.Context, now time.Time) {
	every := max(pollEvery, time.Duration(len(f.peers)*len(f.making.mu.have))*time.Second/pollBytes)
	for i := range f.peers {
		m := f.swarm.members[i]
		wait := every
		if !m.alive {
			wait = pollQuiet
			if now.Sub(f.begun) < firstPatience {
				wait = pollEvery
			}
		}
		if m.left || f.asking[i] || now.Sub(f.asked[i]) < wait {
			continue
		}
		f.asking[i], f.asked[i] = true, now
		peer, ask := f.peers[i], f.ask(structs.StagingHave, m)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			reply, err := f.config.Nodes.Ask(ctx, &peer, ask)
			select {
			case f.news <- news{i, reply, err}:
			case <-ctx.Done():
			}
		}()
	}
}

func (f *flow) ask(what string, m *member) *structs.StagingAsk {
	return &structs.StagingAsk{What: what, AllocID: f.wanted.AllocID, Project: f.wanted.Place.Project, Digest: f.wanted.Place.Digest, Known: m.count}
}

func (f *flow) heard(n news) {
	f.asking[n.member] = false
	if n.err != nil {
		f.swarm.silent(n.member)
		return
	}
	f.told(n.member, n.reply)
}

// told takes what a member says of itself. It may say anything: what it does not have it
// cannot send, and then it is left alone.
func (f *flow) told(member int, reply *structs.StagingReply) {
	now := f.config.Now()
	if reply.Busy > 0 {
		f.swarm.busy(member, now.Add(min(time.Duration(reply.Busy)*time.Millisecond, aliveFor)))
	}
	have := bits(nil)
	if len(reply.Have) == len(f.making.mu.have) && len(reply.Have) > 0 {
		have = reply.Have
	}
	f.swarm.heard(member, have, reply.Count, reply.Whole, now)
}

// begin fetches a piece, in a goroutine.
func (f *flow) begin(ctx context.Context, next fetch) {
	if next.from == fromStorage {
		go func() { f.landings <- f.fromStorage(ctx, next) }()
		return
	}
	peer, ask := f.peers[next.from], f.ask(structs.StagingRead, f.swarm.members[next.from])
	ask.Piece = next.piece
	go func() { f.landings <- f.fromPeer(ctx, next, &peer, ask) }()
}

func (f *flow) fromStorage(ctx context.Context, next fetch) landing {
	reply, err := f.config.Stored.Answer(ctx, &structs.DataAsk{What: structs.DataAskRead, Place: f.wanted.Place, Chunks: f.making.pieces.chunks(next.piece)})
	if err != nil {
		return landing{fetch: next, err: err}
	}
	if !f.making.pieces.whole(next.piece, reply.Data) {
		return landing{fetch: next, err: fmt.Errorf("%w: on the storage", data.ErrCorrupt)}
	}
	return f.lay(next, reply.Data, nil)
}

func (f *flow) fromPeer(ctx context.Context, next fetch, peer *structs.StagingPeer, ask *structs.StagingAsk) landing {
	if err := f.in.wait(ctx, f.config.Now, f.making.pieces.bytes[next.piece]); err != nil {
		return landing{fetch: next, err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, pieceTimeout)
	defer cancel()
	reply, err := f.config.Nodes.Ask(ctx, peer, ask)
	switch {
	case err != nil:
		return landing{fetch: next, err: err}
	case reply.Busy > 0 && len(reply.Data) == 0:
		return landing{fetch: next, reply: reply, err: errBusy}
	case !f.making.pieces.whole(next.piece, reply.Data):
		return landing{fetch: next, err: data.ErrCorrupt, lie: true}
	}
	return f.lay(next, reply.Data, reply)
}

var errBusy = errors.New("the node has enough to do")

// lay writes the chunks of a piece that the copy lacks.
func (f *flow) lay(next fetch, content []byte, reply *structs.StagingReply) landing {
	for _, s := range f.making.pieces.of(next.piece) {
		size := f.making.pieces.chunk(s).Size
		if !f.filling.Has(s.file, s.chunk) {
			if err := f.filling.Put(s.file, s.chunk, content[:size]); err != nil {
				return landing{fetch: next, err: err, ours: true}
			}
		}
		content = content[size:]
	}
	f.making.got(next.piece)
	return landing{fetch: next, reply: reply}
}

// landed takes what became of a fetch. An error ends the copy.
func (f *flow) landed(l landing) error {
	now, bytes := f.config.Now(), f.making.pieces.bytes[l.fetch.piece]
	f.swarm.landed(l.fetch, l.err == nil, now)
	switch {
	case l.ours:
		return l.err
	case l.fetch.from == fromStorage && l.err == nil:
		f.broken = 0
		f.brought.FromStorage += bytes
		f.stored.Add(bytes)
	case l.fetch.from == fromStorage:
		return f.storageFailed(l.err, now)
	case l.err == nil:
		f.senders[l.fetch.from] = true
		f.brought.FromNodes += bytes
		f.received.Add(bytes)
		f.told(l.fetch.from, l.reply)
	case l.lie:
		peer := &f.peers[l.fetch.from]
		if f.swarm.members[l.fetch.from].left {
			break // another piece of it was under way
		}
		f.swarm.lied(l.fetch.from)
		f.brought.Liars = append(f.brought.Liars, peer.Name)
		f.config.Log.Error("a node has sent something else than a piece of a version: it is not asked for this copy again",
			logkey.NodeID, peer.NodeID, logkey.Addr, peer.Addr, "digest", f.wanted.Place.Digest)
	case errors.Is(l.err, errBusy):
		f.told(l.fetch.from, l.reply)
	default:
		f.swarm.silent(l.fetch.from)
	}
	return nil
}

// storageFailed ends the copy when the storage fails and nobody else brings anything.
func (f *flow) storageFailed(err error, now time.Time) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	f.swarm.storageFailed(now)
	f.broken++
	if f.swarm.others == 0 && !f.early(now) || f.broken >= brokenMax && now.Sub(f.swarm.gained) > aliveFor {
		return err
	}
	return nil
}
