package httpapi

import (
	"context"
	"io"
	"os"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

const (
	snapshotSizeMax = 64 << 30 // bytes of an uploaded snapshot
	joinAddrsMax    = 16
)

// Membership is what the API reads of the servers of the cluster.
type Membership interface {
	// Peers lists the servers of Raft's configuration.
	Peers() []api.RaftPeer
	// Members lists the agents that gossip knows, with the role that each says of
	// itself.
	Members() []api.Member
	// GossipServers lists where a new agent finds gossip, this agent first.
	GossipServers() []string
	// Protocol is the lowest version that a server of the log speaks.
	Protocol() int
	// Lowest is Protocol as admission of changes sees it, with the server's name.
	Lowest() (protocol int, server string)
	// Speaks is the version that an agent tells in gossip, 0 when it tells none.
	Speaks(id string) int
}

// Servers is what the API changes of them. Its errors are answers.
type Servers interface {
	// Join tells gossip of further addresses, and returns how many answered.
	Join(ctx context.Context, addresses []string) (joined int, err error)
	// AppliedIndex is the newest index of the log that this server has applied.
	AppliedIndex() uint64
	// MayRemove reports why a server cannot be removed; nil when it can.
	MayRemove(id string) error
	// Remove takes a server out of Raft's configuration.
	Remove(ctx context.Context, id string) error
	// Health is how the servers are, as the leader sees them.
	Health() api.AutopilotHealth
}

// Archives makes and takes snapshots of the whole state. Its errors are answers.
type Archives interface {
	// Roomless is the refusal of a snapshot where there is no room for one, or nil.
	Roomless() error
	// SaveSnapshot writes an archive, and returns its index.
	SaveSnapshot(ctx context.Context, to io.Writer) (index uint64, err error)
	// RestoreSnapshot replaces the state by an archive, of another cluster only
	// when foreign is set, and returns the archive's index.
	RestoreSnapshot(ctx context.Context, from io.Reader, foreign bool, revive func(from io.Reader, to io.Writer, until time.Time) error) (index uint64, err error)
	// InspectSnapshot reads an archive through.
	InspectSnapshot(from io.Reader) (api.SnapshotMeta, error)
}

// listMembers answers servers.list.
func (s *handlers) listMembers(r *front.Request) (*api.MemberList, error) {
	snapshot := s.store.Snapshot()
	out := api.MemberList{Members: s.members.Members()}
	for i := range out.Members {
		if member := &out.Members[i]; member.Role == string(auth.RoleServer) && snapshot.Node(member.ID) != nil {
			member.Role = "both"
		}
	}
	return &out, nil
}

func (s *handlers) joinMembers(r *front.Request, body *api.ServersJoinRequest) (*api.ServersJoined, error) {
	addresses := body.Addresses
	if len(addresses) == 0 || len(addresses) > joinAddrsMax {
		return nil, structs.NewError(structs.CodeInvalid, "agent.join_addresses", "max", joinAddrsMax)
	}
	joined, err := s.servers.Join(r.Context(), addresses)
	if err != nil {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.join_failed", "reason", err).Because(err)
	}
	return &api.ServersJoined{Joined: joined}, nil
}

func (s *handlers) listPeers(r *front.Request) (*api.RaftPeerList, error) {
	if _, err := s.replica.Consistent(r.Context()); err != nil {
		return nil, err
	}
	out := api.RaftPeerList{Peers: s.members.Peers(), Index: s.servers.AppliedIndex()}
	if cluster := s.store.Snapshot().Cluster(); cluster != nil {
		out.Removed = cluster.Removed
	}
	return &out, nil
}

// removePeer takes a server out for good: first the log says that it is not to
// come back, so that nobody adds it again, then Raft's configuration changes.
func (s *handlers) removePeer(r *front.Request) (*api.Changed, error) {
	if err := s.servers.MayRemove(r.ID); err != nil {
		return nil, err
	}
	if s.members.Protocol() >= wire.ProtocolRemovals { // in an upgrade, servers of before would stop at the command
		if _, err := s.propose(r, structs.CommandServerRemoval, structs.ServerRemoval{ID: r.ID}); err != nil {
			return nil, err
		}
	}
	if err := s.servers.Remove(r.Context(), r.ID); err != nil {
		return nil, err
	}
	s.log.Warn("server removed by request", logkey.PeerID, r.ID, logkey.User, r.Caller.Principal.ID)
	index := s.servers.AppliedIndex()
	r.SetIndex(index)
	return &api.Changed{Index: index}, nil
}

// addPeer lets a server that was removed back in: autopilot adds it as soon as
// it runs and has proven itself.
func (s *handlers) addPeer(r *front.Request) (*api.Changed, error) {
	if !s.store.Snapshot().Cluster().IsRemoved(r.ID) {
		return nil, structs.NewError(structs.CodeNotFound, "agent.not_removed", "id", r.ID)
	}
	return s.change(r, structs.CommandServerRemoval, structs.ServerRemoval{ID: r.ID, Back: true})
}

func (s *handlers) autopilot(r *front.Request) (*api.AutopilotHealth, error) {
	return answer(s.servers.Health())
}

// saveSnapshot writes an archive to a file first, so that its length is known
// and a reader can tell a whole one from a part.
func (s *handlers) saveSnapshot(r *front.Request) error {
	if err := s.archives.Roomless(); err != nil {
		return err
	}
	spool, err := os.CreateTemp(s.spoolDir, "snapshot-")
	if err != nil {
		return err
	}
	defer func() {
		_ = spool.Close()
		_ = os.Remove(spool.Name())
	}()
	index, err := s.archives.SaveSnapshot(r.Context(), spool)
	if err != nil {
		return err
	}
	size, err := spool.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s.log.Info("snapshot saved by request", logkey.Index, index, logkey.User, r.Caller.Principal.ID)
	h := r.Writer.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="nomadlike.snapshot"`)
	h.Set("Content-Length", formatInt(size))
	r.SetIndex(index)
	_, _ = io.Copy(r.Writer, spool) // a reader that goes away misses bytes of Content-Length
	return nil
}

func (s *handlers) restoreSnapshot(r *front.Request) (*api.Changed, error) {
	q := front.Query{R: r}
	foreign := q.Bool("foreign")
	if q.Err != nil {
		return nil, q.Err
	}
	archived, err := s.archives.RestoreSnapshot(r.Context(), io.LimitReader(r.Body, snapshotSizeMax), foreign, s.revive)
	if err != nil {
		return nil, err
	}
	s.log.Warn("state was replaced by request", logkey.Index, archived, logkey.User, r.Caller.Principal.ID, logkey.TokenID, r.Caller.Token.ID)
	index := s.servers.AppliedIndex()
	r.SetIndex(index)
	return &api.Changed{Index: index}, nil
}

// revive makes the state of an archive fit for this cluster, of whichever it
// was.
func (s *handlers) revive(from io.Reader, to io.Writer, until time.Time) error {
	now := s.store.Snapshot()
	revival := structs.Revival{Now: structs.At(s.now()), Until: structs.At(until), Cluster: now.Cluster()}
	for token := range now.JoinTokens() {
		revival.JoinTokens = append(revival.JoinTokens, *token)
	}
	if err := state.Revive(from, to, revival); err != nil {
		return structs.NewError(structs.CodeInvalid, "agent.snapshot_broken", "reason", err).Because(err)
	}
	return nil
}

func (s *handlers) inspectSnapshot(r *front.Request) (*api.SnapshotMeta, error) {
	meta, err := s.archives.InspectSnapshot(io.LimitReader(r.Body, snapshotSizeMax))
	if err != nil {
		return nil, err
	}
	return &meta, nil
}
