package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

const (
	removedFile = "removed.json"
	// removalGrace is how long the streams of a removed node live on, so that it
	// hears that it was removed and kills what it runs.
	removalGrace = 500 * time.Millisecond
	trustPushes  = 32 // to nodes, at once
	trustTimeout = 5 * time.Second
	trustEvery   = time.Second
)

// removals are the ids of the nodes that were removed, as this agent knows
// them: a server by the log, a node by what the leader tells it.
type removals struct {
	ids  atomic.Pointer[map[string]bool]
	path string // where a node keeps them; "" on servers

	log        *slog.Logger
	life       *lifecycle
	gossip     *gossip.Gossip // set before anything is removed
	disconnect func(role auth.Role, id string) int
}

// openRemovals reads what a node remembers in its data directory; a server follows
// its log.
func openRemovals(dir string, server bool) *removals {
	r := &removals{}
	r.ids.Store(&map[string]bool{})
	if server {
		return r
	}
	r.path = filepath.Join(dir, removedFile)
	var ids []string
	if data, err := os.ReadFile(r.path); err == nil && json.Unmarshal(data, &ids) == nil {
		r.set(ids)
	}
	return r
}

// set replaces the ids and returns those that are new.
func (r *removals) set(ids []string) (fresh []string) {
	before, after := *r.ids.Load(), make(map[string]bool, len(ids))
	for _, id := range ids {
		if after[id] = true; !before[id] {
			fresh = append(fresh, id)
		}
	}
	r.ids.Store(&after)
	return fresh
}

// save is set for a node, which remembers them over a restart.
func (r *removals) save(ids []string) (fresh []string, err error) {
	if known := *r.ids.Load(); len(known) == len(ids) && !slices.ContainsFunc(ids, func(id string) bool { return !known[id] }) {
		return nil, nil
	}
	data, err := json.Marshal(ids)
	if err == nil {
		err = replaceFile(r.path, data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r.set(ids), nil
}

func (r *removals) has(id string) bool { return (*r.ids.Load())[id] }

// refuse says why a client's certificate is worth nothing any more. Servers
// are members by the log's configuration, which has its own removal.
func (r *removals) refuse(who auth.Identity) error {
	if who.Role == auth.RoleClient && r.has(who.ID) {
		return structs.NewError(structs.CodeForbidden, "server.node_removed")
	}
	return nil
}

// shutOut ends what removed nodes have open here.
func (r *removals) shutOut(ids []string, after time.Duration) {
	for _, id := range ids {
		r.gossip.Refuse(id)
		r.log.Warn("node was removed: its certificate is refused", logkey.NodeID, id)
		r.life.run(func() {
			timer := time.NewTimer(after)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-r.life.stopping:
			}
			r.disconnect(auth.RoleClient, id)
		})
	}
}

// follow keeps a server's list as the log has it.
func (r *removals) follow(store *state.Store) {
	r.life.follow(func(ctx context.Context) {
		seen := uint64(0)
		for {
			snapshot, err := store.Block(ctx, func(now *state.Snapshot) (bool, <-chan struct{}) {
				cluster := now.Cluster()
				return cluster != nil && cluster.ModifyIndex != seen, now.WatchCluster()
			})
			if err != nil {
				return
			}
			cluster := snapshot.Cluster()
			seen = cluster.ModifyIndex
			r.shutOut(r.set(removedNodeIDs(cluster)), removalGrace)
		}
	})
}

func removedNodeIDs(cluster *structs.Cluster) []string {
	var ids []string
	for i := range cluster.RemovedNodes {
		ids = append(ids, cluster.RemovedNodes[i].ID)
	}
	return ids
}
