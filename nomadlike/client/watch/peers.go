package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/structs"
)

// This file looks whether packets between the nodes of a gang are lost: every
// node connects a few times to the agent of the next rank's. A connection that
// takes longer than the first repetition of a lost packet, which comes after a
// second, has lost one. Whose network it is stays open, so nothing is left for
// it; a node that is gone is the servers' to find.

// Bounds of a look at the network between two nodes.
const (
	peerTries    = 8
	peerLossMost = 2 // connections of peerTries that may be lost
	peerPatience = 900 * time.Millisecond
	peerStrikes  = 2 // bad looks in a row until it is told
	peersCheck   = "network between nodes"
)

// checkPeers looks at the network to the node of the next rank.
func (w *watcher) checkPeers(ctx context.Context, a *structs.Assignment, state *patrolState) {
	peer, address := nextPeer(a)
	if address == "" {
		return
	}
	lost, cause := connections(ctx, address)
	if ctx.Err() != nil {
		return
	}
	switch {
	case lost <= peerLossMost:
		if state.lossy {
			w.say(structs.Told{Event: structs.EventPatrolWell})
		}
		state.lossy, state.losses = false, 0
	case !state.lossy:
		if state.losses++; state.losses < peerStrikes {
			return
		}
		state.lossy = true
		w.say(structs.Told{Event: structs.EventPatrolFailed, Severity: "warn", Params: map[string]string{
			"check": peersCheck,
			"cause": fmt.Sprintf("%d of %d connections to %s (%s) were lost: %s", lost, peerTries, peer.NodeName, address, cause),
		}})
	}
}

// nextPeer is the rank on another node that this one looks at, and where the
// agent of that node answers, on the address that ranks use. All ranks
// together look at every node.
func nextPeer(a *structs.Assignment) (peer *structs.Member, address string) {
	for i := range a.Members {
		peer = &a.Members[(a.Alloc.Rank+1+i)%len(a.Members)]
		if _, port, err := net.SplitHostPort(peer.RPCAddr); err == nil && peer.NodeID != a.Alloc.NodeID && peer.Addr != "" {
			return peer, net.JoinHostPort(peer.Addr, port)
		}
	}
	return nil, ""
}

// connections connects to an address, and reports how often that was lost, and
// an error. A refusal is an answer.
func connections(ctx context.Context, address string) (lost int, cause string) {
	dialer := net.Dialer{Timeout: peerPatience}
	results := make(chan error, peerTries)
	for range peerTries {
		go func() { // ends within peerPatience
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err == nil {
				_ = conn.Close() // nothing was said
			}
			results <- err
		}()
	}
	for range peerTries {
		if err := <-results; err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			lost++
			cause = words.Cause(err)
		}
	}
	return lost, cause
}
