package server

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// MayReadData reports whether a node may read the bytes of a version of named data: an
// allocation of it, which has not ended, is of a job that uses the version. A node that asks
// for another one is told the same as for one that is not there. Pure.
func MayReadData(snapshot *state.Snapshot, nodeID, allocID, project, digest string) error {
	_, _, err := stagedFor(snapshot, nodeID, allocID, project, digest)
	return err
}

// stagedFor is the version that an allocation of a node uses, by its digest.
func stagedFor(snapshot *state.Snapshot, nodeID, allocID, project, digest string) (id structs.DataID, ref structs.DataRef, err error) {
	if alloc := snapshot.Alloc(allocID); alloc != nil && alloc.OccupiesNode() && alloc.NodeID == nodeID && digest != "" {
		view, ok := snapshot.Job(alloc.JobID)
		object := auth.Object{Kind: auth.ObjectJob, Project: alloc.Project, Node: alloc.NodeID}
		if ok && auth.Allowed(auth.Principal{Kind: auth.KindNode, ID: nodeID}, auth.VerbRead, object).Allow {
			found := false
			view.Job.DataPicks(func(kind string, used *structs.DataRef) {
				if used.Object.Project == project && used.Object.Digest == digest && !found {
					id, ref, found = used.Object.Of(kind, used), *used, true
				}
			})
			if found {
				return id, ref, nil
			}
		}
	}
	return id, ref, structs.NewError(structs.CodeForbidden, "server.data_not_yours", "alloc", allocID)
}

// StagingPeers lists nodes that have a version which an allocation of a node uses, or are
// getting it: those first that stand in the same rack, and else drawn by the node's own
// name, so that no node is everybody's. Pure.
func StagingPeers(snapshot *state.Snapshot, nodeID string, ask *structs.StagingPeersAsk) (*structs.StagingPeers, error) {
	id, ref, err := stagedFor(snapshot, nodeID, ask.AllocID, ask.Project, ask.Digest)
	if err != nil {
		return nil, err
	}
	own := snapshot.Node(nodeID)
	if own == nil {
		return nil, structs.NewError(structs.CodeForbidden, "server.data_not_yours", "alloc", ask.AllocID)
	}
	getting := make(map[string]bool)
	for job := range snapshot.JobsOfData(id, ref.Version) {
		prepared := false
		job.DataPicks(func(_ string, used *structs.DataRef) {
			prepared = prepared || used.Prepare && used.Object.Digest == ask.Digest
		})
		if !prepared {
			continue
		}
		for alloc := range snapshot.AllocsOfJob(job.ID) {
			if alloc.OccupiesNode() {
				getting[alloc.NodeID] = true
			}
		}
	}
	copyName := structs.CopyName((&structs.Job{}).DataName(id.Kind, &ref), false, "")
	var found []stagingCandidate
	for node := range snapshot.Nodes() {
		protocol, _ := strconv.Atoi(node.Attributes[structs.AttrProtocol])
		if node.ID == nodeID || node.Status != structs.NodeReady || node.RPCAddr == "" || protocol < wire.ProtocolStaging {
			continue
		}
		at, holds := slices.BinarySearch(node.Data, copyName)
		holds = holds || at < len(node.Data) && strings.HasPrefix(node.Data[at], copyName+"~") // whose directory it lies in comes behind
		if holds || getting[node.ID] {
			found = append(found, stagingCandidate{node, holds, nearby(own, node), drawn(nodeID, node.ID)})
		}
	}
	return &structs.StagingPeers{Peers: choosePeers(found)}, nil
}

// stagingCandidate is a node that may be asked for a version.
type stagingCandidate struct {
	node  *structs.Node
	holds bool
	near  bool
	draw  uint64
}

// choosePeers takes a bounded number of candidates: near ones, and some that are not, of
// which those come first that have all.
func choosePeers(found []stagingCandidate) (peers []structs.StagingPeer) {
	slices.SortFunc(found, func(a, b stagingCandidate) int {
		return cmp.Or(falseLast(a.near, b.near), falseLast(a.holds, b.holds), cmp.Compare(a.draw, b.draw))
	})
	near := 0
	for near < len(found) && found[near].near {
		near++
	}
	kept := min(near, max(structs.StagingNearMax, structs.StagingPeersMax-(len(found)-near)), structs.StagingPeersMax)
	for i := range found {
		if len(peers) < structs.StagingPeersMax && (i < kept || i >= near) {
			peers = append(peers, structs.StagingPeer{NodeID: found[i].node.ID, Name: found[i].node.Name, Addr: found[i].node.RPCAddr, Near: found[i].near})
		}
	}
	return peers
}

func falseLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// nearby reports whether two nodes stand in one rack: at the same place, or in one pool
// where none is told.
func nearby(a, b *structs.Node) bool {
	if len(a.Topology) == 0 && len(b.Topology) == 0 {
		return a.Pool == b.Pool
	}
	return slices.Equal(a.Topology, b.Topology)
}

// drawn is a number that two names have together.
func drawn(a, b string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(a + "\x00" + b))
	return h.Sum64()
}
