package agent

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// What the HTTP API asks of the membership. Failures of Raft become answers
// for people here, so that no handler knows of the log.

// Peers lists the servers of Raft's configuration.
func (m *membership) Peers() []api.RaftPeer {
	leader, names := m.raft.LeaderID(), m.names()
	peers := []api.RaftPeer{}
	for _, peer := range m.raft.Peers() {
		peers = append(peers, api.RaftPeer{ID: peer.ID, Name: names[peer.ID], Addr: peer.Addr, Voter: peer.Voter, Leader: peer.ID == leader})
	}
	return peers
}

// Members lists the agents that gossip knows, with the role that each says of
// itself.
func (m *membership) Members() []api.Member {
	leader := m.raft.LeaderID()
	members := []api.Member{}
	for _, member := range m.gossip.Members() {
		members = append(members, api.Member{
			ID: member.ID, Name: member.Meta.Name, Role: member.Meta.Role, GossipAddr: member.Addr, RPCAddr: member.Meta.RPCAddr,
			Status: string(member.State), Leader: member.ID == leader, Version: member.Meta.Version, Protocol: member.Meta.Protocol,
			CertificateEndsAt: unixSeconds(member.Meta.CertificateEnds),
		})
	}
	return members
}

// GossipServers lists where a new agent finds gossip, this agent first.
func (m *membership) GossipServers() []string {
	servers := []string{m.gossip.Addr()}
	for _, member := range m.gossip.Servers() {
		if member.Addr != servers[0] {
			servers = append(servers, member.Addr)
		}
	}
	return servers
}

// Speaks is the protocol version that an agent tells in gossip, 0 when it tells
// none.
func (m *membership) Speaks(id string) int { return m.gossip.View(id).Meta.Protocol }

// Join tells gossip of further addresses.
func (m *membership) Join(ctx context.Context, addresses []string) (int, error) {
	return m.gossip.Join(ctx, addresses)
}

// AppliedIndex is the newest index of the log that this server has applied.
func (m *membership) AppliedIndex() uint64 { return m.raft.AppliedIndex() }

// MayRemove reports why a server cannot be removed; nil when it can.
func (m *membership) MayRemove(id string) error { return removalError(m.raft.MayRemove(id), id) }

// Remove takes a server out of Raft's configuration.
func (m *membership) Remove(ctx context.Context, id string) error {
	return removalError(m.raft.RemovePeer(ctx, id), id)
}

func removalError(err error, id string) error {
	switch {
	case errors.Is(err, consensus.ErrUnknownPeer):
		return auth.NotFound("server", id)
	case errors.Is(err, consensus.ErrLastVoter):
		return structs.NewError(structs.CodeConflict, "agent.last_voter", "id", id)
	}
	return raftError(err)
}

// Health is how the servers are, as the leader sees them.
func (m *membership) Health() api.AutopilotHealth {
	views := m.views()
	leader, names := m.raft.LeaderID(), m.names()
	out := api.AutopilotHealth{Healthy: leader != "", FailureTolerance: failureTolerance(views), LeaderID: leader, Servers: []api.ServerHealth{}}
	members := m.Members()
	out.Certificates, out.Versions = endingSoon(members, structs.At(m.now())), versionsOf(members)
	for _, v := range views {
		if v.addr == "" {
			continue
		}
		healthy := v.alive && (v.self || v.heard) && !v.full
		out.Healthy = out.Healthy && healthy
		out.Servers = append(out.Servers, api.ServerHealth{
			RaftPeer: api.RaftPeer{ID: v.id, Name: names[v.id], Addr: v.addr, Voter: v.voter, Leader: v.id == leader},
			Status:   v.status(), Healthy: healthy, DiskFull: v.full, BackupFailed: v.backup,
		})
	}
	return out
}

// Roomless is the refusal of a snapshot, which needs room beside the log of this
// server; nil while there is some.
func (m *membership) Roomless() error {
	if !m.raft.DiskFull() {
		return nil
	}
	return m.roomless().Because(consensus.ErrDiskFull)
}

func (m *membership) roomless() *structs.Error {
	return structs.NewError(structs.CodeUnavailable, "agent.disk_full", "server", m.name, "path", m.dir)
}

// SaveSnapshot writes an archive of what this server has applied, and returns
// its index.
func (m *membership) SaveSnapshot(ctx context.Context, to io.Writer) (index uint64, err error) {
	meta, err := m.raft.SnapshotSave(ctx, to)
	if errors.Is(err, syscall.ENOSPC) {
		return 0, m.roomless().Because(err)
	}
	return meta.Index, raftError(err)
}

// RestoreSnapshot replaces the state of the cluster by an archive, of another
// cluster only when foreign is set, and returns the archive's index.
func (m *membership) RestoreSnapshot(ctx context.Context, from io.Reader, foreign bool, revive func(from io.Reader, to io.Writer, until time.Time) error) (index uint64, err error) {
	meta, err := m.raft.SnapshotRestore(ctx, from, consensus.RestoreOptions{AllowForeign: foreign, Revive: revive})
	return meta.Index, snapshotError(err, meta)
}

// InspectSnapshot reads an archive through and returns what it says of itself.
func (m *membership) InspectSnapshot(from io.Reader) (api.SnapshotMeta, error) {
	inside, body := io.Pipe()
	keys := make(chan []string, 1)
	go func() { // it ends with the archive
		keys <- secretKeysIn(inside)
		_, _ = io.Copy(io.Discard, inside) // what is wrong with it is told by its reader
	}()
	meta, err := consensus.ReadArchive(from, body)
	body.CloseWithError(err)
	return api.SnapshotMeta{
		Cluster: meta.ClusterID, Index: meta.Index, Term: meta.Term, Size: meta.BodyBytes, SHA256: meta.SHA256, TakenAt: structs.At(meta.CreatedAt),
		SecretKeys: <-keys,
	}, snapshotError(err, meta)
}

// secretKeysIn names the servers' keys that the secrets of a stored state need.
func secretKeysIn(stored io.Reader) (names []string) {
	inside := state.New()
	if err := inside.Restore(stored); err != nil {
		return nil
	}
	if ring := inside.Snapshot().SecretKeyring(); ring != nil {
		for i := range ring.Keys {
			names = append(names, ring.Keys[i].ServerKey)
		}
	}
	return names
}

func snapshotError(err error, meta consensus.Meta) error {
	switch {
	case errors.Is(err, consensus.ErrForeignSnapshot):
		return structs.NewError(structs.CodeConflict, "agent.snapshot_foreign", "cluster", meta.ClusterID).Because(err)
	case errors.Is(err, consensus.ErrBadSnapshot):
		return structs.NewError(structs.CodeInvalid, "agent.snapshot_broken", "reason", err).Because(err)
	}
	return raftError(err)
}
