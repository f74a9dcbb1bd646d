package forecast

import (
	"math/bits"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// driversSaid bounds the driver versions that one help names.
const driversSaid = 4

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
	for _, s := range h.ground().sites {
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
	return versions[:min(len(versions), driversSaid)]
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
