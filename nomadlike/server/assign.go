package server

import (
	"slices"
	"strings"
	"sync"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// assigned is what one stream has told its node, so that only changes follow.
// A node's own reports come back in the state; they are no news to it.
type assigned struct {
	nodeID string
	told   map[string]wish // by allocation id; nil before the full list
	holds  bool            // the node held something when it was looked at last
}

// wish is the part of an allocation that is the server's to say.
type wish struct {
	desired     structs.AllocDesired
	released    bool
	quarantined bool
	stop        structs.StopOrder
	control     structs.Control
	warning     structs.Warning
	hold        structs.Hold
}

func wishOf(alloc *structs.Allocation) wish {
	w := wish{desired: alloc.Desired, released: alloc.Released, quarantined: alloc.Quarantined}
	if alloc.Stop != nil {
		w.stop = *alloc.Stop
	}
	if alloc.Control != nil {
		w.control = *alloc.Control
	}
	if alloc.Warning != nil {
		w.warning = *alloc.Warning
	}
	if alloc.Hold != nil {
		w.hold = *alloc.Hold
	}
	return w
}

func newAssigned(nodeID string) *assigned { return &assigned{nodeID: nodeID} }

// news returns what the node must be told to know what snapshot knows, nil for
// nothing. The first news is the full list.
func (a *assigned) news(snapshot *state.Snapshot, members *memberCache) *structs.Assignments {
	news := &structs.Assignments{Index: snapshot.Index(), Full: a.told == nil}
	now := make(map[string]wish, len(a.told))
	a.holds = false
	var pool *structs.Pool
	if node := snapshot.Node(a.nodeID); node != nil {
		pool = snapshot.Pool(node.PoolName())
	}
	for alloc := range snapshot.Occupants(a.nodeID) {
		a.holds = true
		view, ok := snapshot.Job(alloc.JobID)
		if !ok {
			continue // deleted while it was in quarantine: whatever runs of it is killed
		}
		want := wishOf(alloc)
		now[alloc.ID] = want
		if before, known := a.told[alloc.ID]; known && before == want {
			continue
		}
		news.Set = append(news.Set, structs.Assignment{
			Alloc: alloc, Job: withoutSource(view.Job.ForSubjob(alloc.Subjob)),
			Members: members.of(snapshot, alloc, view.Job), RunAs: pool.RunAs(view.Job),
		})
	}
	for id := range a.told {
		if _, still := now[id]; !still {
			news.Gone = append(news.Gone, id)
		}
	}
	slices.Sort(news.Gone)
	a.told = now
	if !news.Full && len(news.Set) == 0 && len(news.Gone) == 0 {
		return nil
	}
	return news
}

// changes returns the channel that is closed when the node may have news. For a
// node that holds nothing the state's sums are watched: they begin to change
// with its first allocation, and nobody else's work wakes its stream.
func (a *assigned) changes(snapshot *state.Snapshot) <-chan struct{} {
	if a.holds {
		return snapshot.WatchOccupants(a.nodeID)
	}
	return snapshot.WatchUsage(a.nodeID)
}

// withoutSource drops the text of the job file, which only people read.
func withoutSource(job *structs.Job) *structs.Job {
	if job.Source == "" {
		return job
	}
	lean := *job
	lean.Source = ""
	return &lean
}

// memberCacheMax bounds the attempts whose members are remembered.
const memberCacheMax = 256

// memberCache remembers who takes part in an attempt, which never changes, so
// that a gang of a thousand nodes is not listed a thousand times.
type memberCache struct {
	mu struct {
		sync.Mutex
		byAttempt map[attemptMade][]structs.Member
		order     []attemptMade // oldest first
	}
}

// attemptMade names an attempt and the log entry that made it: a state that
// was restored from an older one may make a number once more.
type attemptMade struct {
	structs.AttemptKey
	index uint64
}

func newMemberCache() *memberCache {
	c := &memberCache{}
	c.mu.byAttempt = make(map[attemptMade][]structs.Member)
	return c
}

// of lists the members of an allocation's attempt, by rank. The list is
// shared: nobody may change it.
func (c *memberCache) of(snapshot *state.Snapshot, alloc *structs.Allocation, job *structs.Job) []structs.Member {
	if !job.NeedsBarrier() {
		return []structs.Member{memberOf(snapshot, alloc)} // as cheap as looking it up
	}
	key := attemptMade{structs.AttemptKey{JobID: alloc.JobID, Subjob: alloc.Subjob, Number: alloc.Attempt}, alloc.CreateIndex}
	c.mu.Lock()
	defer c.mu.Unlock()
	if members, ok := c.mu.byAttempt[key]; ok {
		return members
	}
	members := membersOf(snapshot, key.AttemptKey)
	if len(c.mu.order) == memberCacheMax {
		delete(c.mu.byAttempt, c.mu.order[0])
		c.mu.order = c.mu.order[1:]
	}
	c.mu.byAttempt[key] = members
	c.mu.order = append(c.mu.order, key)
	return members
}

func membersOf(snapshot *state.Snapshot, key structs.AttemptKey) []structs.Member {
	var members []structs.Member
	for alloc := range snapshot.Gang(key.JobID, key.Subjob, key.Number) {
		members = append(members, memberOf(snapshot, alloc))
	}
	return members
}

func memberOf(snapshot *state.Snapshot, alloc *structs.Allocation) structs.Member {
	member := structs.Member{
		Rank: alloc.Rank, Name: alloc.Name, AllocID: alloc.ID,
		NodeID: alloc.NodeID, NodeName: alloc.NodeName, Ports: alloc.Ports, Devices: alloc.Devices,
	}
	if node := snapshot.Node(alloc.NodeID); node != nil {
		member.Addr, member.RPCAddr, member.Addrs = node.Addr, node.RPCAddr, addrsOf(node)
		member.Cards = CardsOf(node, alloc.Devices)
	}
	return member
}

// addrsMax bounds what a node says of its addresses.
const addrsMax = 64

// addrsOf lists the addresses of a node as it tells them; nil unless the one
// that its ranks have is among them.
func addrsOf(node *structs.Node) []string {
	addrs := strings.Split(node.Attributes[structs.AttrAddresses], ",")
	if len(addrs) > addrsMax || !slices.Contains(addrs, node.Addr) {
		return nil
	}
	return addrs
}
