package agent

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// Bounds of what nodes tell of what they have refused.
const (
	refusalsHeld     = 256             // that a node keeps while servers are away
	refusalsPatience = 5 * time.Second // for one server
	refusalsRetry    = 5 * time.Second
	refusalsPer      = time.Minute // in which a server takes
	refusalsSingle   = 30          // of one node as records of their own; the others are counted
	refusalsNodes    = 4096        // nodes that are told apart
	refusalCountMax  = 1 << 20
	reasonMax        = 64 // bytes of the id of a refusal
)

// nodeRefusals keeps what the door of a node's agent has refused, in memory, until a
// server has taken it. Any goroutine may use it.
type nodeRefusals struct {
	pool    *rpc.Pool
	servers func() []string
	now     func() time.Time
	log     *slog.Logger
	more    chan struct{}

	mu struct {
		sync.Mutex
		held []heldRefusal
		lost int // for which there was no room
	}
}

type heldRefusal struct {
	structs.NodeRefusal
	at time.Time
}

var _ front.Recorder = (*nodeRefusals)(nil)

func newNodeRefusals(pool *rpc.Pool, servers func() []string, now func() time.Time, log *slog.Logger) *nodeRefusals {
	return &nodeRefusals{pool: pool, servers: servers, now: now, log: log, more: make(chan struct{}, 1)}
}

// Append implements front.Recorder. What there is no room for is counted.
func (n *nodeRefusals) Append(r audit.Record) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.mu.held) >= refusalsHeld {
		n.mu.lost += max(r.Count, 1)
		return nil
	}
	n.mu.held = append(n.mu.held, heldRefusal{
		structs.NodeRefusal{Request: r.Request, Address: r.Address, Reason: r.Reason, Count: r.Count}, n.now(),
	})
	select {
	case n.more <- struct{}{}:
	default: // it knows
	}
	return nil
}

// run tells servers until ctx ends.
func (n *nodeRefusals) run(ctx context.Context) {
	for {
		select {
		case <-n.more:
		case <-ctx.Done():
			return
		}
		for n.tell(ctx) {
		}
	}
}

// tell has a server take the oldest of them, and reports whether there are more. While
// no server answers it waits.
func (n *nodeRefusals) tell(ctx context.Context) bool {
	n.mu.Lock()
	batch := n.mu.held[:min(len(n.mu.held), structs.NodeRefusalsMax)]
	n.mu.Unlock()
	if len(batch) == 0 {
		return false
	}
	told := &structs.NodeRefusals{}
	for _, one := range batch {
		one.Ago = structs.Duration(n.now().Sub(one.at))
		told.Refusals = append(told.Refusals, one.NodeRefusal)
	}
	for _, addr := range n.servers() {
		if err := n.tellOne(ctx, addr, told); err != nil {
			n.log.Debug("refusals are not told", logkey.Addr, addr, logkey.Error, err)
			continue
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.mu.held = append([]heldRefusal(nil), n.mu.held[len(batch):]...)
		if n.mu.lost > 0 {
			n.mu.held = append(n.mu.held, heldRefusal{structs.NodeRefusal{Count: n.mu.lost}, n.now()})
			n.mu.lost = 0
		}
		return len(n.mu.held) > 0
	}
	timer := time.NewTimer(refusalsRetry)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (n *nodeRefusals) tellOne(ctx context.Context, addr string, told *structs.NodeRefusals) error {
	ctx, cancel := context.WithTimeout(ctx, refusalsPatience)
	defer cancel()
	conn, err := n.pool.Conn(rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer}})
	if err != nil {
		return err
	}
	_, err = rpc.Call[structs.NodeRefusals, structs.NodeRefusalsKept](ctx, conn, structs.MethodServerRefusals, told)
	return err
}

// refusalTaker puts into a server's record what nodes say that they have refused. A node
// cannot say anything else there, nor in the name of another one, nor more often than a
// few lines a minute.
type refusalTaker struct {
	to  front.Recorder
	now func() time.Time

	mu struct {
		sync.Mutex
		tally audit.Tally
	}
}

func newRefusalTaker(to front.Recorder, now func() time.Time) *refusalTaker {
	t := &refusalTaker{to: to, now: now}
	t.mu.tally = audit.Tally{Per: refusalsPer, Single: refusalsSingle, Max: refusalsNodes}
	return t
}

// takeNodeRefusals declares how nodes tell a server what they have refused.
func takeNodeRefusals(r *rpc.Server, to front.Recorder, life *lifecycle) {
	taker := newRefusalTaker(to, time.Now)
	rpc.Unary(r, structs.MethodServerRefusals, rpc.FromClients,
		func(_ context.Context, peer rpc.Peer, told *structs.NodeRefusals) (*structs.NodeRefusalsKept, error) {
			if len(told.Refusals) > structs.NodeRefusalsMax {
				return nil, structs.NewError(structs.CodeTooLarge, "agent.refusals_many", "max", structs.NodeRefusalsMax)
			}
			taker.take(peer.ID, addressOf(peer.Addr), told.Refusals)
			return &structs.NodeRefusalsKept{}, nil
		})
	life.follow(func(ctx context.Context) {
		ticker := time.NewTicker(auditSweepEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				taker.sweep(false)
			case <-ctx.Done():
				return
			}
		}
	})
	life.atStop(func(context.Context) { taker.sweep(true) })
}

// take records what a node says.
func (t *refusalTaker) take(nodeID, addr string, refusals []structs.NodeRefusal) {
	now := structs.At(t.now())
	for i := range refusals {
		one := &refusals[i]
		record := audit.Record{
			Time: now, Request: wordOf(one.Request), Address: addr, Node: nodeID, Said: one.Address, Action: audit.ActionDoor,
			Object: audit.Object{Kind: string(auth.ObjectNode), ID: nodeID}, Outcome: audit.Refused, Reason: wordOf(one.Reason),
			Count: min(max(one.Count, 0), refusalCountMax), Took: max(one.Ago, 0),
		}.Bounded()
		t.mu.Lock()
		single := t.mu.tally.Note(audit.Cause{Address: nodeID, TokenID: nodeID}, record)
		t.mu.Unlock()
		if single {
			_ = t.to.Append(record) // what it cannot keep it logs
		}
	}
}

// sweep records what was only counted so far.
func (t *refusalTaker) sweep(all bool) {
	t.mu.Lock()
	due := t.mu.tally.Due(structs.At(t.now()), all)
	t.mu.Unlock()
	for _, record := range due {
		_ = t.to.Append(record)
	}
}

// wordOf is a text that may be an id, "" for any other.
func wordOf(text string) string {
	if len(text) > reasonMax || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" {
		return ""
	}
	return text
}

// addressOf is the host of an address.
func addressOf(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}
