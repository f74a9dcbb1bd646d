package gossip

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"nomadlike/internal/logkey"
)

// stayJoined finds the cluster and does not lose it: at first it tries seeds
// and remembered servers in quick succession until one answers, afterwards
// it joins those again that should be there and are not.
func (g *Gossip) stayJoined(ctx context.Context) {
	known := g.load()
	g.setRemembered(known)
	var (
		remembered uint64 // table.serverChanges that known reflects
		next       time.Time
		wait       = rejoinFirst
		joined     bool
		settleAt   time.Time // when to exchange members once more; zero for never
	)
	for {
		if changes := g.table.serverChanges(); changes != remembered {
			remembered = changes
			known = g.remember(known)
			if joined && g.alone() { // all servers are gone at once: look for them as at the start
				joined, wait, next = false, rejoinFirst, time.Now().Add(rejoinFirst)
			}
		}
		if now := time.Now(); !now.Before(next) {
			if left := g.table.prune(now); len(left) > 0 {
				known = g.forget(known, left)
			}
			// Nobody missing: all is well, or this is the cluster's first agent.
			missing, complete := g.missing(known)
			if len(missing) > 0 && g.rejoin(ctx, missing) {
				joined = true
				settleAt = time.Now().Add(settleDelay)
			}
			// Servers are few, and need each other at once: they go on looking for
			// those of the log in quick succession.
			if (joined || len(missing) == 0 && complete) && (g.peers == nil || len(missing) == 0) {
				wait = RejoinInterval
			}
			next = time.Now().Add(wait)
			wait = min(wait*3/2, rejoinFirstMax)
		}
		if !settleAt.IsZero() && !time.Now().Before(settleAt) {
			settleAt = time.Time{}
			g.settle(ctx)
		}
		select {
		case <-ctx.Done():
			g.remember(known) // a member met a moment ago is known at the next start
			return
		case <-time.After(min(rememberInterval, max(0, time.Until(next)))):
		}
	}
}

// settle exchanges members with one server once more. Of agents that start
// at the same moment, one may miss the news of another, which was spread
// before anybody knew of the first; otherwise it would have to wait for the
// next regular exchange. Large clusters rather wait: there the exchange is
// dear, and seldom do all start at once.
func (g *Gossip) settle(ctx context.Context) {
	servers := slices.DeleteFunc(g.heard(), func(m Member) bool { return m.ID == g.table.self })
	if len(servers) == 0 || len(g.Members()) > settleMembersMax {
		return
	}
	g.rejoin(ctx, []string{servers[rand.IntN(len(servers))].Addr})
}

// rejoin tries a few of addrs, picked at random, and reports whether anybody
// answered. Not all of them: when a whole cluster restarts, each exchange of
// all members loads the servers.
func (g *Gossip) rejoin(ctx context.Context, addrs []string) bool {
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	addrs = addrs[:min(len(addrs), rejoinAddrs)]
	count, err := g.Join(ctx, addrs)
	switch {
	case err == nil:
		g.logger.Info("joined gossip", logkey.Count, count)
	case ctx.Err() == nil:
		g.logger.Debug("join gossip", logkey.Error, err)
	}
	return err == nil
}

// alone reports whether no other server is alive here.
func (g *Gossip) alone() bool {
	return !slices.ContainsFunc(g.heard(), func(m Member) bool { return m.ID != g.table.self && m.State == StateAlive })
}

// missing lists addresses to join: known servers and those of the log that are
// not alive here, and the seeds while no other server is. It reports whether the
// log could be asked.
func (g *Gossip) missing(known []KnownServer) (addrs []string, complete bool) {
	for _, server := range known {
		if server.ID != g.table.self && g.table.state(server.ID) != StateAlive {
			addrs = append(addrs, server.Addr)
		}
	}
	complete = true
	if g.peers != nil {
		peers := g.peers()
		complete = len(peers) > 0
		for id, addr := range peers {
			if id != g.table.self && g.table.state(id) != StateAlive {
				addrs = append(addrs, addr)
			}
		}
	}
	if g.alone() {
		addrs = append(addrs, g.seeds...)
	}
	slices.Sort(addrs)
	addrs = slices.Compact(addrs)
	return slices.DeleteFunc(addrs, func(addr string) bool { return addr == g.Addr() }), complete
}

// load reads the servers of the last run. A broken file is as good as none.
func (g *Gossip) load() []KnownServer {
	if g.known == nil {
		return nil
	}
	servers, err := g.known.Load()
	if err != nil {
		g.logger.Warn("read known servers; going on without", logkey.Error, err)
	}
	return servers[:min(len(servers), knownMax)]
}

// remember brings the list of known servers up to date: those that are members
// stay or come. So do those that are dead, or left: they may have been stopped to
// come back, and an agent that forgot them would start again with nobody to look
// for. See forget.
func (g *Gossip) remember(known []KnownServer) []KnownServer {
	updated := slices.Clone(known)
	for _, member := range g.table.list() {
		if member.ID == g.table.self || member.Meta.Role != roleServer {
			continue
		}
		at := slices.IndexFunc(updated, func(s KnownServer) bool { return s.ID == member.ID })
		told := KnownServer{ID: member.ID, Addr: member.Addr, RPCAddr: member.Meta.RPCAddr, Protocol: g.corrected(member).Meta.Protocol}
		switch {
		case at >= 0:
			if told.Protocol == 0 {
				told.Protocol = updated[at].Protocol
			}
			updated[at] = told
		case len(updated) < knownMax && member.State != StateLeft:
			updated = append(updated, told)
		}
	}
	return g.keep(known, updated)
}

// forget drops known servers that left in order and have stayed away for
// deadKept, but for those of the log, and while another server is alive to ask.
func (g *Gossip) forget(known []KnownServer, left []string) []KnownServer {
	var peers map[string]string
	if g.peers != nil {
		peers = g.peers()
	}
	if g.alone() {
		return known
	}
	return g.keep(known, slices.DeleteFunc(slices.Clone(known), func(s KnownServer) bool {
		_, ofLog := peers[s.ID]
		return !ofLog && slices.Contains(left, s.ID)
	}))
}

// keep writes what is known, if that is news.
func (g *Gossip) keep(known, updated []KnownServer) []KnownServer {
	if slices.Equal(updated, known) {
		return known
	}
	g.setRemembered(updated)
	if g.known != nil {
		if err := g.known.Save(updated); err != nil {
			g.logger.Warn("remember servers", logkey.Error, err)
		}
	}
	return updated
}

// Remembered lists the servers that were members once and did not leave for good,
// those of earlier runs included. The slice is the caller's. Any goroutine may ask.
func (g *Gossip) Remembered() []KnownServer {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.mu.remembered)
}

func (g *Gossip) setRemembered(known []KnownServer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.remembered = slices.Clone(known)
}
