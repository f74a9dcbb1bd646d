package staging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Servers are asked who takes part, and who may read.
type Servers interface {
	Peers(ctx context.Context, ask *structs.StagingPeersAsk) (*structs.StagingPeers, error)
	May(ctx context.Context, ask *structs.StagingMayAsk) error
}

// Nodes are the other agents. Whoever answers has to prove that it is the node.
type Nodes interface {
	Ask(ctx context.Context, peer *structs.StagingPeer, ask *structs.StagingAsk) (*structs.StagingReply, error)
}

// Stored is the storage that a version lies on.
type Stored interface {
	Answer(ctx context.Context, ask *structs.DataAsk) (*structs.DataReply, error)
}

// Copies are the whole copies of this node.
type Copies interface {
	Hold(project string, digest tree.Digest) (data.Held, error)
}

// Config is what an Exchange needs. Servers and Nodes may be nil: then everything comes
// from the storage, and nothing is handed out.
type Config struct {
	NodeID  string
	Servers Servers
	Nodes   Nodes
	Stored  Stored
	Copies  Copies
	// Rate is how many bytes per second the node sends to others, and takes from them, at
	// most; 0: neither.
	Rate   int64
	Window int // pieces under way where no other node takes part; 0: windowAlone
	Now    func() time.Time
	Log    *slog.Logger
}

// Wanted is a version that an allocation of this node uses.
type Wanted struct {
	AllocID string
	Place   structs.DataPlace
}

func (w *Wanted) key() key { return key{w.Place.Project, tree.Digest(w.Place.Digest)} }

// key names a version as copies are named.
type key struct {
	project string
	digest  tree.Digest
}

// Brought says where a copy came from.
type Brought struct {
	FromStorage, FromNodes int64    // bytes
	Nodes                  int      // that sent some of it
	Liars                  []string // names of nodes that sent something else, for people
}

// Exchange brings copies to the node, and hands what it has to other nodes. Any goroutine
// may use it.
type Exchange struct {
	config   Config
	out, in  *bucket
	sending  chan struct{} // one for each piece on its way out
	judging  chan struct{} // one for each question to a server
	sent     atomic.Int64
	received atomic.Int64
	stored   atomic.Int64
	refused  atomic.Int64

	mu struct {
		sync.Mutex
		making  map[key]*making
		judged  map[judged]time.Time // until which a node may read
		refused map[string]time.Time // by node: until when it is not judged again
		serving map[string]int       // pieces on their way, by node
		held    []*held              // the one used last is the last
	}
}

// making is a copy in the making, as others see it.
type making struct {
	allocID string
	pieces  *pieces
	text    []byte
	root    *os.Root

	mu struct {
		sync.Mutex
		have  bits
		count int
	}
	strangers chan struct{} // somebody asked who is not known
	known     sync.Map      // by node id
}

// New makes the exchange of a node.
func New(config Config) *Exchange {
	if config.Window <= 0 {
		config.Window = windowAlone
	}
	e := &Exchange{config: config, sending: make(chan struct{}, servedMax), judging: make(chan struct{}, judgedAtOnce)}
	e.out, e.in = newBucket(config.Rate), newBucket(config.Rate)
	e.mu.making, e.mu.judged = make(map[key]*making), make(map[judged]time.Time)
	e.mu.refused, e.mu.serving = make(map[string]time.Time), make(map[string]int)
	return e
}

// Traffic is what an exchange has moved since the agent started, in bytes, and how often
// it refused a node.
type Traffic struct{ Sent, Received, Stored, Refused int64 }

// Traffic returns what was moved so far.
func (e *Exchange) Traffic() Traffic {
	return Traffic{e.sent.Load(), e.received.Load(), e.stored.Load(), e.refused.Load()}
}

// open reports whether the node takes part.
func (e *Exchange) open() bool {
	return e.config.Servers != nil && e.config.Nodes != nil && e.config.Rate > 0
}

// peers asks a server who else has a version.
func (e *Exchange) peers(ctx context.Context, w *Wanted) ([]structs.StagingPeer, error) {
	if !e.open() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	reply, err := e.config.Servers.Peers(ctx, &structs.StagingPeersAsk{AllocID: w.AllocID, Project: w.Place.Project, Digest: w.Place.Digest})
	if err != nil {
		return nil, err
	}
	return reply.Peers[:min(len(reply.Peers), structs.StagingPeersMax)], nil
}

// Manifest returns the encoded manifest of a version, from another node or the storage.
func (e *Exchange) Manifest(ctx context.Context, w *Wanted) ([]byte, error) {
	peers, err := e.peers(ctx, w)
	if err != nil {
		e.config.Log.Debug("no other node is asked for data", "error", err)
	}
	for i := range peers[:min(len(peers), manifestPeers)] {
		text, err := gather(func(offset int64) ([]byte, int64, error) {
			ask := &structs.StagingAsk{What: structs.StagingManifest, AllocID: w.AllocID, Project: w.Place.Project, Digest: w.Place.Digest, Offset: offset}
			ctx, cancel := context.WithTimeout(ctx, pieceTimeout)
			defer cancel()
			reply, err := e.config.Nodes.Ask(ctx, &peers[i], ask)
			if err != nil {
				return nil, 0, err
			}
			return reply.Data, reply.Total, nil
		})
		if err == nil && tree.DigestOf(text) == w.key().digest {
			return text, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return gather(func(offset int64) ([]byte, int64, error) {
		reply, err := e.config.Stored.Answer(ctx, &structs.DataAsk{What: structs.DataAskList, Place: w.Place, Offset: offset})
		if err != nil {
			return nil, 0, err
		}
		return reply.Data, reply.Total, nil
	})
}

// gather reads a manifest part by part.
func gather(part func(offset int64) (text []byte, total int64, err error)) (all []byte, err error) {
	for {
		text, total, err := part(int64(len(all)))
		if err != nil {
			return nil, err
		}
		if total > tree.ManifestSizeMax || len(text) == 0 && int64(len(all)) < total {
			return nil, errors.New("the manifest is not whole")
		}
		if all = append(all, text...); int64(len(all)) >= total {
			return all, nil
		}
	}
}

// enter makes a copy in the making known to others.
func (e *Exchange) enter(w *Wanted, f *data.Filling, p *pieces) (*making, error) {
	root, err := os.OpenRoot(f.Dir())
	if err != nil {
		return nil, fmt.Errorf("copy version %s: %w", w.key().digest.Short(), err)
	}
	m := &making{allocID: w.AllocID, pieces: p, text: f.Text(), root: root, strangers: make(chan struct{}, 1)}
	m.mu.have = newBits(p.count())
	e.mu.Lock()
	defer e.mu.Unlock()
	if before := e.mu.making[w.key()]; before != nil {
		_ = before.root.Close() // nothing was written through it
	}
	e.mu.making[w.key()] = m
	return m, nil
}

// Leave says that a copy is not in the making any more: it is whole, or it failed. Until
// then others read what of it is there.
func (e *Exchange) Leave(w *Wanted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := e.mu.making[w.key()]; m != nil && m.allocID == w.AllocID {
		delete(e.mu.making, w.key())
		_ = m.root.Close() // likewise
	}
}

// got notes a piece that others may have now.
func (m *making) got(piece int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.have.set(piece)
	m.mu.count++
}
