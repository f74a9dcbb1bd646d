package placement

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

func testNode(i, devices int) *structs.Node {
	n := &structs.Node{
		ID: fmt.Sprintf("id-%d", i), Name: fmt.Sprintf("n%d", i), Drivers: []string{"exec"}, Status: structs.NodeReady,
		Eligibility: structs.NodeEligible, Capacity: structs.Capacity{CPU: 64, Memory: 512 * structs.GiB, PortMin: 20000, PortMax: 29999},
	}
	for k := range devices {
		n.Devices = append(n.Devices, structs.Device{
			ID: fmt.Sprintf("GPU-%d-%d", i, k), Index: k, Kind: "nvidia/gpu",
			Model: "NVIDIA A800-SXM4-80GB", Memory: 80 * structs.GiB, Healthy: true, Driver: "535.104.05", NUMANode: k / 4,
		})
	}
	return n
}

func testJob(nodes, devices int) *structs.Job {
	j := &structs.Job{
		ID: "j", Name: "j", Nodes: nodes, Task: structs.Task{Driver: "exec"},
		Distributed: structs.Distributed{Mode: structs.ModePyTorch},
		Resources:   []structs.Resources{{CPU: 8, Memory: structs.GiB}},
	}
	if devices != 0 {
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: devices}}
	}
	return j
}

func TestChooseHoldRelease(t *testing.T) {
	f := NewFloor()
	for i := range 4 {
		f.Put(testNode(i, 8), nil)
	}
	need := NeedOf(testJob(4, 8), 0)
	placed, ok := f.Choose(&need, 4, Options{})
	if !ok || len(placed) != 4 || len(placed[3].Devices) != 8 || placed[0].Ports[structs.MasterPortName] == 0 {
		t.Fatalf("chose %v %v", placed, ok)
	}
	copied := f.Clone()
	f.Occupy(&need, placed)
	if got := f.Fits(&need, 4, Options{}); got != 0 {
		t.Errorf("%d nodes fit a full floor", got)
	}
	if got := copied.Fits(&need, 4, Options{}); got != 4 {
		t.Errorf("%d nodes fit the copy, want 4", got)
	}
	f.Release(&need, placed)
	if got, able := f.Fits(&need, 9, Options{}), f.Able(&need); got != 4 || able != 4 {
		t.Errorf("after the release %d fit and %d could, want 4", got, able)
	}
}

// TestFloorsAnswerAlike: a floor that nodes, pools and usage were put on and
// taken from in any order, and cloned in between, answers as one that was made
// from what is left; and what is done to a clone or its origin leaves the other
// as it was.
func TestFloorsAnswerAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTwin(t)
		f := w.floor(w.sorted())
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			nodes := w.sorted()
			other, before := f, f
			if rapid.IntRange(0, 2).Draw(t, "clone") == 0 {
				other = f.Clone()
				before = w.floor(nodes)
				if rapid.Bool().Draw(t, "the clone goes on") {
					f, other = other, f
				}
			}
			was := *w
			switch kind := rapid.IntRange(0, 5).Draw(t, "step"); {
			case kind == 0 || len(nodes) == 0:
				i := rapid.IntRange(0, 9).Draw(t, "new")
				n := drawNode(t, i, rapid.IntRange(0, 2).Draw(t, "depth"), rapid.Bool().Draw(t, "plain"))
				w.put(n, drawUsage(t, n, false))
				f.Put(n, w.usage[n.ID])
			case kind == 1:
				n := rapid.SampledFrom(nodes).Draw(t, "gone")
				w.put(n, nil)
				delete(w.nodes, n.ID)
				f.Remove(n.ID)
				f.Remove("nobody")
			case kind == 2:
				n := rapid.SampledFrom(nodes).Draw(t, "used")
				w.put(n, drawUsage(t, n, false))
				f.Put(n, w.usage[n.ID])
			case kind == 3:
				n := *rapid.SampledFrom(nodes).Draw(t, "changed")
				n.Devices = slices.Clone(n.Devices)
				for i := range n.Devices {
					n.Devices[i].Healthy = rapid.Bool().Draw(t, "healthy")
				}
				n.Eligibility = rapid.SampledFrom([]structs.Eligibility{structs.NodeEligible, structs.NodeDraining}).Draw(t, "eligibility")
				w.put(&n, w.usage[n.ID])
				f.Put(&n, w.usage[n.ID])
			case kind == 4:
				pools := make(map[string]*structs.Pool)
				for name, pool := range w.pools {
					pools[name] = pool
				}
				w.pools = pools
				p := &structs.Pool{
					Name:      rapid.SampledFrom([]string{"p", "q", structs.PoolDefault}).Draw(t, "pool"),
					Dedicated: rapid.Bool().Draw(t, "dedicated"), RDMA: rapid.Bool().Draw(t, "rdma"), Raw: rapid.Bool().Draw(t, "pool raw"),
				}
				if rapid.Bool().Draw(t, "no record") {
					delete(w.pools, p.Name)
					f.RemovePool(p.Name)
				} else {
					w.pools[p.Name] = p
					f.PutPool(p)
				}
			default:
				job := drawJob(t, w)
				need := NeedOf(job, 0)
				if placed, ok := f.Choose(&need, job.Nodes, Options{}); ok {
					w.usage = copied(w.usage)
					w.hold(job, placed, +1)
					seats := f.SeatsOf(&need, placed)
					f.Take(seats)
					f.Give(seats)
					f.Take(seats)
				}
			}
			alike(t, w, f, w.floor(w.sorted()))
			if other != f {
				alike(t, &was, other, before)
			}
		}
	})
}

func copied[V any](m map[string]V) map[string]V {
	c := make(map[string]V, len(m))
	for key, value := range m {
		c[key] = value
	}
	return c
}

// put replaces maps rather than changing them, so that a copied twin stays.
func (t *twin) put(n *structs.Node, u *structs.Usage) {
	t.nodes, t.usage = copied(t.nodes), copied(t.usage)
	t.nodes[n.ID] = n
	t.usage[n.ID] = u
	if u == nil {
		delete(t.usage, n.ID)
	}
}

// alike asks two floors the same questions.
func alike(t *rapid.T, w *twin, a, b *Floor) {
	if a.Len() != len(w.nodes) {
		t.Fatalf("%d nodes, want %d", a.Len(), len(w.nodes))
	}
	if len(w.nodes) == 0 {
		return
	}
	for range 2 {
		job := drawJob(t, w)
		count := rapid.IntRange(1, job.Nodes).Draw(t, "count")
		needA, needB := NeedOf(job, 0), NeedOf(job, 0)
		gotA, okA := a.Choose(&needA, count, Options{})
		gotB, okB := b.Choose(&needB, count, Options{})
		if okA != okB || !cmp.Equal(gotA, gotB) {
			t.Fatalf("%v %v\nmade anew: %v %v", okA, gotA, okB, gotB)
		}
		if x, y := a.Able(&needA), b.Able(&needB); x != y {
			t.Fatalf("%d able, made anew %d", x, y)
		}
		if x, y := a.Fits(&needA, 9, Options{}), b.Fits(&needB, 9, Options{}); x != y {
			t.Fatalf("%d fit, made anew %d", x, y)
		}
	}
	for name := range map[string]bool{"p": true, "q": true, structs.PoolDefault: true} {
		if a.Pool(name) != w.pools[name] {
			t.Fatalf("pool %s is another one", name)
		}
	}
	w.compareUsage(t, a)
}

// TestClonesAtOnce: many goroutines may clone a floor that is ready and work on
// their clones, sharing needs.
func TestClonesAtOnce(t *testing.T) {
	f := NewFloor()
	for i := range 20 {
		f.Put(testNode(i, 8), nil)
	}
	f.Ready()
	need := NeedOf(testJob(2, 4), 0)
	want, _ := f.Clone().Choose(&need, 2, Options{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			clone := f.Clone()
			for i := 0; ; i++ {
				placed, ok := clone.Choose(&need, 2, Options{})
				if !ok {
					if i != 22 {
						t.Errorf("%d gangs on a clone of 20 nodes and two more, want 22", i)
					}
					return
				}
				if i == 0 && !cmp.Equal(placed, want) {
					t.Errorf("the first gang stands on %v, want %v", placed, want)
				}
				clone.Occupy(&need, placed)
				if i == 3 {
					clone.Put(testNode(20, 8), nil)
					clone.Put(testNode(21, 8), nil)
				}
			}
		})
	}
	group.Wait()
	if got := f.Fits(&need, 99, Options{}); got != 20 {
		t.Errorf("%d nodes fit the origin, want 20", got)
	}
}

// TestKeySeesEveryField changes each field of a job that feasibility could read,
// one at a time, and expects another key, or names the field here.
func TestKeySeesEveryField(t *testing.T) {
	job := testJob(3, 2)
	job.Resources[0].Devices[0].Models, job.Resources[0].Devices[0].IDs = []string{"A"}, []string{"0"}
	job.Resources[0].Ports = []structs.PortRequest{{Name: "http", Static: 80}}
	job.Placement.Nodes = []string{"n1"}
	job.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1"}}, Ask: new(structs.VIPAsk)}
	ignored := map[string]string{
		"Resources[0].Label":        "names the alternative for people",
		"Resources[0].SharedMemory": "is part of Memory",
		"Resources[0].Disk":         "bounds the task, and reserves nothing",
		"Resources[0].SKU":          "is resolved at admission",
		"VIP.Machines[0].Busy":      "says what happens to others",
		"VIP.Ask.For":               "says what happens to others",
		"VIP.Ask.Silence":           "says what happens to others",
		"VIP.Ask.Message":           "says what happens to others",
		"Distributed.WorldSize":     "the launch reads it", "Distributed.Rewrite": "the launch reads it", "Distributed.Launcher": "the launch reads it",
		"Distributed.ProcsPerNode": "the launch reads it", "Distributed.MinNodes": "the launch reads it", "Distributed.ParameterServers": "counts in mode tensorflow alone",
		"Distributed.Chief": "the launch reads it", "Distributed.Emulate": "the launch reads it", "Distributed.RankTable": "the launch reads it",
	}
	before := NeedOf(job, 0)
	same := NeedOf(job.Copy(), 0)
	if before.Key() != same.Key() {
		t.Fatalf("a copy has another key: %s, %s", before.Key(), same.Key())
	}
	var change func(path string, v reflect.Value)
	seen := 0
	try := func(path string, v reflect.Value, changed any) {
		old := reflect.ValueOf(v.Interface())
		v.Set(reflect.ValueOf(changed).Convert(v.Type()))
		after := NeedOf(job, 0)
		v.Set(old)
		seen++
		if _, ok := ignored[path]; ok == (after.Key() != before.Key()) {
			t.Errorf("%s: another key %v, ignored %v", path, after.Key() != before.Key(), ok)
		}
	}
	change = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				change(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				change(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
			}
		case reflect.String:
			value := v.String() + "x"
			if path == "Distributed.Mode" {
				value = string(structs.ModeNone)
			}
			try(path, v, value)
		case reflect.Int, reflect.Int64:
			try(path, v, v.Int()+1)
		case reflect.Float64:
			try(path, v, v.Float()+1)
		case reflect.Bool:
			try(path, v, !v.Bool())
		case reflect.Pointer:
			change(path, v.Elem())
		default:
			t.Fatalf("%s is a %s", path, v.Kind())
		}
	}
	change("Resources", reflect.ValueOf(job).Elem().FieldByName("Resources"))
	change("Placement", reflect.ValueOf(job).Elem().FieldByName("Placement"))
	change("VIP", reflect.ValueOf(job).Elem().FieldByName("VIP"))
	change("Distributed", reflect.ValueOf(job).Elem().FieldByName("Distributed"))
	change("Nodes", reflect.ValueOf(job).Elem().FieldByName("Nodes"))
	try("Task.Driver", reflect.ValueOf(job).Elem().FieldByName("Task").FieldByName("Driver"), "docker")
	if seen < 25 {
		t.Errorf("%d fields were changed", seen)
	}
}

// TestGoneNodes: what is held on a node that was removed counts for nothing, and
// indexes of the others stay.
func TestGoneNodes(t *testing.T) {
	f := NewFloor()
	for i := range 3 {
		f.Put(testNode(i, 2), nil)
	}
	alloc := &structs.Allocation{NodeID: "id-1", Spec: structs.Resources{CPU: 1}, Devices: []string{"GPU-1-0", "no such device"}, Ports: map[string]int{"a": 20000}}
	seat, ok := f.SeatOf(alloc)
	if at, known := f.Index("id-1"); !ok || !known || seat.Index() != at || f.Indexes() != 3 {
		t.Fatalf("seat %+v %v at %d %v", seat, ok, at, known)
	}
	f.Take([]Seat{seat})
	if _, usage := f.Node("id-1"); usage.Allocs != 1 || len(usage.Devices) != 1 || len(usage.Ports) != 1 {
		t.Errorf("usage %+v", usage)
	}
	at, _ := f.Index("id-2")
	f.Remove("id-1")
	f.Give([]Seat{seat})
	if after, _ := f.Index("id-2"); after != at || f.At(seat.Index()) != nil || f.Len() != 2 {
		t.Errorf("index %d was %d, %d nodes", after, at, f.Len())
	}
	if _, ok := f.SeatOf(alloc); ok {
		t.Error("a seat on a node that is gone")
	}
	if node, usage := f.Node("id-1"); node != nil || usage != nil {
		t.Errorf("node %v %v", node, usage)
	}
	need := NeedOf(testJob(2, 2), 0)
	if got := f.SeatsOf(&need, []structs.RankPlacement{{NodeID: "id-1"}, {NodeID: "id-0"}}); len(got) != 1 {
		t.Errorf("seats %v", got)
	}
	if outlook := f.Outlook(&need); outlook.Known != 2 || outlook.Able != 2 {
		t.Errorf("outlook %+v", outlook)
	}
}

// TestOutlookNamesObstacles shows why a job cannot start on any node.
func TestOutlookNamesObstacles(t *testing.T) {
	f := NewFloor()
	for i := range 6 {
		n := testNode(i, 2)
		switch i {
		case 0, 1:
			n.Pool = "p"
		case 2:
			n.Drivers = nil
		case 3:
			n.Devices[0].Healthy = false
		case 4:
			n.Eligibility = structs.NodeDraining
		}
		f.Put(n, nil)
	}
	f.PutPool(&structs.Pool{Name: "p", Dedicated: true})
	need := NeedOf(testJob(1, 2), 0)
	o := f.Outlook(&need)
	if o.Known != 6 || o.Built != 3 || o.Able != 1 || !slices.Equal(o.Away, []string{"n3", "n4"}) || !o.HeadPort || len(o.Barred) != 2 ||
		o.Barred[0].Reason.ID != "scheduler.node_dedicated" || o.Barred[0].Nodes != 2 || o.Barred[1].Reason.ID != "scheduler.node_driver" {
		t.Errorf("outlook %+v", o)
	}
	named := testJob(1, 2)
	named.Placement.Nodes = []string{"n5", "n9"}
	need = NeedOf(named, 0)
	if o := f.Outlook(&need); !slices.Equal(o.Unknown, []string{"n9"}) || o.Able != 1 {
		t.Errorf("outlook %+v", o)
	}
	many := testJob(1, 3)
	many.Resources[0].Ports = []structs.PortRequest{{Name: "http", Static: 80}}
	need = NeedOf(many, 0)
	if o := f.Outlook(&need); o.Built != 0 {
		t.Errorf("outlook %+v", o)
	}
	if got := PortsText(many.Resources[0].Ports); got != "port 80" {
		t.Errorf("ports: %s", got)
	}
}
