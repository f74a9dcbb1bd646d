package gossip

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

// notary knows where servers really are, as their certificates would tell.
type notary struct {
	mu    sync.Mutex
	truth map[string]string // id -> RPC address
	asked int
}

func (n *notary) prove(_ context.Context, id, rpcAddr string) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	if n.truth[id] != rpcAddr {
		return 0, errors.New("somebody else answers")
	}
	return 1, nil
}

func (n *notary) set(id, rpcAddr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.truth[id] = rpcAddr
}

// openProving opens servers s1 to s3 that ask the notary.
func openProving(w *cluster) *notary {
	n := &notary{truth: map[string]string{}}
	for number := 1; number <= 3; number++ {
		config := w.config(number, roleServer)
		config.Prove = n.prove
		n.set(config.Name, config.Meta.RPCAddr)
		w.open(config)
	}
	return n
}

// serversOf is what a member believes of servers: id, address, state.
func serversOf(g *Gossip) string {
	lines := map[string]string{}
	for _, m := range g.Members() {
		if m.Meta.Role == roleServer {
			lines[m.ID] = m.ID + "@" + m.Meta.RPCAddr + " " + string(m.State)
		}
	}
	return strings.Join(slices.Sorted(maps.Values(lines)), ", ")
}

const threeServers = "s1@10.0.0.1:4646 alive, s2@10.0.0.2:4646 alive, s3@10.0.0.3:4646 alive"

// Whoever has the gossip key cannot move a server, invent one, take a server's
// name for a node or hide one by saying that it has left.
func TestClaimsAboutServersAreProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		n := openProving(w)
		all := func() bool {
			return serversOf(w.members["s1"]) == threeServers && serversOf(w.members["s2"]) == threeServers && serversOf(w.members["s3"]) == threeServers
		}
		w.within(3*time.Second, "they see each other", all)
		claims := []struct {
			name string
			meta Meta
		}{
			{"s2", Meta{Cluster: testClusterID, Role: roleServer, RPCAddr: "10.0.0.66:4646"}},
			{"s3", Meta{Cluster: testClusterID, Role: roleServer, RPCAddr: "10.0.0.3:4646"}}, // the right address, another host's gossip
			{"s1", Meta{Cluster: testClusterID, Role: roleClient, RPCAddr: "10.0.0.66:4646"}},
			{"x9", Meta{Cluster: testClusterID, Role: roleServer, RPCAddr: "10.0.0.66:4646"}},
		}
		for i, claim := range claims {
			meta, err := claim.meta.encode()
			if err != nil {
				t.Fatal(err)
			}
			liar := rawMember(t, w, 66+i, claim.name, DefaultLabel, testKey(1), meta)
			for range 5 {
				_, _ = liar.Join([]string{"10.0.0.1:4648", "10.0.0.2:4648", "10.0.0.3:4648"})
				time.Sleep(time.Second)
				for name, g := range w.members {
					if got := serversOf(g); got != threeServers {
						t.Fatalf("claim %+v: %s sees %s", claim, name, got)
					}
				}
			}
			_ = liar.Leave(time.Second)
			time.Sleep(2 * proofFresh)
			if !all() {
				t.Fatalf("after %s was said to have left: s1 sees %s", claim.name, serversOf(w.members["s1"]))
			}
		}
		if n.asked == 0 {
			t.Error("nobody asked for proof")
		}
	})
}

// A server that really moved is found at its new address, and one that died is
// seen to be dead.
func TestServersThatMoveAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		n := openProving(w)
		w.within(3*time.Second, "they see each other", func() bool { return serversOf(w.members["s1"]) == threeServers })
		w.crash("s3")
		n.set("s3", "")
		w.within(proofFresh+3*time.Second, "s3 is dead", func() bool {
			return serversOf(w.members["s1"]) == strings.Replace(threeServers, "s3@10.0.0.3:4646 alive", "s3@10.0.0.3:4646 dead", 1)
		})
		moved := w.config(7, roleServer)
		moved.Name, moved.Prove = "s3", n.prove
		n.set("s3", moved.Meta.RPCAddr)
		w.open(moved)
		want := strings.Replace(threeServers, "10.0.0.3", "10.0.0.7", 1)
		w.within(10*time.Second, "s3 is found", func() bool {
			return serversOf(w.members["s1"]) == want && serversOf(w.members["s2"]) == want
		})
	})
}

// Claims cost a bounded amount of memory and of calls, however many come.
func TestClaimsAreBounded(t *testing.T) {
	n := &notary{truth: map[string]string{}}
	p := newProofs("s1", n.prove)
	now := time.Now()
	for i := range 20_000 {
		meta := Meta{Cluster: testClusterID, Role: roleServer, RPCAddr: fmt.Sprintf("10.0.0.1:%d", 1+i)}
		node := &memberlist.Node{Name: fmt.Sprintf("x%d", i), Addr: net.ParseIP("10.0.0.1"), Port: 4648}
		if err := p.admit(node, meta); !errors.Is(err, errUnproven) {
			t.Fatalf("claim %d: %v", i, err)
		}
		p.settle(claim{id: node.Name, addr: "10.0.0.1:4648", rpcAddr: meta.RPCAddr}, 0, errUnproven, now)
	}
	if len(p.mu.waiting) > proofsMax {
		t.Errorf("%d claims wait", len(p.mu.waiting))
	}
	if len(p.mu.refused) > refusedMax || len(p.mu.proven) != 0 {
		t.Errorf("%d refused, %d proven", len(p.mu.refused), len(p.mu.proven))
	}
}

// After a cut of five seconds a healed server is alive again within two, and
// both sides hear each other's gossip again.
func TestHealedServersAreAliveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		n := openProving(w)
		w.within(3*time.Second, "they see each other", func() bool { return serversOf(w.members["s1"]) == threeServers })
		time.Sleep(5 * time.Second)
		w.network.Cut("10.0.0.1", "10.0.0.3")
		w.network.Cut("10.0.0.2", "10.0.0.3")
		for _, id := range []string{"s1", "s2", "s3"} {
			n.set(id, "") // nobody reaches anybody's port across the cut; the notary stands for both sides
		}
		n.set("s2", "10.0.0.2:4646")
		time.Sleep(5 * time.Second)
		if got := w.members["s1"].table.state("s3"); got != StateDead {
			t.Fatalf("after the cut gossip sees s3 %s", got)
		}
		w.network.Heal()
		n.set("s1", "10.0.0.1:4646")
		n.set("s3", "10.0.0.3:4646")
		healed := time.Now()
		w.within(2*time.Second, "all see all", func() bool {
			for _, g := range w.members {
				if serversOf(g) != threeServers {
					return false
				}
			}
			return true
		})
		t.Logf("servers alive %s after the cut was healed", time.Since(healed))
		w.within(4*time.Second, "gossip sees it too", func() bool {
			return w.members["s1"].table.state("s3") == StateAlive && w.members["s3"].table.state("s1") == StateAlive
		})
		t.Logf("gossip whole %s after the cut was healed", time.Since(healed))
	})
}
