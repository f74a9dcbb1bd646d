package consensus

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/eventually"
)

// tcpStream carries raft over plain loopback TCP.
type tcpStream struct{ net.Listener }

func listenTCP(t testing.TB) tcpStream {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return tcpStream{listener}
}

func (tcpStream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", string(addr), timeout)
}

// counter is an FSM that costs nothing.
type counter struct{ ledger }

func (c *counter) Apply(index uint64, _ []byte) any { return index }

// diskCluster starts servers on disks of their own and real sockets, and returns
// them with the leader first.
func diskCluster(t testing.TB, count int) []*Node {
	t.Helper()
	var nodes []*Node
	var peers []Peer
	for range count {
		stream := listenTCP(t)
		node, err := Open(Config{
			ClusterID: "bench",
			Dir:       t.TempDir(),
			Stream:    stream,
			FSM:       &counter{},
			Timings:   DefaultTimings().Scale(2.5),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := node.Shutdown(context.Background(), false); err != nil {
				t.Error(err)
			}
		})
		nodes = append(nodes, node)
		peers = append(peers, Peer{ID: node.ID(), Addr: stream.Addr().String(), Voter: true})
	}
	if err := nodes[0].Bootstrap(peers); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "a leader", func() bool {
		return slices.ContainsFunc(nodes, func(n *Node) bool {
			term, _ := n.leading.establishedTerm()
			return term != 0
		})
	})
	slices.SortStableFunc(nodes, func(a, b *Node) int {
		switch {
		case a.IsLeader():
			return -1
		case b.IsLeader():
			return 1
		}
		return 0
	})
	return nodes
}

// measure runs do b.N times from some goroutines and reports the median and the
// slowest hundredth.
func measure(b *testing.B, concurrent int, do func() error) {
	b.Helper()
	took := make([]time.Duration, b.N)
	var next int
	var mu sync.Mutex
	var workers sync.WaitGroup
	b.ResetTimer()
	for range concurrent {
		workers.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= b.N {
					return
				}
				started := time.Now()
				if err := do(); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(started)
			}
		})
	}
	workers.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50_us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99_us")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func BenchmarkPropose(b *testing.B) {
	command := make([]byte, 512)
	for _, servers := range []int{1, 3} {
		for _, concurrent := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("servers=%d/callers=%d", servers, concurrent), func(b *testing.B) {
				leader := diskCluster(b, servers)[0]
				measure(b, concurrent, func() error {
					_, err := leader.Propose(b.Context(), command)
					return err
				})
			})
		}
	}
}

func BenchmarkReadIndex(b *testing.B) {
	for _, concurrent := range []int{1, 64} {
		b.Run(fmt.Sprintf("servers=3/callers=%d", concurrent), func(b *testing.B) {
			leader := diskCluster(b, 3)[0]
			measure(b, concurrent, func() error {
				_, err := leader.ReadIndex(b.Context())
				return err
			})
		})
	}
}

// BenchmarkFollowerVisible measures from the proposal to its effect on a
// follower: what a client of a server that is not the leader waits for.
func BenchmarkFollowerVisible(b *testing.B) {
	nodes := diskCluster(b, 3)
	measure(b, 1, func() error {
		result, err := nodes[0].Propose(b.Context(), []byte("x"))
		if err != nil {
			return err
		}
		return nodes[1].WaitApplied(b.Context(), result.Index)
	})
}

// BenchmarkOpen measures the start on a long log: every entry is read and
// verified, and those after the snapshot are applied.
func BenchmarkOpen(b *testing.B) {
	for _, entries := range []int{1_000, 40_000} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "raft")
			node, _ := mustOpenAlone(b, dir, nil)
			command := make([]byte, 300)
			var callers sync.WaitGroup
			for range 100 {
				callers.Go(func() {
					for range entries / 100 {
						if _, err := node.Propose(context.Background(), command); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			callers.Wait()
			mustShutdown(b, node)
			for b.Loop() {
				node, _, err := openAlone(b, dir, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				mustShutdown(b, node)
				b.StartTimer()
			}
		})
	}
}
