package agent

import (
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

// A request for a rotation that seemed to fail may take effect, also after another
// one: no key that the log can still name is pushed out by the next.
func TestOffersDoNotPushEachOtherOut(t *testing.T) {
	founder := startAgent(t, serverSettings(t.TempDir(), "server-0", 1, nil), testOptions(t))
	join := readJoin(t, founder, joinServer)
	other := startAgent(t, serverSettings(t.TempDir(), "server-1", 1, &join), testOptions(t))
	waitFor(t, "the other server is one of the log's", func() bool { return len(founder.raft.Peers()) == 2 })
	var cas, keys []string
	for range 3 {
		ca, err := founder.teller.NewCA(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		key, err := founder.teller.NewGossipKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cas, keys = append(cas, ca.To.Fingerprint), append(keys, key)
	}
	for _, agent := range []*Agent{founder, other} {
		stored, err := loadIdentity(agent.DataDir())
		if err != nil {
			t.Fatal(err)
		}
		for n := range cas {
			for _, held := range []*identity{agent.identity, stored} {
				if held.held.Load().key(cas[n]) == nil || held.gossip.find(keys[n]) == nil {
					t.Errorf("%s (stored: %v) has lost what was offered as number %d of %d", agent.config.Name, held == stored, n, len(cas))
				}
			}
		}
	}

	// They are bounded.
	for range offersMax {
		if err := other.identity.offer(make([]byte, gossipKeySize)); err != nil {
			t.Fatal(err)
		}
		if _, err := founder.teller.NewCA(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	if held := other.identity.held.Load(); held.key(cas[0]) != nil || len(held.stored.offers()) != offersMax {
		t.Errorf("%d CAs are kept", len(held.stored.offers()))
	}
}

// A server without the next CA takes the keys of gossip all the same.
func TestGossipKeysComeWithoutTheNextCA(t *testing.T) {
	founder := startAgent(t, serverSettings(t.TempDir(), "server-0", 1, nil), testOptions(t))
	join := readJoin(t, founder, joinServer)
	other := startAgent(t, serverSettings(t.TempDir(), "server-1", 1, &join), testOptions(t))
	waitFor(t, "the other server knows the first", func() bool { return len(other.raft.Peers()) == 2 })
	key, err := founder.teller.NewGossipKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	current := other.identity.gossip.fingerprints()[0]
	cluster := *founder.store.Snapshot().Cluster()
	cluster.ModifyIndex += 1000
	cluster.GossipKey = &structs.KeyState{Current: current, Rotation: &structs.KeyRotation{From: current, To: key, Stage: structs.KeyInstall}}
	ca := caCertificate(other.identity.ca())
	cluster.CA = &structs.CAState{
		Keys:         structs.KeyState{Current: ca.Fingerprint, Rotation: &structs.KeyRotation{From: ca.Fingerprint, To: strings.Repeat("f", 64), Stage: structs.KeyInstall}},
		Certificates: []structs.CACertificate{ca, {Fingerprint: strings.Repeat("f", 64), PEM: ca.PEM}},
	}
	if err := other.keyring.take(t.Context(), &cluster); err == nil {
		t.Error("it says nothing of a CA that it does not have")
	}
	if got := other.identity.gossip.fingerprints(); len(got) != 2 || got[1] != key {
		t.Errorf("it holds the keys %v", got)
	}
}
