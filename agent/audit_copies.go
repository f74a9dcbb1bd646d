package agent

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/audit/journal"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// Bounds of the exchange of audit records.
const (
	auditPartMax  = 1 << 20          // bytes of an answer, about
	auditWait     = 10 * time.Second // that an answer may be held back until there is something
	auditPatience = 5 * time.Second  // for an answer besides
	auditRetry    = time.Second      // after another server did not answer
	auditLook     = time.Second      // how often it is looked who the others are
	auditBreath   = 50 * time.Millisecond
	auditCheckMax = 30 * time.Second // to verify everything on a disk
)

// auditCopies has every server hold the audit records of all: each asks each
// other one for what it lacks, of whatever server, and is answered as soon as
// there is something. What a dead server gave to any of them so comes to all.
type auditCopies struct {
	journal *journal.Journal
	pool    *rpc.Pool
	servers *servers
	life    *lifecycle
	log     *slog.Logger
}

// register declares what servers answer each other about audit records.
func (c *auditCopies) register(s *rpc.Server) {
	rpc.Unary(s, structs.MethodServerAudit, rpc.FromServers, func(ctx context.Context, peer rpc.Peer, ask *structs.AuditAsk) (*structs.AuditTail, error) {
		if c.servers.shuns(peer.Identity) {
			return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
		}
		return c.answer(ctx, peer.ID, ask)
	})
	rpc.Unary(s, structs.MethodServerAuditLook, rpc.FromServers, func(ctx context.Context, peer rpc.Peer, _ *structs.AuditCheckAsk) (*structs.AuditChecked, error) {
		if c.servers.shuns(peer.Identity) {
			return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
		}
		chains, err := c.check(ctx)
		return &structs.AuditChecked{Chains: chains}, err
	})
}

func (c *auditCopies) answer(ctx context.Context, asker string, ask *structs.AuditAsk) (*structs.AuditTail, error) {
	heads := make(map[string]uint64)
	for _, head := range ask.Heads {
		heads[head.Server] = head.Seq
	}
	if !ask.Wait {
		c.journal.Sync() // somebody looks: what was written a moment ago counts
	}
	over := time.NewTimer(auditWait)
	defer over.Stop()
	for {
		changed := c.journal.Changed()
		parts, err := c.journal.Offer(asker, heads, auditPartMax)
		if err != nil {
			return nil, err
		}
		if len(parts) > 0 || !ask.Wait {
			tail := new(structs.AuditTail)
			for _, part := range parts {
				tail.Parts = append(tail.Parts, structs.AuditPart{Server: part.Server, Lines: part.Lines})
			}
			return tail, nil
		}
		select {
		case <-changed:
		case <-over.C:
			return &structs.AuditTail{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.life.stopping:
			return &structs.AuditTail{}, nil
		}
	}
}

// follow fetches what the other servers have for as long as the agent runs.
func (c *auditCopies) follow() {
	c.life.follow(func(ctx context.Context) {
		var all sync.WaitGroup
		defer all.Wait()
		following := make(map[string]context.CancelFunc)
		ticker := time.NewTicker(auditLook)
		defer ticker.Stop()
		for {
			others := c.servers.others()
			for id, stop := range following {
				if !slices.ContainsFunc(others, func(other server.Agent) bool { return other.ID+other.Addr == id }) {
					stop()
					delete(following, id)
				}
			}
			for _, other := range others {
				if following[other.ID+other.Addr] == nil {
					each, stop := context.WithCancel(ctx)
					following[other.ID+other.Addr] = stop
					all.Go(func() { c.followOne(each, other) })
				}
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				for _, stop := range following {
					stop()
				}
				return
			}
		}
	})
}

func (c *auditCopies) followOne(ctx context.Context, other server.Agent) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		next := auditBreath
		offered, taken, err := c.fetch(ctx, other, true)
		if err != nil && ctx.Err() == nil {
			c.log.Debug("another server's audit records were not fetched", logkey.ServerID, other.ID, logkey.Error, err)
		}
		if err != nil || offered && taken == 0 { // what it offers again and again is of no use
			next = auditRetry
		}
		pause.Reset(next)
	}
}

// fetch asks another server for what is not here, and keeps it.
func (c *auditCopies) fetch(ctx context.Context, other server.Agent, wait bool) (offered bool, taken int, err error) {
	ask := &structs.AuditAsk{Wait: wait}
	for id, seq := range c.journal.Heads() {
		ask.Heads = append(ask.Heads, structs.AuditHead{Server: id, Seq: seq})
	}
	slices.SortFunc(ask.Heads, func(x, y structs.AuditHead) int { return cmp.Compare(x.Server, y.Server) })
	limit := auditPatience
	if wait {
		limit += auditWait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.pool.Conn(rpc.Target{Addr: other.Addr, Expect: auth.Expect{Role: auth.RoleServer, ID: other.ID}})
	if err != nil {
		return false, 0, err
	}
	tail, err := rpc.Call[structs.AuditAsk, structs.AuditTail](ctx, conn, structs.MethodServerAudit, ask)
	if err != nil {
		return false, 0, err
	}
	for _, part := range tail.Parts {
		n, err := c.journal.Take(journal.Part{Server: part.Server, Lines: part.Lines})
		if taken += n; err != nil {
			c.log.Warn("audit records of another server were not taken", logkey.ServerID, part.Server, logkey.PeerID, other.ID, logkey.Error, err)
		}
	}
	return len(tail.Parts) > 0, taken, nil
}

// Refresh implements httpapi.AuditRecord.
func (c *auditCopies) Refresh(ctx context.Context) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, auditPatience)
	defer cancel()
	answered := map[string]bool{c.journal.Server(): true}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, other := range c.servers.others() {
		asking.Go(func() {
			for {
				offered, taken, err := c.fetch(ctx, other, false)
				if err == nil {
					mu.Lock()
					answered[other.ID] = true
					mu.Unlock()
				}
				if err != nil || !offered || taken == 0 {
					return
				}
			}
		})
	}
	asking.Wait()
	return answered
}

// Query implements httpapi.AuditRecord.
func (c *auditCopies) Query(ctx context.Context, filter audit.Filter, after string, limit int) (journal.Page, error) {
	return c.journal.Query(ctx, filter, after, limit)
}

// Servers implements httpapi.AuditRecord.
func (c *auditCopies) Servers() []api.AuditServer {
	all := []api.AuditServer{}
	for _, id := range c.journal.Servers() {
		seq, at := c.journal.Last(id)
		all = append(all, api.AuditServer{ID: id, Last: seq, LastAt: at})
	}
	return all
}

// Verify implements httpapi.AuditRecord.
func (c *auditCopies) Verify(ctx context.Context) (chains []structs.AuditChain, away []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, auditCheckMax)
	defer cancel()
	c.Refresh(ctx)
	if chains, err = c.check(ctx); err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, other := range c.servers.others() {
		asking.Go(func() {
			conn, err := c.pool.Conn(rpc.Target{Addr: other.Addr, Expect: auth.Expect{Role: auth.RoleServer, ID: other.ID}})
			var checked *structs.AuditChecked
			if err == nil {
				checked, err = rpc.Call[structs.AuditCheckAsk, structs.AuditChecked](ctx, conn, structs.MethodServerAuditLook, &structs.AuditCheckAsk{})
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				c.log.Debug("another server did not verify its audit records", logkey.ServerID, other.ID, logkey.Error, err)
				away = append(away, other.ID)
				return
			}
			for _, chain := range checked.Chains {
				chain.Holder = other.ID // whatever it says of itself
				chains = append(chains, chain)
			}
		})
	}
	asking.Wait()
	slices.Sort(away)
	return compared(chains), away, nil
}

// compared puts chains in order, the servers' own first, and marks those that are
// as long as others of the same server and end with a line that no fewer disks have
// otherwise.
func compared(chains []structs.AuditChain) []structs.AuditChain {
	slices.SortFunc(chains, func(x, y structs.AuditChain) int {
		return cmp.Or(cmp.Compare(x.Server, y.Server), cmp.Compare(btoi(y.Holder == y.Server), btoi(x.Holder == x.Server)), cmp.Compare(x.Holder, y.Holder))
	})
	type end struct {
		server string
		last   uint64
	}
	held := make(map[end]map[string]int) // disks, by the hash of the last line
	for _, chain := range chains {
		at := end{chain.Server, chain.Last}
		if held[at] == nil {
			held[at] = make(map[string]int)
		}
		held[at][chain.Hash]++
	}
	for i := range chains {
		chain := &chains[i]
		disks := held[end{chain.Server, chain.Last}]
		for hash, count := range disks {
			if hash != chain.Hash && count >= disks[chain.Hash] && chain.Broken == "" {
				chain.Broken, chain.Seq = "copy", chain.Last
			}
		}
	}
	return chains
}

func btoi(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// check verifies what is on this server's disk.
func (c *auditCopies) check(ctx context.Context) ([]structs.AuditChain, error) {
	states, err := c.journal.Check(ctx)
	if err != nil {
		return nil, err
	}
	chains := []structs.AuditChain{}
	for _, state := range states {
		chain := structs.AuditChain{
			Server: state.Server, Holder: c.journal.Server(), First: state.First, Last: state.Last, Hash: state.Hash, At: state.At, Lines: state.Lines, File: state.File,
		}
		if state.Broken != nil {
			chain.Broken, chain.Seq, chain.Line = string(state.Broken.How), state.Broken.Seq, state.Broken.Line
		}
		chains = append(chains, chain)
	}
	return chains, nil
}
