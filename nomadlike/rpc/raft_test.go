package rpc

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"nomadlike/nomadlike/auth"
)

// logFSM remembers what was applied.
type logFSM struct {
	mu      sync.Mutex
	entries []string
}

func (f *logFSM) Apply(entry *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, string(entry.Data))
	return nil
}

func (f *logFSM) applied() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.entries)
}

func (*logFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, io.ErrUnexpectedEOF }
func (*logFSM) Restore(io.ReadCloser) error         { return io.ErrUnexpectedEOF }

// TestRaftOverTheLayer lets three real Rafts elect, replicate and survive the
// isolation of their leader over our port, in virtual time.
func TestRaftOverTheLayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		network := NewFakeNetwork(0)
		const servers = 3
		var rafts [servers]*raft.Raft
		var machines [servers]*logFSM
		var members raft.Configuration
		host := func(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }
		for i := range servers {
			members.Servers = append(members.Servers, raft.Server{
				ID: raft.ServerID(fmt.Sprintf("s%d", i)), Address: raft.ServerAddress(host(i) + ":4646"),
			})
		}
		for i, member := range members.Servers {
			a := w.onFake(network, host(i), auth.RoleServer, string(member.ID), nil)
			transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
				Stream: a.mux.RaftLayer(a.dialer, nil), MaxPool: 3, MaxRPCsInFlight: 1, Timeout: time.Second,
				Logger: hclog.NewNullLogger(),
			})
			config := raft.DefaultConfig()
			config.LocalID = member.ID
			config.Logger = hclog.NewNullLogger()
			config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = 400*time.Millisecond, 400*time.Millisecond, 300*time.Millisecond
			store := raft.NewInmemStore()
			snapshots := raft.NewInmemSnapshotStore()
			if err := raft.BootstrapCluster(config, store, store, snapshots, transport, members); err != nil {
				t.Fatal(err)
			}
			machines[i] = new(logFSM)
			r, err := raft.NewRaft(config, machines[i], store, store, snapshots, transport)
			if err != nil {
				t.Fatal(err)
			}
			rafts[i] = r
			t.Cleanup(func() {
				if err := r.Shutdown().Error(); err != nil {
					t.Errorf("shut down raft: %v", err)
				}
				if err := transport.Close(); err != nil {
					t.Errorf("close transport: %v", err)
				}
			})
		}
		leader := func(except int) int {
			deadline := time.Now().Add(10 * time.Second)
			for time.Now().Before(deadline) {
				for i, r := range rafts {
					if i != except && r.State() == raft.Leader {
						return i
					}
				}
				time.Sleep(10 * time.Millisecond) // virtual
			}
			t.Fatal("no leader")
			return -1
		}
		first := leader(-1)
		if err := rafts[first].Apply([]byte("one"), time.Second).Error(); err != nil {
			t.Fatal(err)
		}
		network.Isolate(host(first))
		cut := time.Now()
		second := leader(first)
		if err := rafts[second].Apply([]byte("two"), time.Second).Error(); err != nil {
			t.Fatal(err)
		}
		t.Logf("the next write was taken %s after the leader was cut off", time.Since(cut))
		network.Heal()
		time.Sleep(10 * time.Second)
		for i, machine := range machines {
			if got := machine.applied(); !slices.Equal(got, []string{"one", "two"}) {
				t.Errorf("server %d applied %v", i, got)
			}
		}
	})
}
