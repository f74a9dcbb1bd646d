package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/eventually"
)

// diskServer is one of several servers with directories.
type diskServer struct {
	dir, addr string
	node      *Node
	fsm       *ledger
}

// startOn opens a server on its directory.
func (s *diskServer) startOn(t *testing.T, network *Network) {
	t.Helper()
	s.fsm = &ledger{}
	node, err := Open(Config{
		ClusterID: "test", Dir: s.dir, Transport: network.Transport(s.addr), FSM: s.fsm, Log: testLog(t, s.addr),
		Timings:  DefaultTimings().Scale(5), // the machine may be busy
		ExitFunc: func(code int) { t.Errorf("the process would exit with %d", code) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.node = node
	t.Cleanup(func() { node.Shutdown(context.Background(), false) })
}

// onDisk is a cluster of servers with directories, the first of which leads.
func onDisk(t *testing.T, network *Network, count int) []*diskServer {
	t.Helper()
	servers := make([]*diskServer, count)
	for i := range servers {
		servers[i] = &diskServer{dir: filepath.Join(t.TempDir(), "raft"), addr: fmt.Sprintf("s%d:4646", i)}
		servers[i].startOn(t, network)
	}
	if err := servers[0].node.Bootstrap([]Peer{{servers[0].node.ID(), servers[0].addr, true}}); err != nil {
		t.Fatal(err)
	}
	awaitLeading(t, servers[0].node)
	for _, s := range servers[1:] {
		addVoter(t, servers[0].node, s)
	}
	return servers
}

func addVoter(t *testing.T, leader *Node, s *diskServer) {
	t.Helper()
	if err := leader.AddVoter(t.Context(), s.node.ID(), s.addr); err != nil {
		t.Fatal(err)
	}
}

// holds waits until a server has applied exactly these commands.
func (s *diskServer) holds(t *testing.T, want ...string) {
	t.Helper()
	eventually.Within(t, time.Minute, s.addr+" to catch up", func() bool { return slices.Equal(s.fsm.commands(), want) })
}

// recovered puts a new directory in the place of a stopped server's, whose state
// says in its last command that it was brought back.
func recovered(t *testing.T, dir string, peers []Peer) Remains {
	t.Helper()
	var body bytes.Buffer
	remains, err := Replay(dir, &ledger{}, &body)
	if err != nil {
		t.Fatal(err)
	}
	if err := Plant(dir+".new", Seed{Identity: remains.Identity, Index: remains.LastIndex, Term: max(remains.Term, remains.LastTerm), Peers: peers}, &body); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".new", dir); err != nil {
		t.Fatal(err)
	}
	return remains
}

// Two of three servers are gone; the third goes on alone, at another address.
// A wiped one joins as new, and one that comes back with its old log, longer than
// that of the survivor, holds what the others hold.
func TestRecoverAMajorityThatIsGone(t *testing.T) {
	network := NewNetwork(time.Second)
	servers := onDisk(t, network, 3)
	leader, survivor, back := servers[0], servers[1], servers[2]
	mustPropose(t, leader.node, "a", "b")
	survivor.holds(t, "a", "b")
	network.Isolate(survivor.addr)
	mustPropose(t, leader.node, "unknown to the survivor")
	back.holds(t, "a", "b", "unknown to the survivor")
	for _, s := range servers {
		mustShutdown(t, s.node)
	}
	network.Heal()

	longer, err := Inspect(back.dir)
	if err != nil {
		t.Fatal(err)
	}
	own := Peer{survivor.node.ID(), "moved:4646", true}
	remains := recovered(t, survivor.dir, []Peer{own})
	if !longer.Newer(remains) || remains.Newer(longer) || len(remains.Peers) != 3 || remains.ServerID != own.ID || remains.LastAt.IsZero() {
		t.Errorf("the survivor holds %+v, the other %+v", remains, longer)
	}

	survivor.addr = own.Addr
	survivor.startOn(t, network)
	awaitLeading(t, survivor.node)
	survivor.holds(t, "a", "b")
	mustPropose(t, survivor.node, "c")
	if diff := cmp.Diff([]Peer{own}, survivor.node.Peers()); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	wiped := &diskServer{dir: filepath.Join(t.TempDir(), "raft"), addr: leader.addr}
	wiped.startOn(t, network)
	addVoter(t, survivor.node, wiped)
	wiped.holds(t, "a", "b", "c")
	back.startOn(t, network)
	addVoter(t, survivor.node, back)
	mustPropose(t, survivor.node, "d")
	for _, s := range []*diskServer{survivor, wiped, back} {
		s.holds(t, "a", "b", "c", "d")
	}

	// All of it survives a restart of the survivor.
	mustShutdown(t, survivor.node)
	survivor.startOn(t, network)
	survivor.holds(t, "a", "b", "c", "d")
}

// Of three servers two are left, of which one lacks an entry: it follows the one
// that was recovered with both as peers.
func TestRecoverWithTheOtherSurvivors(t *testing.T) {
	network := NewNetwork(time.Second)
	servers := onDisk(t, network, 3)
	mustPropose(t, servers[0].node, "a")
	for _, s := range servers {
		s.holds(t, "a")
	}
	for _, s := range servers {
		mustShutdown(t, s.node)
	}
	peers := []Peer{{servers[0].node.ID(), servers[0].addr, true}, {servers[1].node.ID(), "moved:4646", true}}
	recovered(t, servers[0].dir, peers)
	servers[1].addr = "moved:4646"
	servers[0].startOn(t, network)
	servers[1].startOn(t, network)
	var leader *diskServer
	eventually.Within(t, time.Minute, "a leader of two", func() bool {
		for _, s := range servers[:2] {
			if term, _ := s.node.leading.establishedTerm(); term != 0 {
				leader = s
				return true
			}
		}
		return false
	})
	if leader != servers[0] {
		t.Error("who holds the old log leads")
	}
	mustPropose(t, leader.node, "b")
	for _, s := range servers[:2] {
		s.holds(t, "a", "b")
		if diff := cmp.Diff(peers, s.node.Peers()); diff != "" {
			t.Errorf("configuration (-want +got):\n%s", diff)
		}
	}
}

// A snapshot with entries behind it, and one without.
func TestReplayAndInspect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raft")
	node, _ := mustOpenAlone(t, dir, nil)
	mustPropose(t, node, "a", "b")
	for _, more := range [][]string{nil, {"c", "d"}} {
		if _, err := node.SnapshotSave(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		mustPropose(t, node, more...)
	}
	if _, err := Inspect(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a server that runs: %v", err)
	}
	mustShutdown(t, node)
	var body bytes.Buffer
	remains, err := Replay(dir, &ledger{}, &body)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := readLedger(&body)
	if err != nil || len(lines) != 4 || lines[3].Command != "d" || lines[3].Index != remains.LastIndex {
		t.Errorf("replayed %+v, %v", lines, err)
	}
	if remains.SnapshotIndex == 0 || remains.SnapshotIndex >= remains.LastIndex || time.Since(remains.LastAt) > time.Hour {
		t.Errorf("remains %+v", remains)
	}
	if _, err := Inspect(filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNoIdentity) {
		t.Errorf("no directory: %v", err)
	}
	if err := Plant(dir, Seed{Identity: remains.Identity, Peers: []Peer{{remains.ServerID, "a:1", true}}}, &body); err == nil {
		t.Error("a directory that exists was planted over")
	}
	for name, peers := range map[string][]Peer{"none": nil, "no address": {{"x", "", true}}, "no voter": {{"x", "a:1", false}}} {
		if err := Plant(filepath.Join(t.TempDir(), "new"), Seed{Identity: remains.Identity, Peers: peers}, &body); err == nil {
			t.Errorf("planted with peers: %s", name)
		}
	}
}

// A restore brings back what Revive makes of the archive.
func TestRestoreRevives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raft")
	node, fsm := mustOpenAlone(t, dir, nil)
	mustPropose(t, node, "a")
	var archive bytes.Buffer
	meta, err := node.SnapshotSave(t.Context(), &archive)
	if err != nil {
		t.Fatal(err)
	}
	mustPropose(t, node, "forgotten")
	refusal := errors.New("no")
	options := RestoreOptions{Revive: func(io.Reader, io.Writer, time.Time) error { return refusal }}
	if _, err := node.SnapshotRestore(t.Context(), bytes.NewReader(archive.Bytes()), options); !errors.Is(err, refusal) {
		t.Errorf("a refusal: %v", err)
	}
	if diff := cmp.Diff([]string{"a", "forgotten"}, fsm.commands()); diff != "" {
		t.Errorf("after the refusal (-want +got):\n%s", diff)
	}
	options.Revive = func(from io.Reader, to io.Writer, until time.Time) error {
		if !until.Equal(meta.CreatedAt) {
			t.Errorf("until %s", until)
		}
		lines, err := readLedger(from)
		if err != nil {
			return err
		}
		return ledgerSnapshot(append(lines, ledgerLine{Command: "revived"})).Persist(to)
	}
	if _, err := node.SnapshotRestore(t.Context(), bytes.NewReader(archive.Bytes()), options); err != nil {
		t.Fatal(err)
	}
	mustPropose(t, node, "b")
	if diff := cmp.Diff([]string{"a", "revived", "b"}, fsm.commands()); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "restore-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
