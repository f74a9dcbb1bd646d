package server

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// closedKept is how long a server goes on telling that a node's stream ended.
const closedKept = 10 * time.Second

// heartbeats are when this server last heard each node: when its stream brought
// something.
type heartbeats struct {
	serverID string
	ended    chan struct{} // holds a token when a stream ended: worth telling at once

	mu struct {
		sync.Mutex
		nodes map[string]heard
	}
}

// heard is what is known of one node's stream.
type heard struct {
	incarnation uint64
	at          time.Time
	closed      bool
}

func newHeartbeats(serverID string) *heartbeats {
	h := &heartbeats{serverID: serverID, ended: make(chan struct{}, 1)}
	h.mu.nodes = make(map[string]heard)
	return h
}

// hear notes a sign of life on a stream.
func (h *heartbeats) hear(nodeID string, incarnation uint64) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.nodes[nodeID] = heard{incarnation: incarnation, at: now}
}

// end notes that a node's stream ended and no other has begun here.
func (h *heartbeats) end(nodeID string) {
	h.mu.Lock()
	last, ok := h.mu.nodes[nodeID]
	last.closed = true
	if ok {
		h.mu.nodes[nodeID] = last
	}
	h.mu.Unlock()
	select {
	case h.ended <- struct{}{}:
	default:
	}
}

// report is what the leader is told, by node id. Streams that ended long ago
// are forgotten.
func (h *heartbeats) report() *structs.LivenessReport {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	report := &structs.LivenessReport{ServerID: h.serverID, Nodes: make([]structs.NodeHeartbeat, 0, len(h.mu.nodes))}
	for id, last := range h.mu.nodes {
		silent := now.Sub(last.at)
		if last.closed && silent > closedKept {
			delete(h.mu.nodes, id)
			continue
		}
		report.Nodes = append(report.Nodes, structs.NodeHeartbeat{
			NodeID: id, Incarnation: last.incarnation,
			SilentFor: structs.Duration(silent), Closed: last.closed,
		})
	}
	slices.SortFunc(report.Nodes, func(a, b structs.NodeHeartbeat) int { return strings.Compare(a.NodeID, b.NodeID) })
	return report
}

// reporter tells the leader whom this server hears, and takes what others tell
// while this server leads.
type reporter struct {
	config     *Config
	heartbeats *heartbeats
	contact    *contact
	leader     *leader
}

// run tells the leader, here or elsewhere, whom this server hears:
// at a steady pace, and at once when a stream ends.
func (r *reporter) run(ctx context.Context) {
	every := r.config.Timings.HeartbeatsEvery
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.heartbeats.ended:
		case <-ctx.Done():
			return
		}
		if r.config.Log.LeaderID() == r.config.ID {
			r.contact.made(time.Now())
		}
		report := r.heartbeats.report()
		timer.Reset(patience(every, len(report.Nodes)))
		if len(report.Nodes) == 0 {
			continue
		}
		if watch := r.leader.watch(); watch != nil {
			watch.take(report)
			continue
		}
		r.tell(ctx, report)
	}
}

// tell hands a report to the leader elsewhere, if one is known.
func (r *reporter) tell(ctx context.Context, report *structs.LivenessReport) {
	leader := Agent{ID: r.config.Log.LeaderID(), Addr: r.config.Log.LeaderAddr(), Role: auth.RoleServer}
	if leader.Addr == "" || leader.ID == r.config.ID {
		return
	}
	asked := time.Now()
	once, cancel := context.WithTimeout(ctx, 2*patience(r.config.Timings.HeartbeatsEvery, len(report.Nodes)))
	defer cancel()
	if err := r.config.Peers.Liveness(once, leader, report); err == nil {
		r.contact.made(asked)
	} else if ctx.Err() == nil {
		r.config.Logger.Debug("heartbeats were not reported", logkey.PeerID, leader.ID, logkey.Error, err)
	}
}

// AnswerLiveness answers Leader.Liveness.
func (r *reporter) AnswerLiveness(_ context.Context, report *structs.LivenessReport) (*structs.LivenessAck, error) {
	watch := r.leader.watch()
	if watch == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "server.no_leader")
	}
	watch.take(report)
	return &structs.LivenessAck{}, nil
}
