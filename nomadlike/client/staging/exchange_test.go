package staging

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// cluster is nodes with real copies, a storage that is a directory, and servers that know
// who may read. What passes between them is not sent, but handed over.
type cluster struct {
	t      *testing.T
	dir    string
	m      tree.Manifest
	source *tree.Source
	nodes  map[string]*testNode
	reads  atomic.Int64 // bytes of the storage
	mu     sync.Mutex
	may    map[string]bool // nodes whose allocation uses the version
	away   atomic.Bool     // the storage does not answer
	change func(from string, reply *structs.StagingReply) (*structs.StagingReply, error)
}

type testNode struct {
	id       string
	c        *cluster
	store    *data.Store
	exchange *Exchange
}

func newCluster(t *testing.T, size int, names ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), nodes: make(map[string]*testNode), may: make(map[string]bool)}
	chance := rand.New(rand.NewPCG(3, uint64(size)))
	large := make([]byte, size)
	for i := range large {
		large[i] = byte(chance.Uint32())
	}
	for name, text := range map[string][]byte{"large": large, "none": nil, "sub/a": []byte("one"), "sub/b": []byte("two")} {
		name = filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, _, err := tree.Scan(t.Context(), c.dir, tree.Options{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	c.m = m.Settled()
	if c.source, err = tree.OpenSource(c.dir, c.m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.source.Close() })
	for _, name := range names {
		c.add(name)
	}
	return c
}

func (c *cluster) add(name string) *testNode {
	c.t.Helper()
	store, err := data.Open(data.Config{Dir: c.t.TempDir(), BootID: "b", FreeMin: 0.001})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(store.Close)
	n := &testNode{id: name, c: c, store: store}
	n.exchange = New(Config{
		NodeID: name, Servers: n, Nodes: n, Stored: c, Copies: data.Versions{Store: store}, Rate: 1 << 40, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name], c.may[name] = n, true
	return n
}

// Answer is the storage.
func (c *cluster) Answer(ctx context.Context, ask *structs.DataAsk) (*structs.DataReply, error) {
	if c.away.Load() {
		return nil, errors.New("the storage is away")
	}
	if ask.What == structs.DataAskList {
		text := c.m.Encode()
		return &structs.DataReply{Data: text[ask.Offset:], Total: int64(len(text))}, nil
	}
	reply := new(structs.DataReply)
	for _, chunk := range ask.Chunks {
		text, err := c.source.Read(tree.Chunk{Digest: tree.Digest(chunk.Digest), Size: chunk.Size})
		if err != nil {
			return nil, err
		}
		reply.Data = append(reply.Data, text...)
	}
	c.reads.Add(int64(len(reply.Data)))
	return reply, ctx.Err()
}

// Peers is a server's.
func (n *testNode) Peers(context.Context, *structs.StagingPeersAsk) (*structs.StagingPeers, error) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	reply := new(structs.StagingPeers)
	for name := range n.c.nodes {
		if name != n.id {
			reply.Peers = append(reply.Peers, structs.StagingPeer{NodeID: name, Name: name, Addr: name, Near: true})
		}
	}
	return reply, nil
}

// May is a server's.
func (n *testNode) May(_ context.Context, ask *structs.StagingMayAsk) error {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	if n.c.may[ask.NodeID] && ask.AllocID == "alloc-"+ask.NodeID && ask.Digest == string(n.c.m.Digest()) && ask.Project == "vision" {
		return nil
	}
	return structs.NewError(structs.CodeForbidden, "server.data_not_yours", "alloc", ask.AllocID)
}

// Ask is the way to another node, as its certificate names the one that asks.
func (n *testNode) Ask(ctx context.Context, peer *structs.StagingPeer, ask *structs.StagingAsk) (*structs.StagingReply, error) {
	n.c.mu.Lock()
	other, change := n.c.nodes[peer.NodeID], n.c.change
	n.c.mu.Unlock()
	if other == nil {
		return nil, errors.New("nobody answers")
	}
	reply, err := other.exchange.Answer(ctx, n.id, ask)
	if err == nil && change != nil {
		return change(peer.NodeID, reply)
	}
	return reply, err
}

func (c *cluster) wanted(name string) *Wanted {
	return &Wanted{AllocID: "alloc-" + name, Place: structs.DataPlace{Project: "vision", Name: "d", Digest: string(c.m.Digest())}}
}

// bring has a node get its copy.
func (n *testNode) bring(ctx context.Context) (made data.Copy, brought Brought, err error) {
	w := n.c.wanted(n.id)
	defer n.exchange.Leave(w)
	made, err = data.Versions{Store: n.store}.Prepare(ctx, &data.Version{
		Project: "vision", Digest: n.c.m.Digest(),
		Manifest: func(ctx context.Context) ([]byte, error) { return n.exchange.Manifest(ctx, w) },
		Fill: func(ctx context.Context, f *data.Filling) (err error) {
			brought, err = n.exchange.Bring(ctx, w, f)
			return err
		},
	}, "alloc-"+n.id, func(int64, int64) {})
	return made, brought, err
}

// same compares a copy with the directory.
func (c *cluster) same(made data.Copy) {
	c.t.Helper()
	for _, name := range []string{"large", "none", "sub/a", "sub/b"} {
		want, _ := os.ReadFile(filepath.Join(c.dir, name))
		if got, err := os.ReadFile(filepath.Join(made.Dir, name)); err != nil || !bytes.Equal(got, want) {
			c.t.Errorf("%s of a copy: %v, %d bytes", name, err, len(got))
		}
	}
}

// together has nodes get their copies at the same time.
func (c *cluster) together(names ...string) []Brought {
	c.t.Helper()
	all := make([]Brought, len(names))
	var wait sync.WaitGroup
	for i, name := range names {
		wait.Go(func() {
			made, brought, err := c.nodes[name].bring(c.t.Context())
			if err != nil {
				c.t.Errorf("%s: %v", name, err)
				return
			}
			c.same(made)
			all[i] = brought
		})
	}
	wait.Wait()
	return all
}

// TestExchange: nodes that want a version at the same time read the storage about once
// between them; one that comes later, of the nodes alone, though the storage is away.
func TestExchange(t *testing.T) {
	names := []string{"n0", "n1", "n2", "n3"}
	c := newCluster(t, 24<<20, names...)
	all := c.together(names...)
	for i, b := range all {
		if b.FromNodes == 0 || b.Nodes == 0 || b.FromNodes+b.FromStorage != c.m.Bytes() {
			t.Errorf("%s: %+v", names[i], b)
		}
	}
	if reads := float64(c.reads.Load()) / float64(c.m.Bytes()); reads > 3 { // each alone would read it four times; how often it is, a simulation tells
		t.Errorf("the storage was read %.2f times", reads)
	}
	c.away.Store(true)
	late := c.add("late")
	made, brought, err := late.bring(t.Context())
	if err != nil || brought.FromStorage != 0 || brought.Nodes != 4 {
		t.Fatalf("late: %+v, %v", brought, err)
	}
	c.same(made)
	if moved := late.exchange.Traffic(); moved.Received != c.m.Bytes() || moved.Stored != 0 {
		t.Errorf("moved %+v", moved)
	}

	// Whoever does not use the version gets nothing of it, under whichever allocation.
	late.c.may["stranger"] = false
	for _, alloc := range []string{"alloc-stranger", "alloc-n0"} {
		for _, what := range []string{structs.StagingHave, structs.StagingManifest, structs.StagingRead} {
			reply, err := c.nodes["n1"].exchange.Answer(t.Context(), "stranger", &structs.StagingAsk{What: what, AllocID: alloc, Project: "vision", Digest: string(c.m.Digest())})
			if structs.CodeOf(err) != structs.CodeForbidden && (reply == nil || reply.Busy == 0 || len(reply.Data)+len(reply.Have) > 0) {
				t.Errorf("a stranger asks for %s as %s: %+v, %v", what, alloc, reply, err)
			}
		}
	}
	for _, ask := range []structs.StagingAsk{{What: structs.StagingRead, Piece: -1}, {What: structs.StagingRead, Piece: 1 << 30}, {What: "all"}} {
		ask.AllocID, ask.Project, ask.Digest = "alloc-n0", "vision", string(c.m.Digest())
		if reply, err := c.nodes["n1"].exchange.Answer(t.Context(), "n0", &ask); err == nil {
			t.Errorf("%+v: %+v", ask, reply)
		}
	}
}

// TestExchangeAmongLiars: a node whose bytes are wrong is not asked again, and told of; one
// that dies in the middle costs the copy nothing.
func TestExchangeAmongLiars(t *testing.T) {
	c := newCluster(t, 16<<20, "honest", "liar", "mortal", "asks")
	for _, name := range []string{"honest", "liar", "mortal"} {
		if _, _, err := c.nodes[name].bring(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	answers := 0
	c.change = func(from string, reply *structs.StagingReply) (*structs.StagingReply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case len(reply.Data) == 0:
		case from == "liar":
			reply.Data[len(reply.Data)/2] ^= 1
		case from == "mortal":
			if answers++; answers > 2 {
				delete(c.nodes, from)
				return nil, errors.New("connection refused")
			}
		}
		return reply, nil
	}
	c.away.Store(true)
	made, brought, err := c.nodes["asks"].bring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.same(made)
	if strings.Join(brought.Liars, " ") != "liar" || brought.FromNodes != c.m.Bytes() {
		t.Errorf("%+v", brought)
	}
}

// TestExchangeWithoutOthers: where nobody is known, everything comes from the storage, and
// where that fails its error is the copy's.
func TestExchangeWithoutOthers(t *testing.T) {
	c := newCluster(t, 4<<20, "one")
	c.away.Store(true)
	if _, _, err := c.nodes["one"].bring(t.Context()); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("without a storage: %v", err)
	}
	c.away.Store(false)
	made, brought, err := c.nodes["one"].bring(t.Context())
	if err != nil || brought.FromStorage != c.m.Bytes() {
		t.Fatalf("%+v, %v", brought, err)
	}
	c.same(made)
}

// TestPieces: pieces cover every chunk once, are bounded, and are compared as a whole.
func TestPieces(t *testing.T) {
	c := newCluster(t, 9<<20)
	p := cut(c.m)
	var sum int64
	for i := range p.count() {
		var content []byte
		for _, s := range p.of(i) {
			text, err := c.source.Read(p.chunk(s))
			if err != nil {
				t.Fatal(err)
			}
			content = append(content, text...)
		}
		if int64(len(content)) != p.bytes[i] || !p.whole(i, content) {
			t.Errorf("piece %d is not whole", i)
		}
		content[len(content)-1]++
		if p.whole(i, content) || p.whole(i, content[1:]) {
			t.Errorf("piece %d is whole with other bytes", i)
		}
		sum += p.bytes[i]
	}
	if sum != c.m.Bytes() || p.count() < 4 {
		t.Errorf("%d pieces of %d bytes", p.count(), sum)
	}
	if empty := cut(tree.Manifest{}); empty.count() != 0 {
		t.Errorf("nothing has %d pieces", empty.count())
	}
	var b bits
	if b.has(3) || len(newBits(9)) != 2 {
		t.Error("bits")
	}
}
