package gossip

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/eventually"
)

// Most tests here run in virtual time, on a network in memory.

func TestMembersFindEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(3, 2)
		took := w.within(2*time.Second, "all see all",
			w.allSee("n4 alive", "n5 alive", "s1 alive", "s2 alive", "s3 alive"))
		t.Logf("five members found each other in %s", took)
		var servers []string
		for _, m := range w.members["n5"].Servers() {
			servers = append(servers, m.ID+" "+m.Meta.RPCAddr)
		}
		if diff := cmp.Diff([]string{"s1 10.0.0.1:4646", "s2 10.0.0.2:4646", "s3 10.0.0.3:4646"}, servers); diff != "" {
			t.Error(diff)
		}
		if health := w.members["s1"].Counts(); health != (Counts{}) {
			t.Errorf("a healthy member counts %+v", health)
		}
	})
}

func TestSeedsMayStartLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.open(w.config(2, roleServer)) // its seed, s1, is not up yet
		time.Sleep(20 * time.Second)
		w.open(w.config(1, roleServer))
		took := w.within(rejoinFirstMax+2*rememberInterval, "they find each other", w.allSee("s1 alive", "s2 alive"))
		t.Logf("took %s", took)
	})
}

func TestACrashIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(3, 3)
		w.within(2*time.Second, "all see all", func() bool { return len(w.members["s1"].Members()) == 6 })
		time.Sleep(5 * time.Second)
		w.crash("n5")
		suspected := false
		took := w.within(3*time.Second, "all see n5 dead", func() bool {
			for _, g := range w.members {
				suspected = suspected || g.View("n5").State == StateSuspect
			}
			return w.allSee("n4 alive", "n5 dead", "n6 alive", "s1 alive", "s2 alive", "s3 alive")()
		})
		if !suspected {
			t.Error("nobody suspected it before")
		}
		t.Logf("dead everywhere after %s", took)
		if sighting := w.members["s1"].Witness(t.Context(), "n5"); sighting.Reached || sighting.State != StateDead {
			t.Errorf("a witness says %+v", sighting)
		}
		// It comes back under its name, from another address.
		back := w.config(5, roleClient)
		transport, err := w.network.Transport("10.0.0.55:4648")
		if err != nil {
			t.Fatal(err)
		}
		back.Transport = transport
		time.Sleep(2 * time.Second) // within which a dead member's address is not taken over
		w.open(back)
		w.within(5*time.Second, "all see n5 at its new address", func() bool {
			for _, g := range w.members {
				if m := g.View("n5"); m.State != StateAlive || m.Addr != "10.0.0.55:4648" {
					return false
				}
			}
			return true
		})
	})
}

func TestACutBetweenTwoIsNotADeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(3, 2)
		w.within(2*time.Second, "all see all", func() bool { return len(w.members["s1"].Members()) == 5 })
		w.network.Cut(hostNamed(1), hostNamed(4)) // s1 and n4
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			for name, g := range w.members {
				if state := g.View("n4").State; state == StateDead {
					t.Fatalf("%s sees n4 %s", name, state)
				}
			}
		}
		if sighting := w.members["s1"].Witness(t.Context(), "n4"); sighting.Reached {
			t.Errorf("s1 reaches n4 through a cut: %+v", sighting)
		}
		for _, witness := range []string{"s2", "s3", "n5"} {
			if sighting := w.members[witness].Witness(t.Context(), "n4"); !sighting.Reached || sighting.State != StateAlive {
				t.Errorf("%s says %+v", witness, sighting)
			}
		}
	})
}

func TestWitness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(1, 1)
		w.within(2*time.Second, "they see each other", w.allSee("n2 alive", "s1 alive"))
		g := w.members["s1"]
		if s := g.Witness(t.Context(), "s1"); !s.Reached {
			t.Errorf("itself: %+v", s)
		}
		if s := g.Witness(t.Context(), "n9"); s.Reached || s.State != StateUnknown {
			t.Errorf("a stranger: %+v", s)
		}
		started := time.Now()
		w.network.Cut(hostNamed(1), hostNamed(2))
		if s := g.Witness(t.Context(), "n2"); s.Reached {
			t.Errorf("behind a cut: %+v", s)
		}
		if took := time.Since(started); took != witnessAttempts*100*time.Millisecond {
			t.Errorf("the answer took %s", took)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if s := g.Witness(canceled, "n2"); s.Reached {
			t.Errorf("without time: %+v", s)
		}
	})
}

func TestLeavingIsNotDying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(3, 1)
		w.within(2*time.Second, "all see all", func() bool { return len(w.members["n4"].Members()) == 4 })
		leaver := w.members["s3"]
		delete(w.members, "s3")
		started := time.Now()
		if err := leaver.Leave(soon(t)); err != nil {
			t.Errorf("leave: %v", err)
		}
		t.Logf("left within %s", time.Since(started))
		w.within(time.Second, "all see that s3 left", w.allSee("n4 alive", "s1 alive", "s2 alive", "s3 left"))
		if err := leaver.Leave(t.Context()); err != nil {
			t.Errorf("leave twice: %v", err)
		}
		if _, err := leaver.Join(t.Context(), []string{"10.0.0.1:4648"}); !errors.Is(err, ErrClosed) {
			t.Errorf("join after leaving: %v", err)
		}
		if err := leaver.UpdateMeta(t.Context(), Meta{}); !errors.Is(err, ErrClosed) {
			t.Errorf("update after leaving: %v", err)
		}
		if event, open := <-leaver.Events(); open {
			for open { // what was not read before
				event, open = <-leaver.Events()
			}
			_ = event
		}
		// Nobody looks for it, and after a while nobody remembers it.
		time.Sleep(deadKept + 2*RejoinInterval)
		if !w.allSee("n4 alive", "s1 alive", "s2 alive")() {
			t.Errorf("n4 sees %v", states(w.members["n4"]))
		}
	})
}

func TestMassRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		directory := t.TempDir()
		config := func(number int, role string) Config {
			c := w.config(number, role)
			c.Known = KnownFile(filepath.Join(directory, c.Name))
			return c
		}
		open := func() {
			for number := 1; number <= 6; number++ {
				role := roleServer
				if number > 3 {
					role = roleClient
				}
				c := config(number, role)
				if number == 6 {
					c.Seeds = nil // after the restart it has only what it remembers
					if len(w.members) == 5 {
						if _, err := os.Stat(filepath.Join(directory, c.Name)); err != nil {
							c.Seeds = []string{"10.0.0.1:4648"}
						}
					}
				}
				w.open(c)
			}
		}
		everybody := []string{"n4 alive", "n5 alive", "n6 alive", "s1 alive", "s2 alive", "s3 alive"}
		open()
		w.within(5*time.Second, "all see all", w.allSee(everybody...))
		time.Sleep(2 * rememberInterval)
		for _, name := range []string{"s1", "s2", "s3", "n4", "n5", "n6"} {
			w.crash(name)
		}
		time.Sleep(time.Minute)
		open()
		w.within(time.Second, "n6 remembers whom to call", func() bool { return len(w.members["n6"].Remembered()) == 3 })
		for _, known := range w.members["n6"].Remembered() {
			if want := strings.Replace(known.Addr, ":4648", ":4646", 1); known.RPCAddr != want {
				t.Errorf("%s is remembered at %q, want %q", known.ID, known.RPCAddr, want)
			}
		}
		took := w.within(5*time.Second, "all see all after the restart", w.allSee(everybody...))
		t.Logf("six members were together again after %s", took)
	})
}

// TestSplitForLong lets two halves declare each other dead and forget each
// other's gossip; memberlist alone would never bring them together again.
func TestSplitForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(3, 3)
		everybody := []string{"n4 alive", "n5 alive", "n6 alive", "s1 alive", "s2 alive", "s3 alive"}
		w.within(5*time.Second, "all see all", w.allSee(everybody...))
		time.Sleep(2 * rememberInterval)
		for _, left := range []int{1, 4, 5} {
			for _, right := range []int{2, 3, 6} {
				w.network.Cut(hostNamed(left), hostNamed(right))
			}
		}
		time.Sleep(2 * time.Minute)
		if got := w.members["s1"].View("s2").State; got != StateDead {
			t.Fatalf("after two minutes s1 sees s2 %s", got)
		}
		w.network.Heal()
		took := w.within(RejoinInterval+5*time.Second, "all see all again", w.allSee(everybody...))
		t.Logf("healed after %s", took)
	})
}

func TestEventsMergeAndNeverBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(1, 1)
		w.within(2*time.Second, "they see each other", w.allSee("n2 alive", "s1 alive"))
		// Nobody reads while n2 changes often.
		node := w.members["n2"]
		for version := range 20 {
			meta := w.members["s1"].View("n2").Meta
			meta.Version = strings.Repeat("v", version+1)
			if err := node.UpdateMeta(soon(t), meta); err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		w.crash("n2")
		w.within(3*time.Second, "s1 sees n2 dead", func() bool { return w.members["s1"].View("n2").State == StateDead })
		var seen []Member
		for {
			synctest.Wait()
			select {
			case event := <-w.members["s1"].Events():
				seen = append(seen, event.Member)
				continue
			default:
			}
			break
		}
		last := seen[len(seen)-1]
		if len(seen) > 4 || last.ID != "n2" || last.State != StateDead || last.Meta.Version != strings.Repeat("v", 20) {
			t.Errorf("events: %+v", seen)
		}
	})
}

func TestUpdateMetaSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(3, 0)
		w.within(2*time.Second, "all see all", w.allSee("s1 alive", "s2 alive", "s3 alive"))
		meta := w.members["s2"].View("s2").Meta
		meta.RPCAddr = "10.9.9.9:4646"
		if err := w.members["s2"].UpdateMeta(soon(t), meta); err != nil {
			t.Fatal(err)
		}
		w.within(time.Second, "all see the new address", func() bool {
			for _, g := range w.members {
				if g.View("s2").Meta.RPCAddr != "10.9.9.9:4646" {
					return false
				}
			}
			return true
		})
		for name, bad := range map[string]Meta{
			"another cluster": {Cluster: "beef", Role: roleServer, RPCAddr: "h:1"},
			"no role":         {Cluster: testClusterID, RPCAddr: "h:1"},
			"too large":       {Cluster: testClusterID, Role: roleServer, RPCAddr: "h:1", Version: strings.Repeat("x", MetaSizeMax)},
		} {
			if err := w.members["s2"].UpdateMeta(soon(t), bad); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
	})
}

func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(3, 0)
		everybody := w.allSee("s1 alive", "s2 alive", "s3 alive")
		w.within(2*time.Second, "all see all", everybody)
		for _, keys := range [][][]byte{{testKey(1), testKey(2)}, {testKey(2), testKey(1)}, {testKey(2)}} {
			for _, name := range []string{"s1", "s2", "s3"} {
				if err := w.members[name].SetKeys(keys); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				time.Sleep(time.Second)
				if !everybody() {
					t.Fatalf("%s lost somebody: %v", name, states(w.members[name]))
				}
			}
		}
		for _, g := range w.members {
			if counts := g.Counts(); counts.Refused != 0 {
				t.Errorf("packets were lost on the way: %+v", counts)
			}
		}
		for name, bad := range map[string][][]byte{"no key": nil, "a short key": {testKey(2), []byte("short")}} {
			if err := w.members["s1"].SetKeys(bad); err == nil {
				t.Errorf("took %s", name)
			}
		}
		// One in the middle goes, and the others stay.
		g := w.members["s1"]
		for _, keys := range [][][]byte{{testKey(2), testKey(3), testKey(4)}, {testKey(2), testKey(4)}} {
			if err := g.SetKeys(keys); err != nil {
				t.Fatal(err)
			}
			if held := g.keys.GetKeys(); !slices.EqualFunc(held, keys, bytes.Equal) {
				t.Errorf("holds %d keys after it was given %d", len(held), len(keys))
			}
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	w := newCluster(t)
	good := w.config(1, roleServer)
	for name, change := range map[string]func(*Config){
		"no name":         func(c *Config) { c.Name = "" },
		"name with space": func(c *Config) { c.Name = "a b" },
		"no key":          func(c *Config) { c.Key = nil },
		"short key":       func(c *Config) { c.Key = c.Key[:16] },
		"no logger":       func(c *Config) { c.Logger = nil },
		"negative scale":  func(c *Config) { c.Scale = -1 },
		"no cluster":      func(c *Config) { c.Meta.Cluster = "" },
		"no role":         func(c *Config) { c.Meta.Role = "king" },
		"no port":         func(c *Config) { c.Meta.RPCAddr = "host" },
		"large metadata":  func(c *Config) { c.Meta.Version = strings.Repeat("x", MetaSizeMax) },
		"long label":      func(c *Config) { c.Label = strings.Repeat("x", 300) },
		"too many seeds":  func(c *Config) { c.Seeds = make([]string, seedsMax+1) },
	} {
		config := good
		change(&config)
		if g, err := Open(config); err == nil {
			t.Errorf("%s: opened", name)
			_ = g.Close()
		}
	}
}

func TestOnRealSockets(t *testing.T) {
	open := func(name, role string, seeds ...string) *Gossip {
		g, err := Open(Config{
			Name: name, Key: testKey(1), Seeds: seeds, Port: -1, BindAddr: "127.0.0.1", Scale: 2.5,
			Meta:   Meta{Cluster: testClusterID, Role: role, RPCAddr: "127.0.0.1:4646", Protocol: 1},
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	server := open("s1", roleServer)
	node := open("n1", roleClient, strings.Replace(server.Addr(), "127.0.0.1", "localhost", 1))
	for _, g := range []*Gossip{server, node} {
		eventually.Within(t, time.Minute, "they see each other", func() bool {
			return slices.Equal(states(g), []string{"n1 alive", "s1 alive"})
		})
	}
	if sighting := server.Witness(t.Context(), "n1"); !sighting.Reached || sighting.RTT < 0 {
		t.Errorf("witness: %+v", sighting)
	}
	if err := node.Leave(soon(t)); err != nil {
		t.Errorf("leave: %v", err)
	}
	eventually.Within(t, time.Minute, "the server sees it leave", func() bool { return server.View("n1").State == StateLeft })
	if _, err := server.Join(soon(t), []string{"127.0.0.1:1", "nonsense"}); !errors.Is(err, ErrNobodyAnswered) {
		t.Errorf("join nobody: %v", err)
	}
}

func TestKnownFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "servers.json")
	file := KnownFile(path)
	if servers, err := file.Load(); err != nil || len(servers) != 0 {
		t.Errorf("no file yet: %v, %v", servers, err)
	}
	want := []KnownServer{{"s1", "10.0.0.1:4648", "10.0.0.1:4646", 7}, {ID: "s2", Addr: "10.0.0.2:4648"}}
	for range 2 {
		if err := file.Save(want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := file.Load()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	for name, content := range map[string]string{"torn": `[{"id":"s1",`, "huge": strings.Repeat(" ", knownFileMax+1), "other": `{"a":1}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if servers, err := file.Load(); err == nil {
			t.Errorf("%s: read %v", name, servers)
		}
	}
	if err := KnownFile(filepath.Join(path, "impossible")).Save(want); err == nil {
		t.Error("saved where nothing can be saved")
	}
}

// A server that remembers nobody and has no seeds, whom the others took leave
// of, finds them by the servers that its log names.
func TestAServerFindsThePeersOfItsLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(3, 0)
		w.within(2*time.Second, "all see all", w.allSee("s1 alive", "s2 alive", "s3 alive"))
		founder := w.members["s1"]
		if err := founder.Leave(soon(t)); err != nil {
			t.Fatal(err)
		}
		w.crash("s1")
		w.within(2*time.Second, "s1 left", w.allSee("s1 left", "s2 alive", "s3 alive"))
		config := w.config(1, roleServer)
		config.Seeds = nil
		opened := time.Now().Add(3 * time.Second) // of its log
		config.Peers = func() map[string]string {
			if time.Now().Before(opened) {
				return nil
			}
			return map[string]string{"s1": hostNamed(1) + ":4648", "s2": hostNamed(2) + ":4648", "s3": hostNamed(3) + ":4648"}
		}
		w.open(config)
		w.within(10*time.Second, "all see all again", w.allSee("s1 alive", "s2 alive", "s3 alive"))
	})
}

// A cluster that stops in order, servers first, and comes back finds itself again
// though those that stopped last saw the others leave, and though the log knows a
// port where nobody is: servers are remembered, with the protocol that they told.
func TestAClusterThatStoppedInOrderFindsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		directory := t.TempDir()
		config := func(number int) Config {
			if number == 4 {
				c := w.config(number, roleClient)
				c.Known = KnownFile(filepath.Join(directory, c.Name))
				return c
			}
			c := w.config(number, roleServer)
			c.Known = KnownFile(filepath.Join(directory, c.Name))
			c.Meta.Protocol = 7
			c.Peers = func() map[string]string {
				return map[string]string{"s1": "10.0.0.201:4648", "s2": "10.0.0.202:4648", "s3": "10.0.0.203:4648"}
			}
			return c
		}
		for number := 1; number <= 4; number++ {
			w.open(config(number))
		}
		everybody := []string{"n4 alive", "s1 alive", "s2 alive", "s3 alive"}
		w.within(5*time.Second, "all see all", w.allSee(everybody...))
		time.Sleep(2 * rememberInterval)
		w.network.Cut(hostNamed(1), hostNamed(2)) // so these two remember each other, and both look for one another
		for _, name := range []string{"s1", "s2", "s3", "n4"} {
			if err := w.members[name].Leave(soon(t)); err != nil {
				t.Fatal(err)
			}
			w.crash(name)
			if name != "s1" {
				time.Sleep(2 * rememberInterval) // the third sees both leave, and writes
			}
		}
		w.network.Heal()
		if known, err := KnownFile(filepath.Join(directory, "s3")).Load(); err != nil || len(known) != 2 {
			t.Errorf("s3, the last, remembers %+v %v", known, err)
		}
		for number := 1; number <= 4; number++ {
			c := config(number)
			c.Seeds = nil
			w.open(c)
			if number == 2 { // while the third is still away
				w.within(10*time.Second, "two see each other", w.allSee("s1 alive", "s2 alive"))
				at := slices.IndexFunc(w.members["s2"].Remembered(), func(s KnownServer) bool { return s.ID == "s3" && s.Protocol == 7 })
				if at < 0 {
					t.Errorf("s2 remembers %+v", w.members["s2"].Remembered())
				}
				time.Sleep(3 * time.Second)
			}
		}
		w.within(rejoinFirstMax+2*rememberInterval, "all see all again", w.allSee(everybody...))
	})
}

// A node whose servers are all gone a moment after it met them, and come back
// later, looks for them again and again, though it had joined them once.
func TestANodeFindsServersThatWereAllGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(2, 1)
		w.within(2*time.Second, "all see all", w.allSee("n3 alive", "s1 alive", "s2 alive"))
		for _, name := range []string{"s1", "s2"} {
			if err := w.members[name].Leave(soon(t)); err != nil {
				t.Fatal(err)
			}
			w.crash(name)
		}
		w.within(3*time.Second, "all servers have left", w.allSee("n3 alive", "s1 left", "s2 left"))
		time.Sleep(4 * time.Second)
		for number := 1; number <= 2; number++ {
			config := w.config(number, roleServer)
			config.Seeds = nil // they remember nobody, the node has to find them
			w.open(config)
		}
		w.within(rejoinFirstMax+2*rememberInterval, "the node sees a server again", func() bool {
			return !w.members["n3"].alone()
		})
	})
}
