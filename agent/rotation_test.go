package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// rotated waits until every agent holds the current key alone, and returns it.
func rotated(t testing.TB, client *api.Client, not string) *api.Keys {
	t.Helper()
	var keys *api.Keys
	eventually.Within(t, time.Minute, "see the key rotated everywhere", func() bool {
		var err error
		keys, err = client.Keys(t.Context(), structs.KeyGossip)
		return err == nil && keys.Settled && keys.Current != not
	})
	return keys
}

// joinsGossip reports whether somebody with a key is answered by an agent's gossip.
func joinsGossip(t testing.TB, agent *Agent, key []byte) bool {
	t.Helper()
	config := memberlist.DefaultLANConfig()
	config.Name, config.Label, config.SecretKey = "stranger", gossip.DefaultLabel, key
	config.BindAddr, config.BindPort, config.LogOutput = "127.0.0.1", 0, &testWriter{t: t}
	list, err := memberlist.Create(config)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Shutdown()
	_, err = list.Join([]string{agent.gossip.Addr()})
	return err == nil
}

// all are the agents of a cluster.
func (c *cluster) all() []*Agent { return append(slices.Clone(c.servers), c.clients...) }

// The key of gossip is replaced everywhere while a job runs through it. Whoever
// knows the old key alone is answered by nobody, a removed node among them, and
// the new one is in no backup.
func TestGossipKeyIsRotated(t *testing.T) {
	c := startCluster(t, 3, 3)
	length := strconv.Itoa(300000 + os.Getpid())
	job := runJob(t, c.api, hello("sleep "+length), structs.JobRunning)
	alloc := allocOf(t, c.api, job.Job.ID)
	victim := c.clients[0]
	if alloc.NodeID == victim.ID() {
		victim = c.clients[1]
	}
	old := victim.identity.gossip.primary()
	for _, agent := range c.all() {
		if !joinsGossip(t, agent, old) {
			t.Fatalf("%s does not answer to its own key", agent.config.Name)
		}
	}
	before, err := c.api.Keys(t.Context(), structs.KeyGossip)
	if err != nil || !before.Settled || before.Current != gossipFingerprint(old) || len(before.Agents) != 6 {
		t.Fatalf("keys before %+v %v", before, err)
	}
	if _, err := c.api.RemoveNode(t.Context(), victim.config.Name); err != nil {
		t.Fatal(err)
	}
	<-victim.Failed()
	begun, err := c.api.RotateKeys(t.Context(), structs.KeyGossip, false)
	if err != nil || begun.Rotation == nil {
		t.Fatalf("rotate %+v %v", begun, err)
	}
	again, err := c.api.RotateKeys(t.Context(), structs.KeyGossip, false) // goes on with the first
	if err != nil || again.Rotation != nil && again.Rotation.To != begun.Rotation.To || again.Rotation == nil && again.Current != begun.Rotation.To {
		t.Fatalf("rotate again %+v %v", again, err)
	}
	after := rotated(t, c.api, before.Current)
	if after.Current != begun.Rotation.To || len(after.Agents) != 5 {
		t.Errorf("keys after %+v", after)
	}
	var fresh []byte
	for _, agent := range c.all() {
		if agent == victim {
			continue
		}
		held := agent.identity.gossip.all()
		if len(held) != 1 || gossipFingerprint(held[0]) != after.Current {
			t.Errorf("%s holds %v", agent.config.Name, agent.identity.gossip.fingerprints())
		}
		fresh = held[0]
		if joinsGossip(t, agent, old) {
			t.Errorf("%s answers to the old key", agent.config.Name)
		}
		if !joinsGossip(t, agent, fresh) {
			t.Errorf("%s does not answer to the new key", agent.config.Name)
		}
		if stored, err := loadIdentity(agent.DataDir()); err != nil || !bytes.Equal(stored.gossip.primary(), fresh) || len(stored.gossip.all()) != 1 {
			t.Errorf("%s stored %v", agent.config.Name, err)
		}
		eventually.Within(t, time.Minute, agent.config.Name+" see the first server alive", func() bool {
			return agent.gossip.View(c.servers[0].ID()).State == gossip.StateAlive
		})
	}
	if victim.identity.gossip.find(after.Current) != nil {
		t.Error("the removed node was given the new key")
	}
	now := allocOf(t, c.api, job.Job.ID)
	if now.ID != alloc.ID || now.Status != structs.AllocRunning || runningSleeps(t, length) != 1 {
		t.Errorf("the job did not run through it: %+v", now)
	}
	var backup bytes.Buffer
	if _, err := c.api.SaveSnapshot(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(backup.Bytes(), fresh) || bytes.Contains(backup.Bytes(), []byte(encodeGossipKey(fresh))) {
		t.Error("the key is in a snapshot")
	}
	// Who joins afterwards gets the new key.
	token, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client"})
	if err != nil {
		t.Fatal(err)
	}
	late := startAgent(t, clientSettings(t.TempDir(), "late", &token.Join), testOptions(t))
	if held := late.identity.gossip.fingerprints(); len(held) != 1 || held[0] != after.Current {
		t.Errorf("a joiner got %v", held)
	}
	if _, err := c.api.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, c.api, job.Job.ID, structs.JobStopped)
}

// startFixed starts three servers and a node at ports that stay theirs, so that
// each can end and come back, and reports whether the node is ready.
func startFixed(t *testing.T) (settings []config.Settings, servers []*Agent, node config.Settings, client *Agent, admin *api.Client, nodeReady func() bool) {
	t.Helper()
	settings = []config.Settings{fixedPorts(t, serverSettings(t.TempDir(), "server-0", 3, nil))}
	servers = []*Agent{startAgent(t, settings[0], testOptions(t))}
	join, joinNode := readJoin(t, servers[0], joinServer), readJoin(t, servers[0], joinClient)
	for _, name := range []string{"server-1", "server-2"} {
		settings = append(settings, fixedPorts(t, serverSettings(t.TempDir(), name, 3, &join)))
		servers = append(servers, startAgent(t, settings[len(settings)-1], testOptions(t)))
	}
	node = fixedPorts(t, clientSettings(t.TempDir(), "client-0", &joinNode))
	client = startAgent(t, node, testOptions(t))
	anonymous := clientFor(t, "https://"+servers[0].Addr()+",https://"+servers[1].Addr()+",https://"+servers[2].Addr(), string(servers[0].CA()), "")
	var token *api.NewToken
	eventually.Within(t, time.Minute, "make the first token", func() bool {
		var err error
		token, err = anonymous.BootstrapToken(t.Context(), readJoin(t, servers[0], setupFile))
		return err == nil
	})
	admin = anonymous.WithToken(token.Secret)
	peersOf(t, admin, servers)
	nodeReady = func() bool {
		nodes, _, err := admin.Nodes(t.Context(), nil)
		return err == nil && len(nodes.Nodes) == 1 && nodes.Nodes[0].Schedulable()
	}
	eventually.Within(t, time.Minute, "see the node ready", nodeReady)
	return settings, servers, node, client, admin, nodeReady
}

// A server and a node that were away while the key was rotated come back with
// the old one and get the new one; a leader that ends in the middle of it is
// followed by one that goes on.
func TestGossipKeyReachesWhoWasAway(t *testing.T) {
	settings, servers, node, client, admin, nodeReady := startFixed(t)

	// The node is away from the start.
	old := gossipFingerprint(client.identity.gossip.primary())
	stopAgent(t, client)
	eventually.Within(t, time.Minute, "miss the node", func() bool { return !nodeReady() })
	var begun *api.Keys
	eventually.Within(t, time.Minute, "begin", func() bool {
		var err error
		begun, err = admin.RotateKeys(t.Context(), structs.KeyGossip, false)
		return err == nil && begun.Rotation != nil
	})
	// The leader ends in the middle, and the next one goes on.
	away := slices.IndexFunc(servers, func(a *Agent) bool { return a.raft.IsLeader() })
	if away < 0 {
		away = 0
	}
	stopAgent(t, servers[away])
	var second *api.Keys
	eventually.Within(t, time.Minute, "begin again at another leader", func() bool {
		var err error
		second, err = admin.RotateKeys(t.Context(), structs.KeyGossip, false)
		return err == nil
	})
	to := second.Current
	if second.Rotation != nil {
		to = second.Rotation.To
	}
	if to != begun.Rotation.To {
		t.Errorf("the second run made another key: %+v", second)
	}
	after := rotated(t, admin, old)
	if after.Current != begun.Rotation.To {
		t.Errorf("rotated to %s, begun with %s", after.Current, begun.Rotation.To)
	}

	// Both come back with what they had.
	settings[away].JoinToken, node.JoinToken = nil, nil
	back := startAgent(t, settings[away], testOptions(t))
	client = startAgent(t, node, testOptions(t))
	for _, agent := range []*Agent{back, client} {
		eventually.Within(t, time.Minute, "have the new key at "+agent.config.Name, func() bool {
			return slices.Equal(agent.identity.gossip.fingerprints(), []string{after.Current})
		})
	}
	eventually.Within(t, time.Minute, "see the node ready again", nodeReady)
	eventually.Within(t, time.Minute, "see all agents hold the key alone", func() bool {
		keys, err := admin.Keys(t.Context(), structs.KeyGossip)
		return err == nil && keys.Settled && len(keys.Agents) == 4
	})
	eventually.Within(t, time.Minute, "hear the node by gossip", func() bool {
		return back.gossip.View(client.ID()).State == gossip.StateAlive
	})
}

// News that are older than what an agent has change nothing: a leader that was
// deposed may still be on its way.
func TestOldNewsOfKeys(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, identityDir), 0o700); err != nil {
		t.Fatal(err)
	}
	key := func(n byte) []byte { return bytes.Repeat([]byte{n}, gossipKeySize) }
	i := &identity{dir: dir}
	i.gossip.keys = [][]byte{key(1)}
	var used [][]byte
	use := func(keys [][]byte) error { used = keys; return nil }
	for _, step := range []struct {
		keys    [][]byte
		index   uint64
		revived structs.UnixNano
		want    []byte
	}{
		{[][]byte{key(1), key(2)}, 10, 0, key(1)},
		{[][]byte{key(2), key(1)}, 20, 0, key(2)},
		{[][]byte{key(1), key(2)}, 10, 0, key(2)}, // late
		{[][]byte{key(2)}, 30, 0, key(2)},
		{[][]byte{key(2), key(1)}, 20, 0, key(2)}, // late
		{[][]byte{key(3)}, 5, 7, key(3)},          // of a state that was brought back: its index began anew
		{[][]byte{key(2)}, 30, 0, key(3)},
	} {
		used = nil
		if err := i.takeGossip(step.keys, step.index, step.revived, use); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(i.gossip.primary(), step.want) {
			t.Errorf("at %d: uses key %d, want %d", step.index, i.gossip.primary()[0], step.want[0])
		}
		again := gossipKeys{}
		if err := again.read(filepath.Join(dir, identityDir), i.gossip.primary()); err != nil || len(again.keys) != len(i.gossip.keys) {
			t.Errorf("at %d: stored %d keys of %d: %v", step.index, len(again.keys), len(i.gossip.keys), err)
		}
	}
	if used != nil {
		t.Error("late news were used")
	}
	if err := i.takeGossip([][]byte{key(1)[:16]}, 99, 99, use); err == nil {
		t.Error("took a short key")
	}
}

// While a node runs a version that cannot take a key, nothing begins, and the
// refusal names it.
func TestRotationWaitsForUpgrades(t *testing.T) {
	c := startCluster(t, 1, 1)
	old := c.clients[0].gossipMeta()
	old.Protocol = wire.ProtocolKeys - 1
	if err := c.clients[0].gossip.UpdateMeta(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "hear of the old version", func() bool {
		return c.servers[0].gossip.View(c.clients[0].ID()).Meta.Protocol == old.Protocol
	})
	_, err := c.api.RotateKeys(t.Context(), structs.KeyGossip, false)
	var told *structs.Error
	if !errors.As(err, &told) || told.ID != "agent.rotation_old" || told.Params["name"] != "client-0" {
		t.Errorf("began with an old node: %v", err)
	}
	keys, err := c.api.Keys(t.Context(), structs.KeyGossip)
	if err != nil || keys.Rotation != nil || !keys.Settled {
		t.Errorf("keys %+v %v", keys, err)
	}
	if _, err := c.api.Keys(t.Context(), "tls"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a kind of key that is not rotated: %v", err)
	}
}
