package consensus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// Peer is one server of the configuration.
type Peer struct {
	ID    string `json:"id"`
	Addr  string `json:"addr"`
	Voter bool   `json:"voter"`
}

func peersOf(configuration raft.Configuration) []Peer {
	peers := make([]Peer, 0, len(configuration.Servers))
	for _, server := range configuration.Servers {
		peers = append(peers, Peer{
			ID:    string(server.ID),
			Addr:  string(server.Address),
			Voter: server.Suffrage == raft.Voter,
		})
	}
	return peers
}

func raftConfiguration(peers []Peer) raft.Configuration {
	var configuration raft.Configuration
	for _, peer := range peers {
		suffrage := raft.Nonvoter
		if peer.Voter {
			suffrage = raft.Voter
		}
		configuration.Servers = append(configuration.Servers, raft.Server{
			Suffrage: suffrage,
			ID:       raft.ServerID(peer.ID),
			Address:  raft.ServerAddress(peer.Addr),
		})
	}
	return configuration
}

// Peers is the newest configuration that this server knows, committed or not.
func (n *Node) Peers() []Peer { return peersOf(n.raft.GetConfiguration().Configuration()) }

// peer finds a server by id.
func (n *Node) peer(id string) (Peer, bool) {
	for _, peer := range n.Peers() {
		if peer.ID == id {
			return peer, true
		}
	}
	return Peer{}, false
}

// isOnlyVoter reports whether this server alone is a quorum.
func (n *Node) isOnlyVoter() bool {
	peers := slices.DeleteFunc(n.Peers(), func(p Peer) bool { return !p.Voter })
	return len(peers) == 1 && peers[0].ID == n.config.ID
}

// Bootstrap makes a new cluster of the given voters, of which this server must
// be one. It is called on one server, once in the life of the cluster; a
// server with state answers ErrAlreadyBootstrapped.
func (n *Node) Bootstrap(peers []Peer) error {
	if err := n.ops.begin(); err != nil {
		return err
	}
	defer n.ops.end()
	for i := range peers {
		if !peers[i].Voter {
			return fmt.Errorf("bootstrap: server %s is no voter", peers[i].ID)
		}
	}
	err := n.raft.BootstrapCluster(raftConfiguration(peers)).Error()
	switch {
	case errors.Is(err, raft.ErrCantBootstrap):
		return ErrAlreadyBootstrapped
	case err != nil:
		return fmt.Errorf("bootstrap: %w", err)
	}
	n.seekElection()
	return nil
}

// AddVoter adds a server whose vote counts from the moment the change is in
// the log, or gives an existing one a new address or a vote. Leader only.
func (n *Node) AddVoter(ctx context.Context, id, addr string) error {
	return n.change(ctx, "add voter", func(timeout time.Duration) (raft.IndexFuture, error) {
		if err := n.checkAddress(id, addr); err != nil {
			return nil, err
		}
		return n.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(addr), 0, timeout), nil
	})
}

// AddNonvoter adds a server that gets the log and has no vote, or gives an
// existing one a new address. Leader only.
func (n *Node) AddNonvoter(ctx context.Context, id, addr string) error {
	return n.change(ctx, "add nonvoter", func(timeout time.Duration) (raft.IndexFuture, error) {
		if err := n.checkAddress(id, addr); err != nil {
			return nil, err
		}
		return n.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(addr), 0, timeout), nil
	})
}

// Promote makes a nonvoter a voter. Leader only. Ask Health first whether it
// has caught up: a voter far behind slows or stops commits.
func (n *Node) Promote(ctx context.Context, id string) error {
	return n.change(ctx, "promote", func(timeout time.Duration) (raft.IndexFuture, error) {
		peer, ok := n.peer(id)
		if !ok {
			return nil, fmt.Errorf("%w: %s", ErrUnknownPeer, id)
		}
		return n.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(peer.Addr), 0, timeout), nil
	})
}

// RemovePeer takes a server out of the configuration, for good: it must not
// come back under its id. Leader only; a leader that removes itself steps down
// once the change is committed.
func (n *Node) RemovePeer(ctx context.Context, id string) error {
	err := n.change(ctx, "remove server", func(timeout time.Duration) (raft.IndexFuture, error) {
		if err := n.MayRemove(id); err != nil {
			return nil, err
		}
		return n.raft.RemoveServer(raft.ServerID(id), 0, timeout), nil
	})
	if err == nil {
		n.gate.forget(raft.ServerID(id))
	}
	return err
}

// MayRemove reports whether a server could be removed: that it is one, and that
// a voter is left without it.
func (n *Node) MayRemove(id string) error {
	peer, ok := n.peer(id)
	if !ok {
		return fmt.Errorf("%w: %s", ErrUnknownPeer, id)
	}
	others := slices.ContainsFunc(n.Peers(), func(p Peer) bool { return p.Voter && p.ID != id })
	if peer.Voter && !others {
		return fmt.Errorf("%w: %s", ErrLastVoter, id)
	}
	return nil
}

// checkAddress refuses an address that another server has: two ids on one
// address would give one disk two votes.
func (n *Node) checkAddress(id, addr string) error {
	if id == "" || addr == "" {
		return errors.New("server id or address is empty")
	}
	for _, peer := range n.Peers() {
		if peer.Addr == addr && peer.ID != id {
			return fmt.Errorf("%w: %s is the address of server %s; remove that server first", ErrAddressInUse, addr, peer.ID)
		}
	}
	return nil
}

// change makes one configuration change, and only one at a time.
func (n *Node) change(ctx context.Context, act string, request func(time.Duration) (raft.IndexFuture, error)) error {
	if !n.IsLeader() {
		return n.notLeader()
	}
	select {
	case n.changes <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", act, ctx.Err())
	case <-n.closing:
		return ErrShutdown
	}
	if err := n.ops.begin(); err != nil {
		<-n.changes
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer n.ops.end()
		defer func() { <-n.changes }()
		done <- n.runChange(ctx, act, request)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: %w: %w", act, ErrOutcomeUnknown, ctx.Err())
	}
}

func (n *Node) runChange(ctx context.Context, act string, request func(time.Duration) (raft.IndexFuture, error)) error {
	// Raft takes no change before the previous one is committed; the timeout
	// keeps this call from waiting in its queue after the caller left.
	timeout := n.config.Timings.IO
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Millisecond)
	}
	future, err := request(timeout)
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	err = future.Error()
	switch {
	case err == nil:
		n.config.Log.Info("configuration changed", "act", act, logkey.Index, future.Index())
		return nil
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%s: the previous change is not committed yet: %w", act, context.DeadlineExceeded)
	}
	n.config.Log.Warn("configuration change is not confirmed", "act", act, logkey.Error, err)
	return n.refusal(act, err)
}
