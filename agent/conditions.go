package agent

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// conditions are how the servers do: the others as they said with their proof, this
// one as it finds itself. Its methods may be called from any goroutine.
type conditions struct {
	self   string                          // id
	raft   *atomic.Pointer[consensus.Node] // nil until the log is open
	gossip *gossip.Gossip                  // openGossip sets it
	log    *slog.Logger

	// Servers only; openServer sets them.
	backups  *backups // nil: none are configured
	members  *membership
	store    *state.Store
	proposer *atomic.Pointer[server.Server] // nil until it is open

	mu struct {
		sync.Mutex
		said map[string]rpc.Condition // by id
	}
}

// hear keeps what a server said.
func (c *conditions) hear(id string, said rpc.Condition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.said == nil {
		c.mu.said = make(map[string]rpc.Condition)
	}
	c.mu.said[id] = said
}

// heard returns what a server last said, false where it said nothing: it was not
// reached, or is of a version that does not say it.
func (c *conditions) heard(id string) (rpc.Condition, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	said, ok := c.mu.said[id]
	return said, ok
}

// own is how this server does.
func (c *conditions) own() rpc.Condition {
	own := rpc.Condition{Full: c.full(), Backup: rpc.BackupFine}
	if c.backups != nil {
		own.Backup, own.Reason = c.backups.state()
	}
	return own
}

// full reports whether the log of this agent has no room for entries.
func (c *conditions) full() bool {
	node := c.raft.Load()
	return node != nil && node.DiskFull()
}

// of is how a server of the cluster does, as it says itself.
func (c *conditions) of(id string) rpc.Condition {
	if id == c.self {
		return c.own()
	}
	said, ok := c.heard(id)
	if !ok {
		said.Full = c.gossip.View(id).Meta.Full // servers before version 13 say it there alone
	}
	return said
}

// reported is what the log should know of a server that says of itself how it
// does. What it does not know itself stays as it was.
func reported(known structs.ServerCondition, said rpc.Condition, name string) (structs.ServerReport, bool) {
	now := structs.ServerCondition{ID: known.ID, Name: name, Full: said.Full, Backup: known.Backup}
	switch said.Backup {
	case rpc.BackupFine:
		now.Backup = ""
	case rpc.BackupFailed:
		if now.Backup == "" { // the words of the first failure stay: each try has others
			now.Backup = shortened(said.Reason)
		}
	}
	changed := now.Full != known.Full || (now.Backup == "") != (known.Backup == "")
	return structs.ServerReport{ServerCondition: now}, changed
}

// shortened fits a reason into the log; it is never empty.
func shortened(reason string) string {
	if reason == "" {
		reason = "?"
	}
	return strings.ToValidUTF8(reason[:min(len(reason), structs.ServerConditionText)], "")
}

// tell puts into the log what has changed with the servers, so that
// everybody who watches is told once. It runs on the leader.
func (c *conditions) tell(ctx context.Context) {
	cluster, proposer := c.store.Snapshot().Cluster(), c.proposer.Load()
	if cluster == nil || proposer == nil || c.members.Protocol() < wire.ProtocolConditions { // a server of before would stop at it
		return
	}
	fresh := map[string]bool{c.self: true}
	for _, server := range c.gossip.Proven() {
		fresh[server.ID] = server.Fresh
	}
	names, peers := c.members.names(), make(map[string]bool)
	var reports []structs.ServerReport
	for _, peer := range c.raft.Load().Peers() {
		peers[peer.ID] = true
		if !fresh[peer.ID] {
			continue
		}
		if report, changed := reported(cluster.Condition(peer.ID), c.of(peer.ID), names[peer.ID]); changed {
			reports = append(reports, report)
		}
	}
	for _, known := range cluster.Unwell {
		if !peers[known.ID] {
			reports = append(reports, structs.ServerReport{ServerCondition: structs.ServerCondition{ID: known.ID}, Gone: true})
		}
	}
	for _, report := range reports {
		step, cancel := context.WithTimeout(ctx, changeTimeout)
		_, _, err := proposer.Submit(step, structs.CommandServerReport, c.self, &report)
		cancel()
		if err != nil {
			c.log.Debug("condition of a server is not in the log yet", logkey.PeerID, report.ID, logkey.Error, err)
			return // the next look tries again
		}
	}
}
