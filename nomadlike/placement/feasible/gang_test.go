package feasible

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

func feasibleNode() *structs.Node {
	n := &structs.Node{
		ID: "n1", Name: "n1", Drivers: []string{"exec"}, Status: structs.NodeReady, Eligibility: structs.NodeEligible,
		Capacity: structs.Capacity{CPU: 4, Memory: 8 * structs.GiB, PortMin: 20000, PortMax: 20003},
	}
	for i, group := range []string{"a", "a", "b", "b", "b"} {
		n.Devices = append(n.Devices, structs.Device{ID: string(rune('0' + i)), Kind: "nvidia/gpu", Model: "NVIDIA A800-SXM4-80GB", LinkGroup: group, Healthy: true, Driver: "535.104.05"})
	}
	return n
}

func feasibleJob() *structs.Job {
	return &structs.Job{ID: "j", Name: "j", Nodes: 1, Task: structs.Task{Driver: "exec"}, Resources: []structs.Resources{{
		CPU: 1, Memory: structs.GiB,
		Ports:   []structs.PortRequest{{Name: "http", Static: 8080}, {Name: "extra"}},
		Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 2}},
	}}}
}

// parts are what a plan for one node stands on.
type parts struct {
	job    *structs.Job
	subjob *structs.Subjob
	gang   *structs.GangPlan
	node   *structs.Node
	usage  *structs.Usage
	pool   *structs.Pool
}

// rdma asks for RDMA in a pool that has it.
func (p *parts) rdma() {
	p.job.Resources[0].RDMA, p.node.Pool, p.pool = true, "p", &structs.Pool{Name: "p", RDMA: true}
}

// all asks for all devices and returns these.
func (p *parts) all(given ...string) {
	p.job.Resources[0].Devices[0].Count, p.gang.Placements[0].Devices = structs.DevicesAll, given
}

// Node implements View.
func (p *parts) Node(id string) (*structs.Node, *structs.Usage) {
	if id != p.node.ID {
		return nil, nil
	}
	return p.node, p.usage
}

// Pool implements View.
func (p *parts) Pool(name string) *structs.Pool {
	if p.pool == nil || p.pool.Name != name {
		return nil
	}
	return p.pool
}

// Project implements View.
func (p *parts) Project(string) *structs.Project { return nil }

// ProjectUsage implements View.
func (p *parts) ProjectUsage(string) *structs.ProjectUsage { return nil }

// TestGangProblem breaks one thing of a good plan at a time and expects the
// reason that names it.
func TestGangProblem(t *testing.T) {
	cases := []struct {
		name   string
		change func(*parts)
		want   string
	}{
		{"nothing", func(*parts) {}, ""},
		{"no usage at all", func(p *parts) { p.usage = nil }, ""},
		{"job deleted", func(p *parts) { p.job = nil }, "scheduler.refused_gone"},
		{"subjob deleted", func(p *parts) { p.subjob = nil }, "scheduler.refused_gone"},
		{"not queued", func(p *parts) { p.subjob.State = structs.JobStopped }, "scheduler.refused_state"},
		{"waits for others", func(p *parts) { p.subjob.Pending = []string{"other"} }, "scheduler.refused_pending"},
		{"old attempt", func(p *parts) { p.subjob.Attempt = 1 }, "scheduler.refused_attempt"},
		{"no such alternative", func(p *parts) { p.gang.Spec = 1 }, "scheduler.refused_spec"},
		{"negative alternative", func(p *parts) { p.gang.Spec = -1 }, "scheduler.refused_spec"},
		{"half a gang", func(p *parts) { p.job.Nodes = 2 }, "scheduler.refused_partial"},
		{"empty gang", func(p *parts) { p.job.Nodes, p.gang.Placements = 0, nil }, "scheduler.refused_partial"},
		{"one node twice", func(p *parts) {
			p.job.Nodes, p.gang.Placements = 2, append(p.gang.Placements, p.gang.Placements[0])
		}, "scheduler.refused_twice"},
		{"unknown node", func(p *parts) { p.gang.Placements[0].NodeID = "n2" }, "scheduler.node_unknown"},
		{"node lost", func(p *parts) { p.node.Status = structs.NodeLost }, "scheduler.node_not_ready"},
		{"node cordoned", func(p *parts) { p.node.Eligibility = structs.NodeCordoned }, "scheduler.node_not_ready"},
		{"no driver", func(p *parts) { p.node.Drivers = nil }, "scheduler.node_driver"},
		{"other pool", func(p *parts) { p.job.Placement.Pool = "p" }, "scheduler.node_pool"},
		{"other node named", func(p *parts) { p.job.Placement.Nodes = []string{"n2"} }, "scheduler.node_not_named"},
		{"node named in another pool", func(p *parts) { p.job.Placement = structs.Placement{Nodes: []string{"n1"}, Pool: "p"} }, ""},
		{"pool by default", func(p *parts) { p.job.Placement.Pool = structs.PoolDefault }, ""},
		{"dedicated pool", func(p *parts) { p.node.Pool, p.pool = "p", &structs.Pool{Name: "p", Dedicated: true} }, "scheduler.node_dedicated"},
		{"dedicated pool of its own", func(p *parts) {
			p.node.Pool, p.pool, p.job.Placement.Pool = "p", &structs.Pool{Name: "p", Dedicated: true}, "p"
		}, ""},
		{"node named in a dedicated pool", func(p *parts) {
			p.node.Pool, p.pool, p.job.Placement.Nodes = "p", &structs.Pool{Name: "p", Dedicated: true}, []string{"n1"}
		}, "scheduler.node_dedicated"},
		{"node with a fault that it works on with", func(p *parts) { p.node.Faults = []structs.NodeFault{{Name: "link/eth1"}} }, ""},
		{"node that is not fit", func(p *parts) {
			p.node.Faults = []structs.NodeFault{{Name: "link/eth1"}, {Name: "processes", Unfit: true}}
		}, "scheduler.node_unfit"},
		{"raw node without a record of its pool", func(p *parts) { p.node.Raw, p.pool = true, nil }, "scheduler.pool_raw"},
		{"raw node in a pool that does not allow it", func(p *parts) { p.node.Raw, p.pool = true, &structs.Pool{Name: structs.PoolDefault} }, "scheduler.pool_raw"},
		{"raw node in a pool that allows it", func(p *parts) { p.node.Raw, p.pool = true, &structs.Pool{Name: structs.PoolDefault, Raw: true} }, ""},
		{"container on a raw node", func(p *parts) {
			p.node.Raw, p.node.Drivers, p.job.Task.Driver = true, []string{structs.DriverDocker}, structs.DriverDocker
		}, ""},
		{"RDMA", func(p *parts) { p.rdma(); p.node.RDMA = true }, ""},
		{"no RDMA card", func(p *parts) { p.rdma() }, "scheduler.node_rdma"},
		{"no RDMA in the pool", func(p *parts) { p.rdma(); p.node.RDMA, p.pool.RDMA = true, false }, "scheduler.pool_rdma"},
		{"no record of the pool", func(p *parts) { p.rdma(); p.node.RDMA, p.pool = true, nil }, "scheduler.pool_rdma"},
		{"driver version", func(p *parts) { p.job.Placement.DriverVersion = ">= 535" }, ""},
		{"old driver version", func(p *parts) { p.job.Placement.DriverVersion = ">= 535.200" }, "scheduler.node_driver_version"},
		{"no driver version", func(p *parts) { p.job.Placement.DriverVersion, p.node.Devices[4].Driver = ">= 535", "" }, "scheduler.node_driver_version"},
		{"unreadable driver version", func(p *parts) { p.job.Placement.DriverVersion = "new" }, "scheduler.node_driver_version"},
		{"driver version of other devices", func(p *parts) {
			p.job.Placement.DriverVersion = ">= 535"
			p.node.Devices[4] = structs.Device{ID: "4", Kind: "huawei/npu", Driver: "23.0"}
		}, ""},
		{"driver version without devices", func(p *parts) {
			p.job.Placement.DriverVersion, p.job.Resources[0].Devices, p.gang.Placements[0].Devices = ">= 600", nil, nil
		}, ""},
		{"VIP machine", func(p *parts) { p.job.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1"}}} }, ""},
		{"no VIP machine", func(p *parts) { p.job.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n2"}}} }, "scheduler.node_not_named"},
		{"VIP machine that others use", func(p *parts) {
			p.job.VIP, p.usage.Allocs = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1"}}}, 1
		}, "scheduler.node_busy"},
		{"nominated", func(p *parts) { p.usage.NominatedFor = "k/0" }, "scheduler.node_claimed"},
		{"nominated for it", func(p *parts) { p.usage.NominatedFor = "j/0" }, ""},
		{"overfull node", func(p *parts) { p.usage.Overcommitted = true }, "scheduler.node_overcommitted"},
		{"cores held", func(p *parts) { p.usage.CPU = 3.001 }, "scheduler.node_cpu"},
		{"cores just enough", func(p *parts) { p.usage.CPU = 3 }, ""},
		{"memory held", func(p *parts) { p.usage.Memory = 7*structs.GiB + 1 }, "scheduler.node_memory"},
		{"port held", func(p *parts) { p.usage.Ports = map[int]string{8080: "x"} }, "scheduler.node_port"},
		{"dynamic port held", func(p *parts) { p.usage.Ports = map[int]string{20001: "x"} }, "scheduler.node_port"},
		{"port missing", func(p *parts) { delete(p.gang.Placements[0].Ports, "extra") }, "scheduler.refused_ports"},
		{"port not asked for", func(p *parts) { p.gang.Placements[0].Ports["more"] = 20002 }, "scheduler.refused_ports"},
		{"other port than the fixed one", func(p *parts) { p.gang.Placements[0].Ports["http"] = 8081 }, "scheduler.refused_ports"},
		{"port outside the range", func(p *parts) { p.gang.Placements[0].Ports["extra"] = 20004 }, "scheduler.refused_ports"},
		{"one port for two", func(p *parts) {
			p.job.Resources[0].Ports[0].Static, p.gang.Placements[0].Ports["http"] = 0, 20001
		}, "scheduler.refused_ports"},
		{"device held", func(p *parts) { p.usage.Devices = map[string]string{"1": "x"} }, "scheduler.node_device_held"},
		{"device sick", func(p *parts) { p.node.Devices[0].Healthy = false }, "scheduler.node_device_unhealthy"},
		{"too few devices", func(p *parts) { p.gang.Placements[0].Devices = []string{"0"} }, "scheduler.refused_devices"},
		{"one device twice", func(p *parts) { p.gang.Placements[0].Devices = []string{"0", "0"} }, "scheduler.refused_devices"},
		{"unknown device", func(p *parts) { p.gang.Placements[0].Devices = []string{"0", "9"} }, "scheduler.refused_devices"},
		{"other model", func(p *parts) { p.job.Resources[0].Devices[0].Model = "A80" }, "scheduler.refused_devices"},
		{"right model", func(p *parts) { p.job.Resources[0].Devices[0].Model = "a800" }, ""},
		{"one of two models", func(p *parts) { p.job.Resources[0].Devices[0].Models = []string{"H20", "A800"} }, ""},
		{"none of two models", func(p *parts) { p.job.Resources[0].Devices[0].Models = []string{"H20", "A80"} }, "scheduler.refused_devices"},
		{"all devices", func(p *parts) { p.all("0", "1", "2", "3", "4") }, ""},
		{"all but one device", func(p *parts) { p.all("0", "1", "2", "3") }, "scheduler.refused_devices"},
		{"all devices, one held", func(p *parts) { p.all("0", "1", "2", "3"); p.usage.Devices = map[string]string{"4": "x"} }, "scheduler.refused_devices"},
		{"all devices, one sick", func(p *parts) { p.all("0", "1", "2", "3"); p.node.Devices[4].Healthy = false }, "scheduler.refused_devices"},
		{"all devices of which there are none", func(p *parts) { p.all(); p.job.Resources[0].Devices[0].Kind = "huawei/npu" }, "scheduler.refused_devices"},
		{"fewer devices for the last of one", func(p *parts) { p.job.Resources[0].LastDevices, p.gang.Placements[0].Devices = 1, []string{"0"} }, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &parts{job: feasibleJob(), subjob: &structs.Subjob{JobID: "j", State: structs.JobQueued}, node: feasibleNode(), usage: &structs.Usage{NodeID: "n1"}}
			p.gang = &structs.GangPlan{JobID: "j", Attempt: 1, Placements: []structs.RankPlacement{{
				NodeID: "n1",
				Ports:  map[string]int{"http": 8080, "extra": 20001}, Devices: []string{"0", "1"},
			}}}
			c.change(p)
			got := ""
			reason := GangProblem(p.job, p.subjob, p.gang, p)
			if reason != nil {
				got = reason.ID
			}
			if got != c.want {
				t.Errorf("GangProblem: %q, want %q", got, c.want)
			}
		})
	}
}

// TestFractionsDoNotDrift: forty tenths of a core fill four cores exactly, in
// whatever order they come and go, and no forty-first fits.
func TestFractionsDoNotDrift(t *testing.T) {
	node, usage := feasibleNode(), &structs.Usage{}
	for i := range 10000 {
		usage.CPU += 0.1
		if i%3 == 0 {
			usage.CPU -= 0.1
		}
		if usage.CPU > 3.95 {
			for range 39 {
				usage.CPU -= 0.1
			}
		}
	}
	for RoomProblem(node, usage, structs.Resources{CPU: 0.1}) == nil {
		usage.CPU += 0.1
	}
	if got := structs.MilliCPU(usage.CPU); got != 4000 {
		t.Errorf("full at %d thousandths of a core, want 4000", got)
	}
}

func TestChooseDevicesStaysInALinkGroup(t *testing.T) {
	node := feasibleNode() // 0 and 1 in group a; 2, 3 and 4 in b
	choose := func(count int, held ...string) []string {
		usage := &structs.Usage{Devices: map[string]string{}}
		for _, id := range held {
			usage.Devices[id] = "x"
		}
		got, _ := ChooseDevices(node, usage, []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: count}})
		return got
	}
	for _, c := range []struct {
		name string
		got  []string
		want []string
	}{
		{"two fill the small group", choose(2), []string{"0", "1"}},
		{"three need the large group", choose(3), []string{"2", "3", "4"}},
		{"one goes where one is left", choose(1, "0", "2"), []string{"1"}},
		{"four span both, the large one first", choose(4), []string{"0", "2", "3", "4"}},
		{"six do not exist", choose(6), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestGangWithRDMAStaysInOnePool: between two pools there is no RDMA network.
func TestGangWithRDMAStaysInOnePool(t *testing.T) {
	nodes := map[string]*structs.Node{}
	for id, pool := range map[string]string{"n1": "p", "n2": "q", "n3": "p"} {
		nodes[id] = &structs.Node{
			ID: id, Name: id, Pool: pool, RDMA: true, Drivers: []string{"exec"}, Status: structs.NodeReady, Eligibility: structs.NodeEligible,
			Capacity: structs.Capacity{CPU: 1, Memory: structs.GiB},
		}
	}
	view := pooled{nodesOnly(func(id string) (*structs.Node, *structs.Usage) { return nodes[id], nil })}
	job := &structs.Job{ID: "j", Nodes: 2, Task: structs.Task{Driver: "exec"}, Resources: []structs.Resources{{CPU: 1, RDMA: true}}}
	for other, want := range map[string]string{"n2": "scheduler.refused_pools", "n3": ""} {
		gang := &structs.GangPlan{Attempt: 1, Placements: []structs.RankPlacement{{NodeID: "n1"}, {NodeID: other}}}
		got := ""
		if reason := GangProblem(job, &structs.Subjob{State: structs.JobQueued}, gang, view); reason != nil {
			got = reason.ID
		}
		if got != want {
			t.Errorf("n1 and %s: %q, want %q", other, got, want)
		}
	}
}

// pooled sets RDMA in every pool.
type pooled struct{ nodesOnly }

func (pooled) Pool(name string) *structs.Pool { return &structs.Pool{Name: name, RDMA: true} }

func TestChooseDevicesStaysOnANUMANode(t *testing.T) {
	node := &structs.Node{ID: "n1"}
	for i, numa := range []int{0, 0, 0, 1, 1, 1, 1, 1} {
		node.Devices = append(node.Devices, structs.Device{ID: string(rune('0' + i)), Kind: "huawei/npu", NUMANode: numa, Healthy: true})
	}
	choose := func(count int, links ...string) string {
		for i := range node.Devices {
			node.Devices[i].LinkGroup = ""
			if i < len(links) {
				node.Devices[i].LinkGroup = links[i]
			}
		}
		got, _ := ChooseDevices(node, nil, []structs.DeviceRequest{{Kind: "huawei/npu", Count: count}})
		return strings.Join(got, "")
	}
	for _, c := range []struct{ name, got, want string }{
		{"three fill the small NUMA node", choose(3), "012"},
		{"four need the large one", choose(4), "3456"},
		{"six span both, the large one whole", choose(6), "034567"},
		{"a ring that spans both beats a NUMA node", choose(2, "", "r", "", "", "r"), "14"},
		{"two rings: the NUMA node that has enough, its larger ring whole", choose(4, "a", "a", "a", "b", "b", "b", "c", "c"), "3456"},
		{"two rings of four for six", choose(6, "a", "a", "a", "a", "b", "b", "b", "b"), "012345"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

// TestChooseDevicesFindsWhatThereIs: it fails only when no way to deal the
// devices out exists, stays in a link group or on a NUMA node when one has
// enough, and what it returns is accepted.
func TestChooseDevicesFindsWhatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node, usage := &structs.Node{ID: "n1"}, &structs.Usage{Devices: map[string]string{}}
		for i := range rapid.IntRange(0, 7).Draw(t, "devices") {
			d := structs.Device{
				ID: string(rune('0' + i)), Kind: "nvidia/gpu", Model: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "model"),
				Memory: int64(rapid.IntRange(1, 2).Draw(t, "memory")), NUMANode: rapid.IntRange(0, 1).Draw(t, "numa"),
				LinkGroup: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "link"), Healthy: rapid.IntRange(0, 5).Draw(t, "health") > 0,
			}
			node.Devices = append(node.Devices, d)
			if rapid.IntRange(0, 4).Draw(t, "held") == 0 {
				usage.Devices[d.ID] = "x"
			}
		}
		var requests []structs.DeviceRequest
		for range rapid.IntRange(1, 3).Draw(t, "requests") {
			requests = append(requests, structs.DeviceRequest{
				Kind: "nvidia/gpu", Count: rapid.SampledFrom([]int{1, 2, 3, structs.DevicesAll}).Draw(t, "count"),
				Model: rapid.SampledFrom([]string{"", "A"}).Draw(t, "want"), Memory: rapid.Int64Range(0, 2).Draw(t, "bytes"),
			})
		}
		got, ok := ChooseDevices(node, usage, requests)
		exists := false
		for set := range 1 << len(node.Devices) { // every set of devices there is
			var given []string
			for i := range node.Devices {
				if set&(1<<i) != 0 {
					given = append(given, node.Devices[i].ID)
				}
			}
			exists = exists || devicesProblem(node, usage, requests, given) == nil
		}
		if ok != exists {
			t.Fatalf("chose %v %v, but there is one: %v", got, ok, exists)
		}
		if !ok {
			return
		}
		if reason := devicesProblem(node, usage, requests, got); reason != nil {
			t.Fatalf("chosen %v, refused: %s", got, reason.ID)
		}
		if len(requests) == 1 && requests[0].Count > 0 {
			staysTogether(t, node, usage, requests[0], got)
		}
	})
}

func staysTogether(t *rapid.T, node *structs.Node, usage *structs.Usage, request structs.DeviceRequest, got []string) {
	links, numas := map[string]int{}, map[int]int{}
	usedLinks, usedNUMAs := map[string]bool{}, map[int]bool{}
	for i := range node.Devices {
		d := &node.Devices[i]
		if d.Healthy && !usage.UsesDevice(d.ID) && d.Meets(request) {
			links[d.LinkGroup]++
			numas[d.NUMANode]++
		}
		if slices.Contains(got, d.ID) {
			usedLinks[d.LinkGroup], usedNUMAs[d.NUMANode] = true, true
		}
	}
	if max(links["x"], links["y"]) >= request.Count {
		if len(usedLinks) > 1 || usedLinks[""] {
			t.Fatalf("%v are in several link groups, and one has enough", got)
		}
		return
	}
	if max(numas[0], numas[1]) >= request.Count && len(usedNUMAs) > 1 {
		t.Fatalf("%v are on two NUMA nodes, and one has enough", got)
	}
}

func TestChoosePortsMovesWithStart(t *testing.T) {
	node, requests := feasibleNode(), []structs.PortRequest{{Name: "a"}, {Name: "b", Static: 20001}}
	got := map[int]bool{}
	for start := range uint64(4) {
		ports, ok := ChoosePorts(node, nil, requests, start)
		if !ok || ports["b"] != 20001 || ports["a"] == 20001 {
			t.Fatalf("start %d: %v %v", start, ports, ok)
		}
		got[ports["a"]] = true
	}
	if len(got) != 3 {
		t.Errorf("four starts gave the ports %v, want all three that are free", got)
	}
	if _, ok := ChoosePorts(node, &structs.Usage{Ports: map[int]string{20000: "x", 20002: "x", 20003: "x"}}, requests, 0); ok {
		t.Error("a port was found in a full range")
	}
}

// TestWhatIsChosenIsAccepted: whenever ChoosePorts and ChooseDevices answer,
// PlacementProblem has nothing against the answer; and room is not oversold.
func TestWhatIsChosenIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node, usage := feasibleNode(), &structs.Usage{Ports: map[int]string{}, Devices: map[string]string{}}
		for i := range node.Devices {
			node.Devices[i].Healthy = rapid.IntRange(0, 4).Draw(t, "sick") > 0
			node.Devices[i].Memory = int64(rapid.IntRange(1, 2).Draw(t, "size")) * 40 * structs.GiB
		}
		for range rapid.IntRange(1, 8).Draw(t, "ranks") {
			job := feasibleJob()
			spec := structs.Resources{CPU: float64(rapid.IntRange(0, 30).Draw(t, "cpu")) / 10, Memory: int64(rapid.IntRange(0, 4).Draw(t, "memory")) * structs.GiB}
			for i := range rapid.IntRange(0, 2).Draw(t, "ports") {
				spec.Ports = append(spec.Ports, structs.PortRequest{Name: string(rune('a' + i)), Static: rapid.SampledFrom([]int{0, 0, 80, 20000}).Draw(t, "static")})
			}
			for range rapid.IntRange(0, 2).Draw(t, "devices") {
				spec.Devices = append(spec.Devices, structs.DeviceRequest{
					Kind: "nvidia/gpu", Count: rapid.IntRange(1, 3).Draw(t, "count"),
					Memory: rapid.SampledFrom([]int64{0, 80 * structs.GiB}).Draw(t, "bytes"),
				})
			}
			ports, portsOK := ChoosePorts(node, usage, job.PortRequests(spec, 0), rapid.Uint64Range(0, 10).Draw(t, "start"))
			devices, devicesOK := ChooseDevices(node, usage, spec.Devices)
			if !portsOK || !devicesOK || RoomProblem(node, usage, spec) != nil {
				continue
			}
			placement := &structs.RankPlacement{NodeID: node.ID, Ports: ports, Devices: devices}
			if reason := PlacementProblem(job, node, usage, spec, 0, placement); reason != nil {
				t.Fatalf("chosen %+v refused: %s %v", placement, reason.ID, reason.Params)
			}
			usage.CPU += spec.CPU
			usage.Memory += spec.Memory
			for _, port := range ports {
				if _, held := usage.Ports[port]; held {
					t.Fatalf("port %d given twice", port)
				}
				usage.Ports[port] = "x"
			}
			for _, id := range devices {
				if _, held := usage.Devices[id]; held {
					t.Fatalf("device %s given twice", id)
				}
				usage.Devices[id] = "x"
			}
			if structs.MilliCPU(usage.CPU) > structs.MilliCPU(node.Capacity.CPU) || usage.Memory > node.Capacity.Memory {
				t.Fatalf("node oversold: %+v", usage)
			}
		}
	})
}

// FuzzGangProblem re-checks plans that nobody's scheduler made, for jobs of
// several sorts. Whatever passes must hold what the job asked for, on a node that
// has it and is open to it.
func FuzzGangProblem(f *testing.F) {
	f.Add([]byte(`{"job_id":"j","attempt":1,"placements":[{"node_id":"n1","ports":{"http":8080,"extra":20001},"devices":["0","1"]}]}`), uint8(0))
	f.Add([]byte(`{"attempt":1,"placements":[{"node_id":"n1","ports":{"http":8080,"extra":20001},"devices":["0","1","2","3"]}]}`), uint8(1))
	f.Add([]byte(`{"attempt":1,"placements":[{"node_id":"n1","ports":{"http":8080,"extra":20001},"devices":["0"]}]}`), uint8(2))
	f.Add([]byte(`{"attempt":1,"spec":-1,"placements":[{},{}]}`), uint8(255))
	f.Fuzz(func(t *testing.T, data []byte, sort uint8) {
		p := &parts{
			job: feasibleJob(), subjob: &structs.Subjob{JobID: "j", State: structs.JobQueued}, gang: &structs.GangPlan{}, node: feasibleNode(),
			usage: &structs.Usage{CPU: 1, Ports: map[int]string{20000: "x"}, Devices: map[string]string{"4": "x"}},
		}
		if json.Unmarshal(data, p.gang) != nil {
			return
		}
		request, want := &p.job.Resources[0].Devices[0], 2
		p.node.Devices[4].Kind = "nvidia/other"
		if sort&1 != 0 {
			request.Count, want = structs.DevicesAll, 4
		} else if sort&2 != 0 {
			p.job.Resources[0].LastDevices, want = 1, 1
		}
		refused := false
		if sort&4 != 0 {
			p.rdma()
			p.node.RDMA = sort&8 != 0
			refused = !p.node.RDMA
		}
		if sort&16 != 0 {
			p.pool = &structs.Pool{Name: p.node.PoolName(), Dedicated: true, RDMA: true}
			refused = true
		}
		if sort&32 != 0 {
			p.job.Placement.DriverVersion = "< 535"
			refused = true
		}
		if sort&64 != 0 {
			p.usage.NominatedFor = "k/1"
			refused = true
		}
		if sort&128 != 0 {
			p.job.VIP, p.usage.Allocs = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1"}}}, 1
			refused = true
		}
		if GangProblem(p.job, p.subjob, p.gang, p) != nil {
			return
		}
		g := p.gang
		if refused || len(g.Placements) != 1 || g.Attempt != 1 || g.Spec != 0 {
			t.Fatalf("accepted: %s for sort %b", data, sort)
		}
		r := g.Placements[0]
		slices.Sort(r.Devices)
		if r.NodeID != "n1" || len(r.Ports) != 2 || r.Ports["http"] != 8080 || r.Ports["extra"] < 20001 || r.Ports["extra"] > 20003 ||
			len(slices.Compact(r.Devices)) != want || slices.Contains(r.Devices, "4") {
			t.Fatalf("accepted: %s for sort %b", data, sort)
		}
	})
}

// TestRDMAByNodes: a spec of this version goes where the nodes have RDMA, unless the
// pool's record denies it; one of an older version needs the record's promise, as
// when its entries were written.
func TestRDMAByNodes(t *testing.T) {
	job := &structs.Job{Task: structs.Task{Driver: structs.DriverExec}}
	node := &structs.Node{Name: "n", RDMA: true, Drivers: []string{structs.DriverExec}}
	for _, c := range []struct {
		what    string
		byNodes bool
		pool    *structs.Pool
		may     bool
	}{
		{"no record", true, nil, true},
		{"a silent record", true, &structs.Pool{}, true},
		{"a promise", true, &structs.Pool{RDMA: true}, true},
		{"a denial", true, &structs.Pool{NoRDMA: true}, false},
		{"no record, older", false, nil, false},
		{"a silent record, older", false, &structs.Pool{}, false},
		{"a promise, older", false, &structs.Pool{RDMA: true}, true},
	} {
		spec := structs.Resources{RDMA: true, RDMAByNodes: c.byNodes}
		if got := PoolProblem(job, spec, node, c.pool) == nil; got != c.may {
			t.Errorf("%s: allowed %v", c.what, got)
		}
		if got := SpecProblem(job, spec, &structs.Node{}); got == nil {
			t.Errorf("%s: a node without RDMA is allowed", c.what)
		}
	}
}
