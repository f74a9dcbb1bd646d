package forecast

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// driversSaid bounds the driver versions that one help names.
const driverVersionsMax = 4

// spread tries the devices of one rank on several nodes, where no node has as
// many: in equal parts, as large as nodes have them. Where even that finds too few
// nodes, it tries the devices of the largest node.
func (h *helper) spread() {
	spec := h.job.Resources[0]
	if h.before.Verdict != VerdictNever || len(spec.Devices) != 1 || spec.LastDevices > 0 || len(spec.Devices[0].IDs) > 0 {
		return
	}
	was := spec.Devices[0].Count
	most := h.asIs.devices()
	if was < 2 || most == 0 || most >= was {
		return
	}
	for part := most; part > 0; part-- {
		nodes := was / part * h.job.Nodes
		if was%part != 0 || nodes > structs.NodesMax {
			continue
		}
		reason := structs.NewReason("forecast.help_spread", "nodes", nodes, "devices", part, "kind", spec.Devices[0].Kind, "was", h.job.Nodes, "had", was)
		if h.parted(Help{Reason: *reason, Kind: HelpSpread, Nodes: nodes, Devices: part}, nodes, part) {
			return
		}
	}
	reason := structs.NewReason("forecast.help_devices", "devices", most, "kind", spec.Devices[0].Kind, "had", was)
	h.parted(Help{Reason: *reason, Kind: HelpDevices, Devices: most}, h.job.Nodes, most)
}

// parted offers so many nodes with so many devices each, and with the part of
// the cores and of the memory that belongs to them.
func (h *helper) parted(help Help, nodes, devices int) bool {
	job := *h.job
	spec := job.Resources[0]
	was := spec.Devices[0].Count
	spec.Devices = slices.Clone(spec.Devices)
	spec.Devices[0].Count = devices
	spec.CPU = spec.CPU * float64(devices) / float64(was)
	spec.Memory = spec.Memory / int64(was) * int64(devices)
	job.Resources, job.Nodes = []structs.Resources{spec}, nodes
	return h.offer(help, h.newcomerOf(&job, h.subjob, 0, h.probe))
}

// devices is how many of the devices that a rank asks for the largest node has.
func (n *newcomer) devices() int {
	most := 0
	for at := range n.tests {
		for _, a := range n.tests[at].asks {
			most = max(most, bits.OnesCount64(a.of))
		}
	}
	return most
}

// driver tries the job without the driver version that it wants.
func (h *helper) driver() {
	want := h.job.Placement.DriverVersion
	if want == "" || len(h.job.Placement.Nodes) > 0 {
		return
	}
	job := *h.job
	job.Placement.DriverVersion = ""
	reason := structs.NewReason("forecast.help_driver_version", "want", want, "versions", strings.Join(h.drivers(&job), ", "))
	h.offer(Help{Reason: *reason, Kind: HelpDriverVersion}, h.newcomerOf(&job, h.subjob, 0, h.probe))
}

// drivers lists versions of the drivers of devices that the job could get.
func (h *helper) drivers(job *structs.Job) []string {
	var versions []string
	for _, s := range h.view().sites {
		if s.node == nil || !h.able(job, job.Resources[0], s.node) {
			continue
		}
		for i := range s.node.Devices {
			if d := &s.node.Devices[i]; d.Driver != "" && !slices.Contains(versions, d.Driver) && slices.ContainsFunc(job.Resources[0].Devices, d.Meets) {
				versions = append(versions, d.Driver)
			}
		}
	}
	slices.Sort(versions)
	return versions[:min(len(versions), driverVersionsMax)]
}

// anywhere tries the job on other nodes than those that it names.
func (h *helper) anywhere() {
	if len(h.job.Placement.Nodes) == 0 {
		return
	}
	job := *h.job
	job.Placement.Nodes = nil
	h.offer(Help{Reason: *structs.NewReason("forecast.help_any_node"), Kind: HelpAnyNode}, h.newcomerOf(&job, h.subjob, 0, h.probe))
}

// withoutRDMA tries the job on nodes without RDMA.
func (h *helper) withoutRDMA() {
	if !h.job.Resources[0].RDMA {
		return
	}
	job := *h.job
	needsNoRDMA(&job)
	h.offer(Help{Reason: *structs.NewReason("forecast.help_no_rdma"), Kind: HelpNoRDMA}, h.newcomerOf(&job, h.subjob, 0, h.probe))
}

// resourcesLeast is the part of what a job asks for that is still offered.
const resourcesLeast = 0.25

// resources tries fewer cores and less memory on a node: as many nodes as the job
// needs have so much at all, where too few have what it asks for, and else so much
// is free on them now.
func (h *helper) resources() {
	spec := h.job.Resources[0]
	small := spec
	small.CPU, small.Memory, small.SharedMemory = 0, 0, 0
	var all []capacity.Amount
	for _, s := range h.view().sites {
		if s.node == nil || !h.able(h.job, small, s.node) {
			continue
		}
		if h.before.Verdict == VerdictNever {
			all = append(all, s.node.FreeBeside(nil))
		} else if s.nominatedFor == "" && h.open(h.job, s.node) && fits(asksOf(s.node, spec.Devices), s.free.devices) {
			all = append(all, s.free.Amount)
		}
	}
	need := h.asIs.least
	all = slices.DeleteFunc(all, func(a capacity.Amount) bool {
		return cores(a) < resourcesLeast*spec.CPU || float64(a.Memory) < resourcesLeast*float64(spec.Memory)
	})
	if need < 1 || len(all) < need {
		return
	}
	slices.SortFunc(all, func(a, b capacity.Amount) int { return cmp.Compare(b.CPU, a.CPU) })
	cpu, memory := min(spec.CPU, cores(all[need-1])), spec.Memory
	for _, a := range all[:need] {
		memory = min(memory, a.Memory)
	}
	if cpu >= spec.CPU && memory >= spec.Memory {
		return
	}
	job := *h.job
	less := spec
	less.CPU, less.Memory = cpu, memory
	job.Resources = []structs.Resources{less}
	reason := structs.NewReason("forecast.help_resources", "cpu", cpu, "memory", structs.FormatSize(memory), "was_cpu", spec.CPU, "was_memory", structs.FormatSize(spec.Memory))
	h.offer(Help{Reason: *reason, Kind: HelpResources, CPU: cpu, Memory: memory}, h.newcomerOf(&job, h.subjob, 0, h.probe))
}

// cores is an amount's share of them as a job writes it.
func cores(a capacity.Amount) float64 { return float64(a.CPU) / 1000 }

func needsNoRDMA(job *structs.Job) bool {
	spec := job.Resources[0]
	if !spec.RDMA {
		return false
	}
	spec.RDMA = false
	job.Resources = []structs.Resources{spec}
	return true
}

func ofAnyModel(job *structs.Job) bool {
	spec := job.Resources[0]
	if !slices.ContainsFunc(spec.Devices, func(d structs.DeviceRequest) bool { return d.Model != "" }) {
		return false
	}
	spec.Devices = slices.Clone(spec.Devices)
	for i := range spec.Devices {
		spec.Devices[i].Model = ""
	}
	job.Resources = []structs.Resources{spec}
	return true
}

// relaxations are demands that a job may give up, by the words that name them.
var relaxations = []struct {
	word string
	give func(*structs.Job) bool // false: it does not make the demand
}{
	{"help_driver_version", func(j *structs.Job) bool {
		had := j.Placement.DriverVersion != ""
		j.Placement.DriverVersion = ""
		return had
	}},
	{"help_any_node", func(j *structs.Job) bool {
		had := len(j.Placement.Nodes) > 0
		j.Placement.Nodes = nil
		return had
	}},
	{"help_no_rdma", needsNoRDMA},
	{"help_any_model", ofAnyModel},
}

// two tries to give up two demands of a job that never starts as it stands, and
// that no single change would help.
func (h *helper) two() {
	if h.before.Verdict != VerdictNever || len(h.list) > 0 {
		return
	}
	for i, first := range relaxations {
		for _, second := range relaxations[i+1:] {
			job := *h.job
			if !first.give(&job) || !second.give(&job) {
				continue
			}
			reason := structs.NewReason("forecast.help_two", "first", first.word, "second", second.word)
			h.offer(Help{Reason: *reason, Kind: HelpTwo}, h.newcomerOf(&job, h.subjob, 0, h.probe))
		}
	}
}
