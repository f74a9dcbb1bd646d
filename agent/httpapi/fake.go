package httpapi

import (
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// FakeReplica is a Replica for tests: a state in memory that commands change at once,
// without Raft, sockets or agents, by a clock that stands until it is set. Jobs are
// admitted, and futures and boards computed, as on a server; nothing is scheduled but
// by Schedule.
type FakeReplica struct {
	*server.Server
	mu struct {
		sync.Mutex
		now     time.Time
		away    error  // what Consistent fails with; nil: there is a leader
		between func() // runs once, before the next guarded command
	}
}

// NewFakeReplica makes a replica of a founded cluster, at a time, whose ids come from
// random. Close ends it.
func NewFakeReplica(now time.Time, random io.Reader) (*FakeReplica, error) {
	return newFakeReplica(server.NewMachine(state.New()), now, random)
}

func newFakeReplica(machine server.Machine, now time.Time, random io.Reader) (*FakeReplica, error) {
	f := new(FakeReplica)
	f.mu.now = now
	opened, err := server.OpenFake(machine, f.Now, random)
	if err != nil {
		return nil, err
	}
	f.Server = opened
	_, _, err = f.Submit(context.Background(), structs.CommandClusterInit, "fake", &structs.ClusterInit{Cluster: structs.Cluster{ID: "fake"}})
	return f, err
}

// Now is the time that was set.
func (f *FakeReplica) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.now
}

// SetNow sets the clock.
func (f *FakeReplica) SetNow(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.now = now
}

// LoseLeader lets the next consistent reads fail, until it is called with nil.
func (f *FakeReplica) LoseLeader(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.away = err
}

// Between has something happen once, between the judgement of the next request and
// its entry in the log.
func (f *FakeReplica) Between(happens func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.between = happens
}

func (f *FakeReplica) meanwhile() {
	f.mu.Lock()
	happens := f.mu.between
	f.mu.between = nil
	f.mu.Unlock()
	if happens != nil {
		happens()
	}
}

// Consistent implements Log.
func (f *FakeReplica) Consistent(ctx context.Context) (*state.Snapshot, error) {
	f.mu.Lock()
	away := f.mu.away
	f.mu.Unlock()
	if away != nil {
		return nil, away
	}
	return f.Server.Consistent(ctx)
}

// SubmitGuarded implements Log.
func (f *FakeReplica) SubmitGuarded(ctx context.Context, guard structs.Guard, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error) {
	f.meanwhile()
	return f.Server.SubmitGuarded(ctx, guard, kind, by, body)
}

// SubmitJob implements Submissions.
func (f *FakeReplica) SubmitJob(ctx context.Context, guard structs.Guard, user, key string, admitted *server.Admitted) (string, uint64, error) {
	f.meanwhile()
	return f.Server.SubmitJob(ctx, guard, user, key, admitted)
}

// Schedule has the scheduler place what can start now, and say why the rest waits.
func (f *FakeReplica) Schedule(ctx context.Context) error {
	for {
		var plan structs.Plan
		err := f.Try(ctx, server.Asker{}, func(board *scheduler.Board) {
			settings := board.Settings()
			settings.Quiet = false
			board.SetSettings(settings)
			plan = board.Pass(structs.At(f.Now()), board.Index())
		})
		if err != nil || len(plan.Gangs)+len(plan.Waits) == 0 {
			return err
		}
		if _, _, err := f.Submit(ctx, structs.CommandPlan, "server", &plan); err != nil || len(plan.Gangs) == 0 {
			return err
		}
	}
}

// FakeMembership is a cluster of one server, for tests.
type FakeMembership struct {
	ID     string
	Left   []string // servers that were taken out
	Oldest int      // version that it speaks in admission; 0 for this one
}

var (
	_ Membership = (*FakeMembership)(nil)
	_ Servers    = (*FakeMembership)(nil)
)

// Peers implements Membership.
func (m *FakeMembership) Peers() []api.RaftPeer {
	return []api.RaftPeer{{ID: m.ID, Voter: true, Leader: true}}
}

// Members implements Membership.
func (m *FakeMembership) Members() []api.Member {
	return []api.Member{{ID: m.ID, Name: m.ID, Role: "server"}}
}

// GossipServers implements Membership.
func (m *FakeMembership) GossipServers() []string { return nil }

// Protocol implements Membership.
func (m *FakeMembership) Protocol() int { return wire.ProtocolVersion }

// Lowest implements Membership.
func (m *FakeMembership) Lowest() (int, string) {
	return cmp.Or(m.Oldest, wire.ProtocolVersion), m.ID
}

// Speaks implements Membership.
func (m *FakeMembership) Speaks(string) int { return wire.ProtocolVersion }

// Join implements Servers.
func (m *FakeMembership) Join(_ context.Context, addresses []string) (int, error) {
	return len(addresses), nil
}

// AppliedIndex implements Servers.
func (m *FakeMembership) AppliedIndex() uint64 { return 1 }

// MayRemove implements Servers: nobody but the one server can be taken out.
func (m *FakeMembership) MayRemove(id string) error {
	if id != m.ID {
		return auth.NotFound("server", id)
	}
	return nil
}

// Remove implements Servers.
func (m *FakeMembership) Remove(_ context.Context, id string) error {
	m.Left = append(m.Left, id)
	return nil
}

// Health implements Servers.
func (m *FakeMembership) Health() api.AutopilotHealth {
	return api.AutopilotHealth{Healthy: true}
}
