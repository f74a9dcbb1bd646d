package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// TestPickAgainstTwinAmongMany is TestPickAgainstTwin for more nodes than one
// word of positions has, on a topology of racks that words cut.
func TestPickAgainstTwinAmongMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &twin{nodes: map[string]*structs.Node{}, usage: map[string]*structs.Usage{}, pools: map[string]*structs.Pool{}}
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		count, rack := rapid.IntRange(60, 140).Draw(t, "nodes"), rapid.IntRange(3, 50).Draw(t, "rack")
		for i := range count {
			n := testNode(i, 4)
			n.Capacity.CPU = 4
			n.Topology = []string{fmt.Sprintf("room%d", i/rack/3), fmt.Sprintf("rack%d", i/rack)}
			w.nodes[n.ID] = n
			u := &structs.Usage{NodeID: n.ID, CPU: float64(chance.IntN(4)), Allocs: chance.IntN(2), Devices: map[string]string{}}
			for k := range chance.IntN(5) {
				u.Devices[n.Devices[k].ID] = "x"
			}
			w.usage[n.ID] = u
		}
		f := w.floor(w.sorted())
		for range 2 {
			job := testJob(rapid.IntRange(1, count/2).Draw(t, "gang"), rapid.IntRange(0, 4).Draw(t, "devices"))
			job.Resources[0].CPU = float64(rapid.IntRange(0, 3).Draw(t, "cpu"))
			job.Placement.SpreadOrPack = rapid.SampledFrom([]string{structs.Pack, structs.Spread}).Draw(t, "spread")
			need := NeedOf(job, 0)
			got, ok := f.Choose(&need, job.Nodes, Options{})
			want, wantOK := w.choose(job, 0, job.Nodes, twinOptions{})
			if ok != wantOK || !cmp.Equal(got, want) {
				t.Fatalf("Choose %v %v\nthe twin %v %v", ok, got, wantOK, want)
			}
			if ok {
				f.Occupy(&need, got)
				w.hold(job, got, +1)
			}
		}
	})
}

// TestFloorOfThousands compares with a plain count on a floor whose levels need
// words of words.
func TestFloorOfThousands(t *testing.T) {
	const nodes = 9_000
	f, chance := NewFloor(), rand.New(rand.NewPCG(1, 2))
	for i := range nodes {
		n := testNode(i, 4)
		u := &structs.Usage{NodeID: n.ID, CPU: float64(chance.IntN(64)), Allocs: 1, Devices: map[string]string{}}
		for k := range 4 - chance.IntN(chance.IntN(40)/10+1) {
			u.Devices[n.Devices[k].ID] = "x"
		}
		f.Put(n, u)
	}
	for round := range 200 {
		devices, cpu := chance.IntN(4), float64(chance.IntN(70))
		job := testJob(1, devices)
		job.Resources[0].CPU = cpu
		need := NeedOf(job, 0)
		fits, best := 0, -1
		for at := range f.Indexes() {
			free := f.Free(at)
			if free.Devices < int64(devices) || free.CPU < structs.MilliCPU(cpu) {
				continue
			}
			fits++
			if best < 0 || free.Devices < f.Free(best).Devices {
				best = at // nodes came in floor order
			}
		}
		if got := f.Fits(&need, nodes, Options{}); got != fits {
			t.Fatalf("round %d: %d nodes fit %d devices and %v cores, want %d", round, got, devices, cpu, fits)
		}
		seats, ok := f.Pick(&need, 1, Options{})
		if ok != (best >= 0) || ok && seats[0].Index() != best {
			t.Fatalf("round %d: picked %v %v, want %d", round, seats, ok, best)
		}
		if ok {
			f.Take(seats)
			if chance.IntN(3) == 0 {
				f.Give(seats)
			}
		}
	}
}
