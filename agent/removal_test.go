package agent

import (
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// A living server that is removed stays removed, whatever it proves and
// however often it comes back, until an administrator lets it back in. It
// stops by itself and says why.
func TestRemovedServersStayOut(t *testing.T) {
	settings := []config.Settings{fixedPorts(t, serverSettings(t.TempDir(), "server-0", 3, nil))}
	servers := []*Agent{startAgent(t, settings[0], testOptions(t))}
	join := readJoin(t, servers[0], joinServer)
	for _, name := range []string{"server-1", "server-2"} {
		settings = append(settings, fixedPorts(t, serverSettings(t.TempDir(), name, 3, &join)))
		servers = append(servers, startAgent(t, settings[len(settings)-1], testOptions(t)))
	}
	addresses := "https://" + servers[0].Addr() + ",https://" + servers[1].Addr() + ",https://" + servers[2].Addr()
	anonymous := clientFor(t, addresses, string(servers[0].CA()), "")
	var token *api.NewToken
	eventually.Within(t, time.Minute, "make the first token", func() bool {
		var err error
		token, err = anonymous.BootstrapToken(t.Context(), readJoin(t, servers[0], setupFile))
		return err == nil
	})
	admin := anonymous.WithToken(token.Secret)
	peersOf(t, admin, servers)

	removed := servers[0]
	if removed.raft.IsLeader() {
		removed = servers[1]
	}
	at := 0
	if removed == servers[1] {
		at = 1
	}
	id := removed.ID()
	eventually.Within(t, time.Minute, "remove a living server", func() bool {
		_, err := admin.RemoveRaftPeer(t.Context(), id)
		return err == nil || structs.CodeOf(err) == structs.CodeNotFound // a leader that changed meanwhile
	})
	select {
	case err := <-removed.Failed():
		if structs.CodeOf(err) != structs.CodeConflict {
			t.Errorf("it stopped with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the removed server goes on")
	}
	absent := func(when string) {
		t.Helper()
		list, err := admin.RaftPeers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, peer := range list.Peers {
			if peer.ID == id {
				t.Errorf("%s it is a peer again", when)
			}
		}
		if len(list.Removed) != 1 || list.Removed[0].ID != id || list.Removed[0].By == "" {
			t.Errorf("%s the list of removed servers is %+v", when, list.Removed)
		}
	}
	absent("after it stopped")
	stopAgent(t, removed)

	// Started again, it learns it again.
	settings[at].JoinToken = nil
	again := startAgent(t, settings[at], testOptions(t))
	select {
	case <-again.Failed():
	case <-time.After(time.Minute):
		t.Fatal("the removed server goes on after a restart")
	}
	absent("after it came back")
	stopAgent(t, again)

	if _, err := admin.AddRaftPeer(t.Context(), "ffff"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a server that was not removed: %v", err)
	}
	if _, err := admin.AddRaftPeer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	startAgent(t, settings[at], testOptions(t))
	eventually.Within(t, time.Minute, "have it back as a voter", func() bool {
		list, err := admin.RaftPeers(t.Context())
		if err != nil || len(list.Removed) != 0 {
			return false
		}
		for _, peer := range list.Peers {
			if peer.ID == id {
				return peer.Voter
			}
		}
		return false
	})
}
