package placement

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
)

// drawTwin makes a small cluster of every sort of node.
func drawTwin(t *rapid.T) *twin {
	w := &twin{nodes: make(map[string]*structs.Node), usage: make(map[string]*structs.Usage), pools: make(map[string]*structs.Pool)}
	for _, name := range []string{"p", "q", structs.PoolDefault} {
		if rapid.IntRange(0, 3).Draw(t, "pool") > 0 {
			w.pools[name] = &structs.Pool{Name: name, Dedicated: rapid.IntRange(0, 3).Draw(t, "dedicated") == 0, RDMA: rapid.IntRange(0, 3).Draw(t, "rdma") > 0, Raw: rapid.Bool().Draw(t, "pool raw")}
		}
	}
	depth, plain := rapid.IntRange(0, 3).Draw(t, "depth"), rapid.Bool().Draw(t, "plain")
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		n := drawNode(t, i, depth, plain)
		w.nodes[n.ID] = n
		if rapid.Bool().Draw(t, "used") {
			w.usage[n.ID] = drawUsage(t, n, plain)
		}
	}
	return w
}

func drawNode(t *rapid.T, i, depth int, plain bool) *structs.Node {
	n := &structs.Node{
		ID: fmt.Sprintf("id%d", i), Name: fmt.Sprintf("n%d", rapid.IntRange(1, 20).Draw(t, "name")),
		Drivers: []string{"exec"}, Status: structs.NodeReady, Eligibility: structs.NodeEligible,
		Capacity: structs.Capacity{CPU: 4, Memory: 4 * structs.GiB, PortMin: 20000, PortMax: 20000 + rapid.IntRange(0, 3).Draw(t, "ports")},
	}
	n.Raw = rapid.IntRange(0, 5).Draw(t, "raw") == 0
	for range depth {
		n.Topology = append(n.Topology, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "topology"))
	}
	devices := 4
	if !plain {
		n.Pool = rapid.SampledFrom([]string{"", "", "p", "q"}).Draw(t, "of pool")
		n.RDMA = rapid.IntRange(0, 4).Draw(t, "rdma") > 0
		n.Topology = n.Topology[:rapid.IntRange(0, len(n.Topology)).Draw(t, "told")]
		n.Capacity.CPU = float64(rapid.IntRange(0, 8).Draw(t, "cores"))
		n.Capacity.Memory = int64(rapid.IntRange(0, 8).Draw(t, "memory")) * structs.GiB
		devices = rapid.SampledFrom([]int{0, 1, 2, 4, 4, 5, 70}).Draw(t, "devices")
		if rapid.IntRange(0, 5).Draw(t, "docker") == 0 {
			n.Drivers = []string{"docker"}
		}
		if rapid.IntRange(0, 7).Draw(t, "away") == 0 {
			n.Eligibility = structs.NodeCordoned
		}
	}
	mixed := !plain && rapid.Bool().Draw(t, "mixed")
	linked := rapid.IntRange(0, 2).Draw(t, "linked")
	for k := range devices {
		d := structs.Device{
			ID: fmt.Sprintf("%s-%d", n.ID, k), Kind: "nvidia/gpu", Model: "A800", Memory: 80 * structs.GiB, Healthy: true,
			Driver: "535.104", NUMANode: k / 2,
		}
		switch linked {
		case 1:
			d.LinkGroup = fmt.Sprintf("%s-ring%d", n.ID, k%2)
		case 2:
			d.LinkGroup = rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "link")
			d.NUMANode = rapid.IntRange(-1, 1).Draw(t, "numa")
		}
		if mixed {
			d.Kind = rapid.SampledFrom([]string{"nvidia/gpu", "nvidia/gpu", "huawei/npu"}).Draw(t, "kind")
			d.Model = rapid.SampledFrom([]string{"A800", "A100", "910B3"}).Draw(t, "model")
			d.Memory = int64(rapid.SampledFrom([]int{40, 80}).Draw(t, "size")) * structs.GiB
			d.Driver = rapid.SampledFrom([]string{"535.104", "470", ""}).Draw(t, "driver")
		}
		d.Healthy = plain || rapid.IntRange(0, 9).Draw(t, "healthy") > 0
		n.Devices = append(n.Devices, d)
	}
	if rapid.Bool().Draw(t, "turned") {
		slices.Reverse(n.Devices)
	}
	return n
}

func drawUsage(t *rapid.T, n *structs.Node, plain bool) *structs.Usage {
	u := &structs.Usage{
		NodeID: n.ID, CPU: float64(rapid.IntRange(0, 40).Draw(t, "held cores")) / 10,
		Memory: int64(rapid.IntRange(0, 3).Draw(t, "held memory")) * structs.GiB, Allocs: rapid.IntRange(0, 2).Draw(t, "allocs"),
		Devices: make(map[string]string), Ports: make(map[int]string),
	}
	share := rapid.IntRange(0, 4).Draw(t, "share")
	for i, d := range n.Devices {
		if (i*7+share)%5 < share {
			u.Devices[d.ID] = "alloc"
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "held ports") {
		u.Ports[rapid.SampledFrom([]int{80, 20000, 20001, 20002}).Draw(t, "held port")] = "alloc"
	}
	if !plain {
		u.NominatedFor = rapid.SampledFrom([]string{"", "", "", "j/0", "k/0"}).Draw(t, "nominated for")
		u.Overcommitted = rapid.IntRange(0, 9).Draw(t, "over") == 0
	}
	return u
}

// drawJob makes a job of every sort.
func drawJob(t *rapid.T, w *twin) *structs.Job {
	j := &structs.Job{
		ID: "j", Name: "j", Nodes: rapid.IntRange(1, 5).Draw(t, "gang"), Task: structs.Task{Driver: "exec"},
		Distributed: structs.Distributed{Mode: rapid.SampledFrom([]structs.Mode{structs.ModeNone, structs.ModePyTorch}).Draw(t, "mode")},
	}
	if j.Distributed.Mode == structs.ModePyTorch {
		j.Distributed.MasterPort = rapid.SampledFrom([]int{0, 0, 80, 20000}).Draw(t, "master")
	}
	j.Placement.SpreadOrPack = rapid.SampledFrom([]string{structs.Pack, structs.Pack, structs.Spread}).Draw(t, "spread")
	spec := structs.Resources{CPU: float64(rapid.IntRange(0, 20).Draw(t, "cpu")) / 10, Memory: int64(rapid.IntRange(0, 2).Draw(t, "bytes")) * structs.GiB}
	for i := range rapid.IntRange(0, 2).Draw(t, "requests") {
		d := structs.DeviceRequest{Kind: "nvidia/gpu", Count: rapid.SampledFrom([]int{1, 2, 3, 4, structs.DevicesAll}).Draw(t, "count")}
		switch rapid.IntRange(0, 7).Draw(t, "sort") {
		case 0:
			d.Kind = "huawei/npu"
		case 1:
			d.Model = "A800"
		case 2:
			d.Models = []string{"A100", "A800"}
		case 3:
			d.Memory = 80 * structs.GiB
		case 4:
			ids := w.sorted()[0].Devices
			for k := 0; k < len(ids) && k < 2; k++ {
				d.IDs = append(d.IDs, ids[k].ID)
			}
			d.Count = max(1, len(d.IDs))
		}
		spec.Devices = append(spec.Devices, d)
		if i == 0 && rapid.IntRange(0, 2).Draw(t, "one request") > 0 {
			break
		}
	}
	if len(spec.Devices) == 1 && spec.Devices[0].Count > 1 && rapid.Bool().Draw(t, "less") {
		spec.LastDevices = rapid.IntRange(1, spec.Devices[0].Count-1).Draw(t, "last")
	}
	if rapid.IntRange(0, 3).Draw(t, "port") == 0 {
		spec.Ports = []structs.PortRequest{{Name: "a"}, {Name: "b", Static: rapid.SampledFrom([]int{0, 80, 20001}).Draw(t, "static")}}
	}
	spec.RDMA = rapid.IntRange(0, 4).Draw(t, "ib") == 0
	switch rapid.IntRange(0, 7).Draw(t, "where") {
	case 0:
		j.Placement.Pool = rapid.SampledFrom([]string{"p", "q", structs.PoolDefault}).Draw(t, "pool")
	case 1:
		j.Placement.DriverVersion = ">= 500"
	case 2, 3:
		nodes := rapid.Permutation(w.sorted()).Draw(t, "named")
		for _, n := range nodes[:rapid.IntRange(1, len(nodes)).Draw(t, "names")] {
			name := rapid.SampledFrom([]string{n.Name, n.ID}).Draw(t, "by")
			if !slices.Contains(j.Placement.Nodes, name) {
				j.Placement.Nodes = append(j.Placement.Nodes, name)
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "vip") == 0 {
			j.VIP = &structs.VIP{}
			for _, name := range j.Placement.Nodes {
				j.VIP.Machines = append(j.VIP.Machines, structs.VIPMachine{Node: name})
			}
			j.Placement.Nodes = nil
		}
	}
	j.Resources = []structs.Resources{spec}
	return j
}

func drawOptions(t *rapid.T, w *twin) twinOptions {
	o := twinOptions{
		fit:   rapid.SampledFrom([]Fit{FitJob, FitJob, Pack, Spread, Consolidate}).Draw(t, "fit"),
		start: rapid.Uint64Range(0, 5).Draw(t, "start"), nominee: rapid.SampledFrom([]string{"", "j/0"}).Draw(t, "nominee"), avoid: make(map[string]bool),
	}
	if rapid.IntRange(0, 2).Draw(t, "prefers") == 0 {
		o.prefer = make(map[string]int)
	}
	for _, n := range w.sorted() {
		o.avoid[n.ID] = rapid.IntRange(0, 7).Draw(t, "avoid") == 0
		if o.prefer != nil {
			o.prefer[n.ID] = rapid.IntRange(0, 2).Draw(t, "prefer")
		}
	}
	return o
}

func (o twinOptions) on(f *Floor) Options {
	options := Options{Fit: o.fit, PortStart: o.start, Nominee: o.nominee, Avoid: func(index int) bool { return o.avoid[f.At(index).ID] }}
	if o.prefer != nil {
		options.Prefer = func(index int) int { return o.prefer[f.At(index).ID] }
	}
	return options
}

// floor Puts what the twin has, nodes in the given order.
func (t *twin) floor(order []*structs.Node) *Floor {
	f := NewFloor()
	for _, pool := range t.pools {
		f.PutPool(pool)
	}
	for _, n := range order {
		f.Put(n, t.usage[n.ID])
	}
	return f
}

// TestPickAgainstTwin: a floor returns exactly what the slow twin returns, whatever
// the order in which nodes were Put, while gangs come and go; what it returns is
// accepted by state.Apply's own question.
func TestPickAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTwin(t)
		f := w.floor(rapid.Permutation(w.sorted()).Draw(t, "order"))
		type placed struct {
			need  *Need
			ranks []structs.RankPlacement
		}
		var standing []placed
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			if len(standing) > 0 && rapid.IntRange(0, 3).Draw(t, "end") == 0 {
				at := rapid.IntRange(0, len(standing)-1).Draw(t, "which")
				f.Release(standing[at].need, standing[at].ranks)
				w.hold(standing[at].need.job, standing[at].ranks, -1)
				standing = slices.Delete(standing, at, at+1)
			}
			job, o := drawJob(t, w), drawOptions(t, w)
			need, count := NeedOf(job, 0), job.Nodes
			if rapid.IntRange(0, 4).Draw(t, "elastic") == 0 {
				count = rapid.IntRange(1, job.Nodes).Draw(t, "size")
			}
			got, ok := f.Choose(&need, count, o.on(f))
			want, wantOK := w.choose(job, 0, count, o)
			if ok != wantOK || ok && !cmp.Equal(got, want) {
				t.Fatalf("Choose %v %v\nthe twin %v %v", ok, got, wantOK, want)
			}
			w.compareCounts(t, f, &need, job, o)
			if !ok {
				continue
			}
			w.accepts(t, job, got, o.nominee)
			for rank, seat := range f.SeatsOf(&need, got) {
				if n := f.MeetingIn(&need, &seat); n != len(got[rank].Devices) && (need.last == nil || rank < count-1) {
					t.Fatalf("rank %d has %d devices that meet the need, want %v", rank, n, got[rank].Devices)
				}
			}
			f.Occupy(&need, got)
			w.hold(job, got, +1)
			standing = append(standing, placed{&need, got})
			w.compareUsage(t, f)
		}
	})
}

// accepts asks what state.Apply asks.
func (t *twin) accepts(r *rapid.T, job *structs.Job, ranks []structs.RankPlacement, nominee string) {
	submitted := *job
	submitted.Checkpoint = &structs.Checkpoint{Elastic: &structs.Elastic{MinNodes: 1}}
	if nominee == "" {
		submitted.ID = "other"
	}
	gang := &structs.GangPlan{JobID: submitted.ID, Attempt: 1, Placements: ranks}
	if reason := feasible.GangProblem(&submitted, &structs.Subjob{State: structs.JobQueued}, gang, t); reason != nil {
		r.Fatalf("chosen %v, refused: %s %v", ranks, reason.ID, reason.Params)
	}
}

// compareCounts holds Fits, Able and Shortage against the twin.
func (t *twin) compareCounts(r *rapid.T, f *Floor, need *Need, job *structs.Job, o twinOptions) {
	t.compareNodes(r, f, need, job, o)
	able, room := 0, 0
	empty := &twin{nodes: t.nodes, usage: map[string]*structs.Usage{}, pools: t.pools}
	poolRoom := make(map[string]int)
	for _, n := range t.sorted() {
		if _, ok := empty.rank(job, n, job.Resources[0], 1, twinOptions{}); ok {
			able++
		}
		if _, ok := t.rank(job, n, job.Resources[0], 1, o); ok {
			room++
			poolRoom[n.PoolName()]++
		}
	}
	fits := room
	if job.Resources[0].RDMA {
		fits = 0
		for _, n := range poolRoom {
			fits = max(fits, n)
		}
	}
	if got := f.Able(need); got != able {
		r.Fatalf("%d nodes could, the twin says %d", got, able)
	}
	if got := f.Fits(need, 100, o.on(f)); got != fits {
		r.Fatalf("%d nodes fit, the twin says %d", got, fits)
	}
	s := f.Shortage(need, o.on(f))
	if s.Able != able || s.Room != room || s.Room+s.Reserved+len(s.Full) != able {
		r.Fatalf("shortage %+v, want %d able and %d with room", s, able, room)
	}
	if outlook := f.Outlook(need); outlook.Able != able || outlook.Built < able || outlook.Known != len(t.nodes) {
		r.Fatalf("outlook %+v, want %d able", outlook, able)
	}
}

// compareNodes holds the questions about single nodes against the twin.
func (t *twin) compareNodes(r *rapid.T, f *Floor, need *Need, job *structs.Job, o twinOptions) {
	empty := &twin{nodes: t.nodes, usage: map[string]*structs.Usage{}, pools: t.pools}
	for _, n := range t.sorted() {
		at, _ := f.Index(n.ID)
		_, fits := t.rank(job, n, job.Resources[0], 1, o)
		_, head := t.rank(job, n, job.Resources[0], 0, o)
		_, could := empty.rank(job, n, job.Resources[0], 1, twinOptions{})
		options := o.on(f)
		if f.FitsAt(need, at, options) != fits || f.HeadFitsAt(need, at, options) != head || f.CouldAt(need, at) != could {
			r.Fatalf("%s: the twin says fits %v, as head %v, could %v", n.ID, fits, head, could)
		}
		u, meeting := t.usage[n.ID], 0
		for i := range n.Devices {
			_, held := "", false
			if u != nil {
				_, held = u.Devices[n.Devices[i].ID]
			}
			if !held && n.Devices[i].Healthy && slices.ContainsFunc(job.Resources[0].Devices, n.Devices[i].Meets) {
				meeting++
			}
		}
		if got := f.Meeting(need, at); could && got != meeting {
			r.Fatalf("%s: %d devices meet the need, want %d", n.ID, got, meeting)
		}
		free := f.Free(at)
		if free != n.Free(u) || free.Devices != int64(t.free(n)) || u != nil && (f.Allocs(at) != u.Allocs || f.UsedPorts(at) != len(u.Ports)) {
			r.Fatalf("%s: free %+v", n.ID, free)
		}
	}
}

// hold keeps the twin's usage as state.Apply keeps it.
func (t *twin) hold(job *structs.Job, ranks []structs.RankPlacement, n int64) {
	for rank, p := range ranks {
		u := structs.Usage{NodeID: p.NodeID}
		if t.usage[p.NodeID] != nil {
			u = *t.usage[p.NodeID]
		}
		spec := job.SpecOf(0, rank, len(ranks))
		u.CPU = float64(structs.MilliCPU(u.CPU)+n*structs.MilliCPU(spec.CPU)) / 1000
		u.Memory += n * spec.Memory
		u.Allocs += int(n)
		u.Ports, u.Devices = maps.Clone(u.Ports), maps.Clone(u.Devices)
		if u.Ports == nil {
			u.Ports = make(map[int]string)
		}
		if u.Devices == nil {
			u.Devices = make(map[string]string)
		}
		for _, port := range p.Ports {
			if n > 0 {
				u.Ports[port] = ""
			} else {
				delete(u.Ports, port)
			}
		}
		for _, id := range p.Devices {
			if n > 0 {
				u.Devices[id] = ""
			} else {
				delete(u.Devices, id)
			}
		}
		t.usage[p.NodeID] = &u
	}
}

func (t *twin) compareUsage(r *rapid.T, f *Floor) {
	for id := range t.nodes {
		node, got := f.Node(id)
		if node != t.nodes[id] {
			r.Fatalf("node %s is another one", id)
		}
		want := t.usage[id]
		if got == nil || want == nil {
			if got != nil || want != nil {
				r.Fatalf("usage %+v, want %+v", got, want)
			}
			continue
		}
		if got.CPU != want.CPU || got.Memory != want.Memory || got.Allocs != want.Allocs || got.NominatedFor != want.NominatedFor ||
			got.Overcommitted != want.Overcommitted || !maps.Equal(got.Ports, want.Ports) || !maps.Equal(got.Devices, want.Devices) {
			r.Fatalf("usage %+v, want %+v", got, want)
		}
	}
}
