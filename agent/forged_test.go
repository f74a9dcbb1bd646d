package agent

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hashicorp/memberlist"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/wire"
)

// fixedPorts sets ports that an agent has again after a restart.
func fixedPorts(t testing.TB, settings config.Settings) config.Settings {
	t.Helper()
	var ports [2]int
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	settings.Ports = &config.PortsBlock{HTTP: &ports[0], Gossip: &ports[1]}
	return settings
}

// forger is one lie in gossip: a real memberlist that says it is somebody.
type forger struct {
	list *memberlist.Memberlist
}

// forge announces name as a server at rpcAddr with the highest incarnation
// that there is, with what a node knows: the gossip key and the cluster's id.
func forge(t testing.TB, node *Agent, name, rpcAddr string, seeds []string) *forger {
	t.Helper()
	meta, err := wire.Marshal(&gossip.Meta{
		Cluster: node.identity.credentials.Self.Cluster, Role: string(auth.RoleServer), RPCAddr: rpcAddr, Protocol: wire.ProtocolVersion, Name: "forged",
	})
	if err != nil {
		t.Fatal(err)
	}
	config := memberlist.DefaultLocalConfig()
	config.Name, config.Label, config.SecretKey = name, gossip.DefaultLabel, node.identity.gossip.primary()
	config.BindAddr, config.BindPort, config.AdvertiseAddr = "127.0.0.1", 0, "127.0.0.1"
	config.Logger = log.New(io.Discard, "", 0)
	config.Delegate = forgedMeta(meta)
	config.ProbeInterval = time.Hour // a liar does not ask who lives
	list, err := memberlist.Create(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &forger{list: list}
	t.Cleanup(func() { _ = list.Shutdown() })
	incarnation := reflect.ValueOf(list).Elem().FieldByName("incarnation")
	(*atomic.Uint32)(unsafe.Pointer(incarnation.UnsafeAddr())).Store(math.MaxUint32 - 1)
	if err := list.UpdateNode(time.Second); err != nil {
		t.Fatal(err)
	}
	f.spread(seeds)
	return f
}

// spread tells everybody again.
func (f *forger) spread(seeds []string) {
	for _, seed := range seeds {
		_, _ = f.list.Join([]string{seed}) // whoever refuses to hear it has heard it
	}
}

type forgedMeta []byte

func (m forgedMeta) NodeMeta(int) []byte           { return m }
func (forgedMeta) NotifyMsg([]byte)                {}
func (forgedMeta) GetBroadcasts(_, _ int) [][]byte { return nil }
func (forgedMeta) LocalState(bool) []byte          { return nil }
func (forgedMeta) MergeRemoteState([]byte, bool)   {}

// Whoever is root on one node has its gossip key and its certificate. It runs
// real members of gossip that announce all three servers at addresses of its
// own and thirty servers that do not exist, all with the highest incarnation,
// and then says that they have left. The cluster keeps its servers, its leader
// and its writes, also when all servers start again meanwhile.
func TestForgedGossipMovesNobody(t *testing.T) {
	var servers []*Agent
	var settings []config.Settings
	settings = append(settings, fixedPorts(t, serverSettings(t.TempDir(), "server-0", 3, nil)))
	servers = append(servers, startAgent(t, settings[0], testOptions(t)))
	join := readJoin(t, servers[0], joinServer)
	for _, name := range []string{"server-1", "server-2"} {
		settings = append(settings, fixedPorts(t, serverSettings(t.TempDir(), name, 3, &join)))
		servers = append(servers, startAgent(t, settings[len(settings)-1], testOptions(t)))
	}
	joinNode := readJoin(t, servers[0], joinClient)
	node := startAgent(t, clientSettings(t.TempDir(), "client-0", &joinNode), testOptions(t))
	anonymous := clientFor(t, "https://"+servers[0].Addr(), string(servers[0].CA()), "")
	var token *api.NewToken
	eventually.Within(t, time.Minute, "make the first token", func() bool {
		var err error
		token, err = anonymous.BootstrapToken(t.Context(), readJoin(t, servers[0], setupFile))
		return err == nil
	})
	admin := anonymous.WithToken(token.Secret)
	want := peersOf(t, admin, servers)

	// The attack.
	liar := startImpostor(t, node.ident.Load().Certificate)
	var seeds []string
	for _, agent := range append([]*Agent{node}, servers...) {
		seeds = append(seeds, agent.gossip.Addr())
	}
	var forgers []*forger
	for _, server := range servers {
		forgers = append(forgers, forge(t, node, server.ID(), liar.addr, seeds))
	}
	for i := range 30 {
		forgers = append(forgers, forge(t, node, fmt.Sprintf("%032x", 0xbad000+i), liar.addr, seeds))
	}
	again := func() {
		for _, f := range forgers[:3] {
			f.spread(seeds)
		}
	}
	eventually.Within(t, time.Minute, "have the attack heard", func() bool {
		again()
		return liar.calls.Load() > 0 // somebody asked the liar for proof
	})
	writes(t, admin, "under attack", 20, again)
	for _, f := range forgers {
		_ = f.list.Leave(100 * time.Millisecond) // "they are dead", with the highest incarnation
	}
	writes(t, admin, "after they are said to be dead", 20, nil)
	if got := peersOf(t, admin, servers); !samePeers(got, want) {
		t.Fatalf("servers are %+v, were %+v", got, want)
	}
	eventually.Within(t, time.Minute, "be healthy whatever gossip says", func() bool {
		health, err := admin.Autopilot(t.Context())
		return err == nil && health.Healthy && health.FailureTolerance == 1
	})
	if told := liar.told.Load(); told != 0 {
		t.Errorf("the liar was told %d bytes", told)
	}

	// All servers start again, into the same lies.
	for _, agent := range servers {
		stopAgent(t, agent)
	}
	forgers = nil
	for _, server := range servers {
		forgers = append(forgers, forge(t, node, server.ID(), liar.addr, nil))
	}
	for i := range servers {
		settings[i].JoinToken = nil
		servers[i] = startAgent(t, settings[i], testOptions(t))
		again()
	}
	eventually.Within(t, time.Minute, "have a leader again", func() bool {
		_, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
		return err == nil
	})
	writes(t, admin, "after the restart", 20, again)
	if got := peersOf(t, admin, servers); !samePeers(got, want) {
		t.Errorf("servers are %+v, were %+v", got, want)
	}
	eventually.Within(t, time.Minute, "have the node back", node.node.client.Connected)
}

// writes makes changes one after the other, each of which must be accepted, if
// not at once on a busy machine.
func writes(t testing.TB, admin *api.Client, when string, count int, between func()) {
	t.Helper()
	var longest time.Duration
	for range count {
		begin := time.Now()
		eventually.Within(t, time.Minute, "write "+when, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := admin.CreateToken(ctx, api.TokenRequest{Role: "admin"})
			return err == nil
		})
		longest = max(longest, time.Since(begin))
		if between != nil {
			between()
		}
	}
	t.Logf("longest write %s: %s", when, longest)
}

// peersOf waits until Raft has all servers as voters, and returns them.
func peersOf(t testing.TB, admin *api.Client, servers []*Agent) map[string]string {
	t.Helper()
	var peers []consensus.Peer
	eventually.Within(t, time.Minute, "see "+strconv.Itoa(len(servers))+" voters", func() bool {
		list, err := admin.RaftPeers(t.Context())
		if err != nil || len(list.Peers) < len(servers) {
			return false
		}
		peers = nil
		for _, p := range list.Peers {
			peers = append(peers, consensus.Peer{ID: p.ID, Addr: p.Addr, Voter: p.Voter})
		}
		return true
	})
	found := map[string]string{}
	for _, p := range peers {
		found[p.ID] = p.Addr + " " + strconv.FormatBool(p.Voter)
	}
	return found
}

func samePeers(a, b map[string]string) bool { return reflect.DeepEqual(a, b) }
