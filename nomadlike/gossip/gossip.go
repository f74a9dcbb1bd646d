package gossip

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"nomadlike/internal/logkey"
)

var (
	errBadName      = errors.New("its name is no agent id")
	errOtherCluster = errors.New("it is in another cluster")
	errRefused      = errors.New("it was removed")
	errTooMany      = errors.New("there are too many members")
	errUnproven     = errors.New("the server has not proven it yet")

	// ErrNobodyAnswered is returned by Join when no address could be joined.
	ErrNobodyAnswered = errors.New("nobody answered")
	// ErrClosed is returned after Leave or Close.
	ErrClosed = errors.New("gossip is closed")
)

// Gossip is this agent's membership. Any goroutine may call its methods.
type Gossip struct {
	logger *slog.Logger
	list   *memberlist.Memberlist
	keys   *memberlist.Keyring
	table  *table
	proofs *proofs // nil where no proofs are asked for
	tap    *logTap
	door   *door
	known  Known
	seeds  []string
	peers  func() map[string]string // may be nil
	addr   string                   // host:port that others reach this agent at

	events  chan Event
	cancel  context.CancelFunc // ends the goroutines below
	running sync.WaitGroup

	mu struct {
		sync.Mutex
		meta       Meta
		closed     bool
		remembered []KnownServer
	}
	leaving sync.Mutex // one Leave, UpdateMeta or Close at a time
}

// Open makes this agent a member: it listens at once and joins the others in
// the background, trying until it reaches one. Close or Leave ends it.
func Open(config Config) (*Gossip, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if _, err := config.Meta.encode(); err != nil {
		return nil, err
	}
	keys, err := memberlist.NewKeyring(nil, config.Key)
	if err != nil {
		return nil, fmt.Errorf("open gossip: %w", err)
	}
	g := &Gossip{
		logger: config.Logger,
		keys:   keys,
		table:  newTable(config.Name, config.Meta.Cluster),
		known:  config.Known,
		seeds:  slices.Clone(config.Seeds),
		peers:  config.Peers,
		events: make(chan Event),
	}
	g.mu.meta = config.Meta
	if config.Prove != nil {
		g.proofs = newProofs(config.Name, config.Prove)
		g.table.proofs = g.proofs
	}
	g.tap = &logTap{logger: config.Logger, suspect: g.table.suspect}
	list := config.listConfig()
	list.Keyring = keys
	list.Logger = log.New(g.tap, "", 0)
	list.Delegate = metaDelegate{g}
	list.Events, list.Alive, list.Ping = g.table, g.table, g.table
	transport := config.Transport
	if transport == nil {
		if transport, err = listen(list); err != nil {
			return nil, fmt.Errorf("open gossip at %s:%d: %w", list.BindAddr, list.BindPort, err)
		}
	}
	g.door = newDoor(transport, func() { g.tap.countRefusal("too many streams") })
	list.Transport = g.door
	g.list, err = memberlist.Create(list)
	if err != nil {
		_ = g.door.Shutdown() // it was never used
		return nil, fmt.Errorf("open gossip at %s:%d: %w", list.BindAddr, list.BindPort, err)
	}
	g.addr = g.list.LocalNode().Address()
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.running.Go(func() { g.deliver(ctx) })
	g.running.Go(func() { g.stayJoined(ctx) })
	if g.proofs != nil {
		g.running.Go(func() { g.proveServers(ctx) })
	}
	return g, nil
}

// metaDelegate hands this agent's metadata to memberlist; nomadlike sends no
// messages of its own through gossip.
type metaDelegate struct{ g *Gossip }

func (d metaDelegate) NodeMeta(int) []byte {
	d.g.mu.Lock()
	meta := d.g.mu.meta
	d.g.mu.Unlock()
	data, err := meta.encode()
	if err != nil {
		d.g.logger.Error("encode own gossip metadata", logkey.Error, err) // Open and UpdateMeta checked it
	}
	return data
}
func (metaDelegate) NotifyMsg([]byte)                {}
func (metaDelegate) GetBroadcasts(_, _ int) [][]byte { return nil }
func (metaDelegate) LocalState(bool) []byte          { return nil }
func (metaDelegate) MergeRemoteState([]byte, bool)   {}

// deliver passes events on; the table holds what nobody has read yet.
func (g *Gossip) deliver(ctx context.Context) {
	defer close(g.events)
	for {
		event, ok := g.table.next()
		if !ok {
			select {
			case <-g.table.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case g.events <- event:
		case <-ctx.Done():
			return
		}
	}
}

// Events reports changed members, this agent included. It has one reader;
// it is closed after Leave and Close. Not reading it costs no memory beyond
// one entry per member.
func (g *Gossip) Events() <-chan Event { return g.events }

// Addr is the host:port at which others reach this agent's gossip.
func (g *Gossip) Addr() string { return g.addr }

// Members are all agents that this one knows, by id, those that are gone for
// less than ten minutes included. The slice is the caller's.
func (g *Gossip) Members() []Member {
	members := g.table.list()
	for i := range members {
		members[i] = g.corrected(members[i])
	}
	return members
}

// Servers are the members with the server role that may be up: alive or
// suspect. Where proofs are asked for, they have proven it. The slice is the
// caller's.
func (g *Gossip) Servers() []Member { return mayBeUp(g.Members()) }

// heard are the servers as memberlist has them.
func (g *Gossip) heard() []Member { return mayBeUp(g.table.list()) }

func mayBeUp(members []Member) []Member {
	return slices.DeleteFunc(members, func(m Member) bool {
		return m.Meta.Role != roleServer || (m.State != StateAlive && m.State != StateSuspect)
	})
}

// View is what this agent believes of a member, without asking anybody.
func (g *Gossip) View(id string) Member {
	member, _, _ := g.table.get(id)
	return g.corrected(member)
}

// corrected replaces what gossip says of a server by what the server itself
// proves: it lives where it answers, whatever others say.
func (g *Gossip) corrected(m Member) Member {
	if g.proofs == nil {
		return m
	}
	server, found := g.proofs.find(m.ID, time.Now())
	if !found {
		return m
	}
	m.Addr, m.Meta.RPCAddr, m.Meta.Role, m.Meta.Protocol = server.Addr, server.RPCAddr, roleServer, server.Protocol
	if m.Meta.Cluster == "" {
		m.Meta.Cluster = g.table.cluster
	}
	if server.Fresh && m.State != StateAlive {
		m.State, m.Since = StateAlive, server.Since
	}
	return m
}

// Sighting is a witness's answer about a member.
type Sighting struct {
	State   State         // as View tells
	Reached bool          // it answered, here and now
	RTT     time.Duration // of the answer
	LastAck time.Time     // of its last answer to this agent's own probes; zero for never
}

// witnessAttempts is how many packets a witness sends before it gives up;
// each waits for the probe timeout (100 ms by default).
const witnessAttempts = 2

// Witness asks a member directly whether it lives, and reports what came back.
// It takes at most witnessAttempts probe timeouts, or until ctx ends.
func (g *Gossip) Witness(ctx context.Context, id string) Sighting {
	member, ack, known := g.table.get(id)
	sighting := Sighting{State: member.State, LastAck: ack}
	if id == g.table.self {
		sighting.Reached = true
		return sighting
	}
	if !known {
		return sighting
	}
	addr, err := net.ResolveUDPAddr("udp", member.Addr)
	if err != nil {
		return sighting
	}
	for range witnessAttempts {
		if ctx.Err() != nil || g.isClosed() {
			break
		}
		if rtt, err := g.list.Ping(id, addr); err == nil {
			g.table.answered(id)
			member, ack, _ = g.table.get(id)
			// memberlist starts its clock after sending, so short times may
			// come out negative.
			return Sighting{State: member.State, Reached: true, RTT: max(0, rtt), LastAck: ack}
		}
	}
	return sighting
}

func (g *Gossip) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.closed
}

// Join exchanges all members with the agents at addrs (host:port), by TCP
// and all at once, and returns how many answered. It fails when none did.
// At most joinAddrsMax addresses are tried.
func (g *Gossip) Join(ctx context.Context, addrs []string) (int, error) {
	if g.isClosed() {
		return 0, ErrClosed
	}
	addrs = slices.Compact(slices.Sorted(slices.Values(addrs)))
	addrs = slices.DeleteFunc(addrs, func(addr string) bool { return addr == g.Addr() })
	addrs = addrs[:min(len(addrs), joinAddrsMax)]
	results := make(chan error, len(addrs))
	for _, addr := range addrs {
		if !g.spawn(func() { results <- g.joinOne(ctx, addr) }) {
			return 0, ErrClosed
		}
	}
	var joined int
	var failures []error
	for range addrs {
		select {
		case err := <-results:
			if err == nil {
				joined++
			} else {
				failures = append(failures, err)
			}
		case <-ctx.Done():
			failures = append(failures, ctx.Err())
		}
	}
	if joined == 0 {
		return 0, fmt.Errorf("join %d agents: %w: %w", len(addrs), ErrNobodyAnswered, errors.Join(failures...))
	}
	return joined, nil
}

// spawn runs work in a goroutine that Close waits for, unless it is too late
// for that.
func (g *Gossip) spawn(work func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return false
	}
	g.running.Go(work)
	return true
}

// joinOne resolves names itself: memberlist would ask the DNS for ANY over
// TCP first, which hangs in networks without one.
func (g *Gossip) joinOne(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("join %s: %w", addr, err)
	}
	ips := []string{host}
	if net.ParseIP(host) == nil {
		if ips, err = net.DefaultResolver.LookupHost(ctx, host); err != nil {
			return fmt.Errorf("resolve %s: %w", host, err)
		}
	}
	var failures []error
	for _, ip := range ips {
		if _, err := g.list.Join([]string{net.JoinHostPort(ip, port)}); err == nil {
			return nil
		} else {
			failures = append(failures, err)
		}
	}
	return fmt.Errorf("join %s: %w", addr, errors.Join(failures...))
}

// UpdateMeta changes what this agent tells about itself and waits until it
// was sent to some members, or ctx ends. The cluster cannot change.
func (g *Gossip) UpdateMeta(ctx context.Context, meta Meta) error {
	g.leaving.Lock()
	defer g.leaving.Unlock()
	return g.updateMeta(ctx, meta)
}

func (g *Gossip) updateMeta(ctx context.Context, meta Meta) error {
	if g.isClosed() {
		return ErrClosed
	}
	if meta.Cluster != g.table.cluster {
		return fmt.Errorf("update gossip metadata: %w", errOtherCluster)
	}
	if _, err := meta.encode(); err != nil {
		return err
	}
	g.mu.Lock()
	g.mu.meta = meta
	g.mu.Unlock()
	if err := g.list.UpdateNode(waitOf(ctx)); err != nil {
		return fmt.Errorf("spread gossip metadata: %w", err)
	}
	return nil
}

// spreadMax bounds waits for a broadcast when the context has no deadline.
const spreadMax = 5 * time.Second

func waitOf(ctx context.Context) time.Duration {
	wait := spreadMax
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	return max(wait, time.Nanosecond) // zero would mean forever
}

// Leave says goodbye, so that nobody looks for this agent, and closes. It
// waits for the goodbye to be sent until ctx ends; it closes in any case.
func (g *Gossip) Leave(ctx context.Context) error {
	g.leaving.Lock()
	defer g.leaving.Unlock()
	if g.isClosed() {
		return nil
	}
	g.mu.Lock()
	meta := g.mu.meta
	g.mu.Unlock()
	meta.Leaving = true
	err := g.updateMeta(ctx, meta)
	if leaveErr := g.list.Leave(waitOf(ctx)); leaveErr != nil {
		err = errors.Join(err, fmt.Errorf("leave gossip: %w", leaveErr))
	}
	return errors.Join(err, g.close())
}

// Close ends the membership without a goodbye: to the others this agent
// looks as if it had crashed.
func (g *Gossip) Close() error {
	g.leaving.Lock()
	defer g.leaving.Unlock()
	return g.close()
}

func (g *Gossip) close() error {
	g.mu.Lock()
	closed := g.mu.closed
	g.mu.closed = true
	g.mu.Unlock()
	if closed {
		return nil
	}
	g.cancel()
	err := g.list.Shutdown()
	g.running.Wait()
	if err != nil {
		return fmt.Errorf("close gossip: %w", err)
	}
	return nil
}

// Counts reports how the membership has been doing since Open.
type Counts struct {
	Refused uint64 // packets and streams without the cluster's key, label or id
	Health  int    // 0 is best; higher means that this agent itself is too slow
}

// Counts reports how the membership has been doing.
func (g *Gossip) Counts() Counts {
	return Counts{Refused: g.tap.refused.Load(), Health: g.list.GetHealthScore()}
}
