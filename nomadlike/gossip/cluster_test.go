package gossip

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"
)

const testClusterID = "c0ffee"

func testKey(seed byte) []byte { return bytes.Repeat([]byte{seed}, KeySize) }

// cluster is a network in memory with the members that a test opens.
type cluster struct {
	t       *testing.T
	network *FakeNetwork
	members map[string]*Gossip
	opened  bool
}

func newCluster(t *testing.T) *cluster {
	w := &cluster{t: t, network: NewFakeNetwork(), members: make(map[string]*Gossip)}
	t.Cleanup(func() {
		for _, g := range w.members {
			if err := g.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if w.opened {
			time.Sleep(time.Minute) // virtual: probes under way end by their own timeouts
		}
	})
	return w
}

func hostNamed(number int) string { return fmt.Sprintf("10.0.0.%d", number) }

// config is that of member number: servers come first and have names s1, s2
// and so on, clients n4 and so on.
func (w *cluster) config(number int, role string) Config {
	w.t.Helper()
	transport, err := w.network.Transport(hostNamed(number) + ":4648")
	if err != nil {
		w.t.Fatal(err)
	}
	name := fmt.Sprintf("n%d", number)
	if role == roleServer {
		name = fmt.Sprintf("s%d", number)
	}
	return Config{
		Name:      name,
		Meta:      Meta{Cluster: testClusterID, Role: role, RPCAddr: hostNamed(number) + ":4646", Protocol: 1},
		Key:       testKey(1),
		Logger:    slog.New(slog.DiscardHandler),
		Port:      4648,
		Seeds:     []string{hostNamed(1) + ":4648"},
		Transport: transport,
	}
}

func (w *cluster) open(config Config) *Gossip {
	w.t.Helper()
	g, err := Open(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.members[config.Name] = g
	w.opened = true
	return g
}

// cluster opens servers s1… and clients after them.
func (w *cluster) cluster(servers, clients int) {
	w.t.Helper()
	for number := 1; number <= servers+clients; number++ {
		role := roleServer
		if number > servers {
			role = roleClient
		}
		w.open(w.config(number, role))
	}
}

// within waits in virtual time until condition holds, at most limit, and
// returns how long it took.
func (w *cluster) within(limit time.Duration, what string, condition func() bool) time.Duration {
	w.t.Helper()
	started := time.Now()
	for !condition() {
		if time.Since(started) >= limit {
			for name, g := range w.members {
				w.t.Logf("%s sees %v", name, states(g))
			}
			w.t.Fatalf("%s: not within %s", what, limit)
		}
		time.Sleep(10 * time.Millisecond) // virtual
	}
	return time.Since(started)
}

// states is what a member sees, as text.
func states(g *Gossip) []string {
	var out []string
	for _, m := range g.Members() {
		out = append(out, m.ID+" "+string(m.State))
	}
	return out
}

// allSee reports whether every open member sees exactly want, as "id state".
func (w *cluster) allSee(want ...string) func() bool {
	return func() bool {
		for _, g := range w.members {
			if !slices.Equal(states(g), want) {
				return false
			}
		}
		return true
	}
}

// crash closes a member without a goodbye.
func (w *cluster) crash(name string) {
	w.t.Helper()
	if err := w.members[name].Close(); err != nil {
		w.t.Errorf("close %s: %v", name, err)
	}
	delete(w.members, name)
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}
