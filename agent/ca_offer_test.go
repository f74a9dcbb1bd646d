package agent

import (
	"bytes"
	"crypto/rand"
	"testing"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// Between the stages of a rotation a server that is new gets the CA that is to
// sign: with what it is let in by, or from the leader, which looks at what each
// server says that it has. A node gets it never, nor a server that has it.
func TestNextCAReachesNewServers(t *testing.T) {
	founder := startAgent(t, serverSettings(t.TempDir(), "server-0", 1, nil), testOptions(t))
	joinAsServer, joinAsClient := readJoin(t, founder, joinServer), readJoin(t, founder, joinClient)
	before := startAgent(t, serverSettings(t.TempDir(), "server-1", 1, &joinAsServer), testOptions(t))
	next, err := auth.NewCA(founder.identity.ca().Cluster, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := next.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	if err := founder.identity.offerCA(offeredCA{next.CertificatePEM(), key}); err != nil {
		t.Fatal(err)
	}
	holds := func(agent *Agent) bool {
		stored, err := loadIdentity(agent.DataDir())
		if err != nil {
			t.Fatal(err)
		}
		held := stored.held.Load()
		now := agent.identity.held.Load()
		if (held.stored.Offered != nil) != (now.stored.Offered != nil) {
			t.Errorf("%s has %v and stored %v", agent.config.Name, now.stored.Offered, held.stored.Offered)
		}
		return held.key(next.Fingerprint()) != nil
	}

	// Let in meanwhile.
	after := startAgent(t, serverSettings(t.TempDir(), "server-2", 1, &joinAsServer), testOptions(t))
	if !holds(after) || !bytes.Equal(after.identity.held.Load().stored.Offered.Key, key) {
		t.Error("a server that joins between the stages does not have the next CA")
	}
	node := startAgent(t, clientSettings(t.TempDir(), "client-0", &joinAsClient), testOptions(t))
	if holds(node) {
		t.Error("a node has the key of the next CA")
	}
	if holds(before) {
		t.Fatal("the server of before has it already; the next lines would show nothing")
	}

	// Brought by the leader, but not to a node, nor to one that has it, nor without a rotation.
	rotation := &structs.KeyRotation{To: next.Fingerprint()}
	target := func(agent *Agent, role auth.Role) rpc.Target {
		return rpc.Target{Addr: agent.Addr(), Expect: auth.Expect{ID: agent.ID(), Role: role}}
	}
	founder.teller.bringCA(t.Context(), nil, target(before, auth.RoleServer), toldAgent{})
	founder.teller.bringCA(t.Context(), rotation, target(before, auth.RoleServer), toldAgent{cas: []string{next.Fingerprint()}})
	founder.teller.bringCA(t.Context(), rotation, target(node, auth.RoleClient), toldAgent{})
	if holds(before) || holds(node) {
		t.Error("the next CA was brought to who should not have it")
	}
	founder.teller.bringCA(t.Context(), rotation, target(before, auth.RoleServer), toldAgent{})
	if !holds(before) {
		t.Error("the leader did not bring the next CA to a server that lacks it")
	}
}
