package server

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// stagingCluster is a state in which a job on n0 and n1 prepares a version, one on n2
// mounts it where it lies, n3 tells of a copy, n4 has nothing, n5 is older and n6 away.
func stagingCluster(t *testing.T) (s *scripted, digest string) {
	t.Helper()
	s, digest = &scripted{t: t, store: state.New(), now: 1}, digestOf(7)
	s.apply(structs.CommandClusterInit, &structs.ClusterInit{Cluster: structs.Cluster{ID: "c"}})
	object := structs.DataObject{Project: "default", Kind: "dataset", Name: "faces", Owner: "li", Access: "project", Storage: "nas"}
	s.apply(structs.CommandDataBegin, &structs.DataBegin{Object: object, UploadID: "u"})
	s.apply(structs.CommandDataCommit, &structs.DataCommit{ID: object.Ref(), UploadID: "u", Digest: digest, Files: 1, Bytes: 100})
	ref := structs.DataRef{Name: "faces", Version: 1, Storage: "nas", ReadOnly: true, Prepare: true, Object: &structs.DataPick{Project: "default", Owner: "li", Digest: digest}}
	copyName := structs.CopyName((&structs.Job{}).DataName("dataset", &ref), false, "")
	for i := range 7 {
		node := structs.Node{
			ID: fmt.Sprintf("n%d", i), Name: fmt.Sprintf("node-%d", i), RPCAddr: fmt.Sprintf("10.0.0.%d:1", i), Drivers: []string{"exec"},
			Capacity: structs.Capacity{CPU: 8, Memory: 1 << 40}, Attributes: map[string]string{structs.AttrProtocol: strconv.Itoa(wire.ProtocolStaging)},
			Storages: []string{"dataset/nas"}, Topology: []string{[]string{"rack-a", "rack-b"}[i%2]},
		}
		switch i {
		case 3:
			node.Data = []string{copyName + "~li"}
		case 5:
			node.Data, node.Attributes[structs.AttrProtocol] = []string{copyName}, strconv.Itoa(wire.ProtocolStaging-1)
		case 6:
			node.Data, node.RPCAddr = []string{copyName}, ""
		}
		s.apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: node})
	}
	for name, nodes := range map[string][]string{"prepares": {"n0", "n1"}, "mounts": {"n2"}} {
		job := testJob(name, len(nodes))
		job.ID, job.Datasets = name, []structs.DataRef{ref}
		job.Datasets[0].Prepare = name == "prepares"
		s.apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: job})
		var placements []structs.RankPlacement
		for _, node := range nodes {
			placements = append(placements, structs.RankPlacement{NodeID: node})
		}
		s.apply(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{{JobID: name, Attempt: 1, Placements: placements}}})
	}
	return s, digest
}

// TestMayReadData: a node may read what an allocation of its own uses that has not ended,
// and is told the same of everything else.
func TestMayReadData(t *testing.T) {
	s, digest := stagingCluster(t)
	own := structs.AllocID("prepares", 0, 1, 1)
	for name, of := range map[string]struct {
		node, alloc, project, digest string
		may                          bool
	}{
		"its own":                 {"n1", own, "default", digest, true},
		"another node's":          {"n0", own, "default", digest, false},
		"nobody's":                {"n4", own, "default", digest, false},
		"no allocation":           {"n1", "none", "default", digest, false},
		"another project's":       {"n1", own, "vision", digest, false},
		"another version":         {"n1", own, "default", digestOf(8), false},
		"a version of no digest":  {"n1", own, "default", "", false},
		"what a job mounts there": {"n2", structs.AllocID("mounts", 0, 1, 0), "default", digest, true},
	} {
		err := MayReadData(s.store.Snapshot(), of.node, of.alloc, of.project, of.digest)
		if (err == nil) != of.may || err != nil && !strings.Contains(err.Error(), "server.data_not_yours") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.apply(structs.CommandJobStop, &structs.JobStop{JobID: "prepares"})
	for rank, node := range []string{"n0", "n1"} {
		s.apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: node, Reports: []structs.AllocReport{{AllocID: structs.AllocID("prepares", 0, 1, rank), Attempt: 1, Status: structs.AllocKilled}}})
	}
	if err := MayReadData(s.store.Snapshot(), "n1", own, "default", digest); err == nil {
		t.Error("after its end")
	}
}

// TestStagingPeers: nodes are named that have a copy or are getting one, those of the same
// rack first; not who asks, who only mounts the version, is older or is away.
func TestStagingPeers(t *testing.T) {
	s, digest := stagingCluster(t)
	peers := func(node string, rank int) string {
		t.Helper()
		told, err := StagingPeers(s.store.Snapshot(), node, &structs.StagingPeersAsk{AllocID: structs.AllocID("prepares", 0, 1, rank), Project: "default", Digest: digest})
		if err != nil {
			if refused, ok := errors.AsType[*structs.Error](err); ok {
				return refused.ID
			}
			t.Fatal(err)
		}
		text := ""
		for _, peer := range told.Peers {
			text += fmt.Sprintf("%s %s near=%v; ", peer.NodeID, peer.Addr, peer.Near)
		}
		return text
	}
	for of, want := range map[[2]any]string{
		{"n0", 0}: "n3 10.0.0.3:1 near=false; n1 10.0.0.1:1 near=false; ",
		{"n1", 1}: "n3 10.0.0.3:1 near=true; n0 10.0.0.0:1 near=false; ",
		{"n4", 0}: "server.data_not_yours",
	} {
		if got := peers(of[0].(string), of[1].(int)); got != want {
			t.Errorf("%v: %s", of, got)
		}
	}
}

// TestChoosePeers: of many, those of the rack come first and leave room for others, so that
// a rack finds what it does not have; the draw differs by who asks.
func TestChoosePeers(t *testing.T) {
	candidates := func(asks string, near, far int) (found []stagingCandidate) {
		for i := range near + far {
			node := &structs.Node{ID: fmt.Sprintf("n%d", i)}
			found = append(found, stagingCandidate{node: node, near: i < near, draw: drawn(asks, node.ID)})
		}
		return found
	}
	for of, want := range map[[2]int][2]int{{100, 100}: {48, 16}, {100, 4}: {60, 4}, {10, 100}: {10, 54}, {100, 0}: {64, 0}, {3, 2}: {3, 2}} {
		near, far := 0, 0
		for _, peer := range choosePeers(candidates("a", of[0], of[1])) {
			if peer.Near {
				near++
			} else {
				far++
			}
		}
		if [2]int{near, far} != want {
			t.Errorf("of %v: %d near and %d far", of, near, far)
		}
	}
	a, b := choosePeers(candidates("a", 0, 500)), choosePeers(candidates("b", 0, 500))
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	if same > len(a)/4 {
		t.Errorf("two nodes are told %d of %d alike", same, len(a))
	}
}
