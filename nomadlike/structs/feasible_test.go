package structs

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func feasibleNode() *Node {
	n := &Node{ID: "n1", Name: "n1", Drivers: []string{"exec"}, Status: NodeReady, Eligibility: NodeEligible,
		Capacity: Capacity{CPU: 4, Memory: 8 * GiB, PortMin: 20000, PortMax: 20003}}
	for i, group := range []string{"a", "a", "b", "b", "b"} {
		n.Devices = append(n.Devices, Device{ID: string(rune('0' + i)), Kind: "nvidia/gpu", Model: "NVIDIA A800-SXM4-80GB", LinkGroup: group, Healthy: true})
	}
	return n
}

func feasibleJob() *Job {
	return &Job{ID: "j", Name: "j", Nodes: 1, Task: Task{Driver: "exec"}, Resources: []Resources{{
		CPU: 1, Memory: GiB,
		Ports:   []PortRequest{{Name: "http", Static: 8080}, {Name: "extra"}},
		Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 2}},
	}}}
}

// TestGangProblem breaks one thing of a good plan at a time and expects the
// reason that names it.
func TestGangProblem(t *testing.T) {
	type parts struct {
		job    *Job
		subjob *Subjob
		gang   *GangPlan
		node   *Node
		usage  *Usage
	}
	cases := []struct {
		name   string
		change func(*parts)
		want   string
	}{
		{"nothing", func(*parts) {}, ""},
		{"no usage at all", func(p *parts) { p.usage = nil }, ""},
		{"job deleted", func(p *parts) { p.job = nil }, "scheduler.refused_gone"},
		{"subjob deleted", func(p *parts) { p.subjob = nil }, "scheduler.refused_gone"},
		{"not queued", func(p *parts) { p.subjob.State = JobStopped }, "scheduler.refused_state"},
		{"old attempt", func(p *parts) { p.subjob.Attempt = 1 }, "scheduler.refused_attempt"},
		{"no such alternative", func(p *parts) { p.gang.Spec = 1 }, "scheduler.refused_spec"},
		{"negative alternative", func(p *parts) { p.gang.Spec = -1 }, "scheduler.refused_spec"},
		{"half a gang", func(p *parts) { p.job.Nodes = 2 }, "scheduler.refused_partial"},
		{"empty gang", func(p *parts) { p.job.Nodes, p.gang.Placements = 0, nil }, "scheduler.refused_partial"},
		{"one node twice", func(p *parts) {
			p.job.Nodes, p.gang.Placements = 2, append(p.gang.Placements, p.gang.Placements[0])
		}, "scheduler.refused_twice"},
		{"unknown node", func(p *parts) { p.gang.Placements[0].NodeID = "n2" }, "scheduler.node_unknown"},
		{"node lost", func(p *parts) { p.node.Status = NodeLost }, "scheduler.node_not_ready"},
		{"node cordoned", func(p *parts) { p.node.Eligibility = NodeCordoned }, "scheduler.node_not_ready"},
		{"no driver", func(p *parts) { p.node.Drivers = nil }, "scheduler.node_driver"},
		{"other pool", func(p *parts) { p.job.Placement.Pool = "p" }, "scheduler.node_pool"},
		{"other node named", func(p *parts) { p.job.Placement.Nodes = []string{"n2"} }, "scheduler.node_not_named"},
		{"node named in another pool", func(p *parts) { p.job.Placement = Placement{Nodes: []string{"n1"}, Pool: "p"} }, ""},
		{"cores held", func(p *parts) { p.usage.CPU = 3.001 }, "scheduler.node_cpu"},
		{"cores just enough", func(p *parts) { p.usage.CPU = 3 }, ""},
		{"memory held", func(p *parts) { p.usage.Memory = 7*GiB + 1 }, "scheduler.node_memory"},
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
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &parts{job: feasibleJob(), subjob: &Subjob{JobID: "j", State: JobQueued}, node: feasibleNode(), usage: &Usage{NodeID: "n1"}}
			p.gang = &GangPlan{JobID: "j", Attempt: 1, Placements: []RankPlacement{{NodeID: "n1",
				Ports: map[string]int{"http": 8080, "extra": 20001}, Devices: []string{"0", "1"}}}}
			c.change(p)
			got := ""
			reason := GangProblem(p.job, p.subjob, p.gang, nodesOnly(func(id string) (*Node, *Usage) {
				if id != p.node.ID {
					return nil, nil
				}
				return p.node, p.usage
			}))
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
	node, usage := feasibleNode(), &Usage{}
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
	for RoomProblem(node, usage, Resources{CPU: 0.1}) == nil {
		usage.CPU += 0.1
	}
	if got := MilliCPU(usage.CPU); got != 4000 {
		t.Errorf("full at %d thousandths of a core, want 4000", got)
	}
}

func TestMilliCPU(t *testing.T) {
	for _, c := range []struct {
		cores float64
		want  int64
	}{{0, 0}, {-1, 0}, {math.NaN(), 0}, {math.Inf(-1), 0}, {0.1, 100}, {1.0005, 1001}, {2.5, 2500}, {math.Inf(1), milliMax}, {1e300, milliMax}} {
		if got := MilliCPU(c.cores); got != c.want {
			t.Errorf("MilliCPU(%v) = %d, want %d", c.cores, got, c.want)
		}
	}
}

func TestModelMatches(t *testing.T) {
	for _, c := range []struct {
		model, want string
		match       bool
	}{
		{"NVIDIA A800-SXM4-80GB", "A800", true},
		{"NVIDIA A800-SXM4-80GB", "a800", true},
		{"NVIDIA A800-SXM4-80GB", "A80", false},
		{"NVIDIA A100", "A10", false},
		{"NVIDIA H200", "H20", false},
		{"Ascend910B3", "910B", true},
		{"Ascend910B3", "Ascend910B3", true},
		{"Ascend910B3", "Ascend910B4", false},
		{"Ascend1910", "910", false},
		{"", "A800", false},
		{"anything", "", true},
	} {
		if got := modelMatches(c.model, c.want); got != c.match {
			t.Errorf("modelMatches(%q, %q) = %v, want %v", c.model, c.want, got, c.match)
		}
	}
}

func TestChooseDevicesStaysInALinkGroup(t *testing.T) {
	node := feasibleNode() // 0 and 1 in group a; 2, 3 and 4 in b
	choose := func(count int, held ...string) []string {
		usage := &Usage{Devices: map[string]string{}}
		for _, id := range held {
			usage.Devices[id] = "x"
		}
		got, _ := ChooseDevices(node, usage, []DeviceRequest{{Kind: "nvidia/gpu", Count: count}})
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

func TestChoosePortsMovesWithStart(t *testing.T) {
	node, requests := feasibleNode(), []PortRequest{{Name: "a"}, {Name: "b", Static: 20001}}
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
	if _, ok := ChoosePorts(node, &Usage{Ports: map[int]string{20000: "x", 20002: "x", 20003: "x"}}, requests, 0); ok {
		t.Error("a port was found in a full range")
	}
}

// TestWhatIsChosenIsAccepted: whenever ChoosePorts and ChooseDevices answer,
// PlacementProblem has nothing against the answer; and room is not oversold.
func TestWhatIsChosenIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node, usage := feasibleNode(), &Usage{Ports: map[int]string{}, Devices: map[string]string{}}
		for i := range node.Devices {
			node.Devices[i].Healthy = rapid.IntRange(0, 4).Draw(t, "sick") > 0
			node.Devices[i].Memory = int64(rapid.IntRange(1, 2).Draw(t, "size")) * 40 * GiB
		}
		for range rapid.IntRange(1, 8).Draw(t, "ranks") {
			job := feasibleJob()
			spec := Resources{CPU: float64(rapid.IntRange(0, 30).Draw(t, "cpu")) / 10, Memory: int64(rapid.IntRange(0, 4).Draw(t, "memory")) * GiB}
			for i := range rapid.IntRange(0, 2).Draw(t, "ports") {
				spec.Ports = append(spec.Ports, PortRequest{Name: string(rune('a' + i)), Static: rapid.SampledFrom([]int{0, 0, 80, 20000}).Draw(t, "static")})
			}
			for range rapid.IntRange(0, 2).Draw(t, "devices") {
				spec.Devices = append(spec.Devices, DeviceRequest{Kind: "nvidia/gpu", Count: rapid.IntRange(1, 3).Draw(t, "count"),
					Memory: rapid.SampledFrom([]int64{0, 80 * GiB}).Draw(t, "bytes")})
			}
			ports, portsOK := ChoosePorts(node, usage, job.PortRequests(spec, 0), rapid.Uint64Range(0, 10).Draw(t, "start"))
			devices, devicesOK := ChooseDevices(node, usage, spec.Devices)
			if !portsOK || !devicesOK || RoomProblem(node, usage, spec) != nil {
				continue
			}
			placement := &RankPlacement{NodeID: node.ID, Ports: ports, Devices: devices}
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
			if MilliCPU(usage.CPU) > MilliCPU(node.Capacity.CPU) || usage.Memory > node.Capacity.Memory {
				t.Fatalf("node oversold: %+v", usage)
			}
		}
	})
}

// FuzzGangProblem re-checks plans that nobody's scheduler made. Whatever passes
// must hold what the job asked for, on a node that has it.
func FuzzGangProblem(f *testing.F) {
	f.Add([]byte(`{"job_id":"j","attempt":1,"placements":[{"node_id":"n1","ports":{"http":8080,"extra":20001},"devices":["0","1"]}]}`))
	f.Add([]byte(`{"attempt":1,"spec":-1,"placements":[{},{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var gang GangPlan
		if json.Unmarshal(data, &gang) != nil {
			return
		}
		node, usage := feasibleNode(), &Usage{CPU: 1, Ports: map[int]string{20000: "x"}, Devices: map[string]string{"4": "x"}}
		reason := GangProblem(feasibleJob(), &Subjob{State: JobQueued}, &gang, nodesOnly(func(id string) (*Node, *Usage) {
			if id != node.ID {
				return nil, nil
			}
			return node, usage
		}))
		if reason != nil {
			return
		}
		p := gang.Placements[0]
		if len(gang.Placements) != 1 || gang.Attempt != 1 || gang.Spec != 0 || p.NodeID != "n1" ||
			len(p.Ports) != 2 || p.Ports["http"] != 8080 || p.Ports["extra"] < 20001 || p.Ports["extra"] > 20003 ||
			len(p.Devices) != 2 || p.Devices[0] == p.Devices[1] || slices.Contains(p.Devices, "4") {
			t.Fatalf("accepted: %s", data)
		}
	})
}
