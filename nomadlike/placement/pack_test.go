package placement

import (
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// closeness is how near to each other nodes stand: the innermost level of which
// one place holds them all, and how many places of the next level they are in.
func (t *twin) closeness(nodes []*structs.Node) (level, crossed int) {
	depth := t.depth()
	for level < depth && len(t.places(nodes, level+1)) == 1 {
		level++
	}
	if level < depth {
		crossed = len(t.places(nodes, level+1))
	}
	return level, crossed
}

// TestPackedGangsAreAsCloseAsCanBe tries every set of nodes that fit.
func TestPackedGangsAreAsCloseAsCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTwin(t)
		job := drawJob(t, w)
		job.Placement, job.VIP, job.Distributed = structs.Placement{}, nil, structs.Distributed{}
		job.Resources[0].LastDevices, job.Resources[0].RDMA = 0, false
		need, f := NeedOf(job, 0), w.floor(w.sorted())
		placed, ok := f.Choose(&need, job.Nodes, Options{})
		fits := w.fitting(job, job.Resources[0], 1, "", twinOptions{})
		if ok != (len(fits) >= job.Nodes) {
			t.Fatalf("chosen %v, but %d nodes fit", ok, len(fits))
		}
		if !ok {
			return
		}
		var chosen []*structs.Node
		for _, p := range placed {
			chosen = append(chosen, w.nodes[p.NodeID])
		}
		level, crossed := w.closeness(chosen)
		for set := range uint(1) << len(fits) {
			if bits.OnesCount(set) != job.Nodes {
				continue
			}
			var other []*structs.Node
			for i, n := range fits {
				if set&(1<<i) != 0 {
					other = append(other, n)
				}
			}
			if l, c := w.closeness(other); l > level || l == level && c < crossed {
				t.Fatalf("chosen %v at level %d across %d, but %v stand at level %d across %d", names(chosen), level, crossed, names(other), l, c)
			}
		}
	})
}

func names(nodes []*structs.Node) string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.ID+"@"+strings.Join(n.Topology, "/"))
	}
	return strings.Join(list, " ")
}

// TestPackTellsAStory shows where gangs go on two racks of four nodes.
func TestPackTellsAStory(t *testing.T) {
	f := NewFloor()
	for i := range 8 {
		n := testNode(i, 4)
		n.Topology = []string{[]string{"rack-a", "rack-b"}[i/4]}
		f.Put(n, nil)
	}
	place := func(nodes, devices int) string {
		need := NeedOf(testJob(nodes, devices), 0)
		placed, ok := f.Choose(&need, nodes, Options{})
		if !ok {
			return "waits"
		}
		f.Occupy(&need, placed)
		var on []string
		for _, p := range placed {
			on = append(on, f.sites[f.byID[p.NodeID]].node.Name)
		}
		return strings.Join(on, " ")
	}
	for _, c := range []struct {
		name string
		got  string
		want string
	}{
		{"one card: the first node", place(1, 1), "n0"},
		{"another: the node that has one already", place(1, 1), "n0"},
		{"four whole nodes: the rack that has four", place(4, 4), "n4 n5 n6 n7"},
		{"two halves: the fullest node that fits, and the next", place(2, 2), "n0 n1"},
		{"three whole nodes: there are only two", place(3, 4), "waits"},
		{"two whole nodes", place(2, 4), "n2 n3"},
		{"two cards", place(1, 2), "n1"},
		{"no card is left", place(1, 1), "waits"},
		{"cores need none", place(2, 0), "n0 n1"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

// TestConsolidateAsTheTracesDo follows the rules of the reference replay.
func TestConsolidateAsTheTracesDo(t *testing.T) {
	f := NewFloor()
	for i := range 12 { // so that n10 comes after n9
		n := testNode(i, 8)
		n.Topology = []string{[]string{"z", "a"}[i%2]} // which must not matter
		f.Put(n, nil)
	}
	place := func(devices int) string {
		job := testJob((devices+7)/8, min(devices, 8))
		job.Resources[0].LastDevices = devices % 8
		if devices < 8 {
			job.Resources[0].LastDevices = 0
		}
		need := NeedOf(job, 0)
		placed, ok := f.Choose(&need, job.Nodes, Options{Fit: Consolidate})
		if !ok {
			return "waits"
		}
		f.Occupy(&need, placed)
		var on []string
		for _, p := range placed {
			on = append(on, f.sites[f.byID[p.NodeID]].node.Name)
		}
		return strings.Join(on, " ")
	}
	for _, c := range []struct{ name, got, want string }{
		{"three cards", place(3), "n0"},
		{"four cards fit the same node", place(4), "n0"},
		{"two cards do not", place(2), "n1"},
		{"one card: the node with one left", place(1), "n0"},
		{"twenty: two free nodes and the next for four", place(20), "n2 n3 n4"},
		{"four more fit beside them: fewest free that fit", place(4), "n4"},
		{"forty-eight", place(48), "n5 n6 n7 n8 n9 n10"},
		{"twelve: one free node, and no other for the rest but the one with most free", place(12), "n11 n1"},
		{"nine: no free node", place(9), "waits"},
		{"two", place(2), "n1"},
		{"full", place(1), "waits"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
	if !slices.IsSortedFunc(f.layout.index, func(a, b int32) int { return compareNodes(f.sites[a].node, f.sites[b].node) }) {
		t.Error("floor order is broken")
	}
}
