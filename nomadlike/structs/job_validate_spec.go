package structs

import (
	"strings"
)

func (v *validator) resources(j *Job) {
	switch {
	case len(j.Resources) == 0:
		v.add("resources", "job.missing", "")
		return
	case len(j.Resources) > AlternativesMax:
		v.add("resources", "job.too_many", "", "what", "resources", "count", len(j.Resources), "max", AlternativesMax)
		return
	}
	labels := make(map[string]bool, len(j.Resources))
	for i := range j.Resources {
		r, path := &j.Resources[i], IndexedPath("resources", i)
		if len(j.Resources) > 1 && r.Label == "" {
			v.add(path+".label", "job.label_missing", "job.label_missing.hint")
		}
		if r.Label != "" && v.label(path+".label", r.Label) {
			if labels[r.Label] {
				v.add(path+".label", "job.duplicate", "", "value", r.Label)
			}
			labels[r.Label] = true
		}
		v.spec(path, r)
		v.devices(j, path, r.Devices)
		v.lastDevices(j, path, r)
		v.ports(j, path, r.Ports)
	}
}

// label checks the label of a spec: it is shown, never used as a path.
func (v *validator) label(path, label string) bool {
	if len(label) > NameLengthMax {
		v.add(path, "job.too_long", "", "length", len(label), "max", NameLengthMax)
		return false
	}
	for i := 0; i < len(label); i++ {
		c := lowerASCII(label[i])
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte("-_.", c) < 0 {
			v.add(path, "job.label_characters", "", "label", label)
			return false
		}
	}
	return true
}

func (v *validator) spec(path string, r *Resources) {
	v.integer(path+".sku", r.SKU, 0, SKUMax)
	skuGives := r.SKU > 0 // cores and memory come with the SKU unless they are given too
	if cpu := r.CPU; !finite(cpu) || (cpu < CPUMin || cpu > CPUMax) && (cpu != 0 || !skuGives) {
		v.add(path+".cpu", "job.range", "", "value", cpu, "min", CPUMin, "max", CPUMax)
	}
	memoryOK := r.Memory == 0 && skuGives || v.size(path+".memory", r.Memory, MemoryMin, MemoryMax)
	if v.size(path+".shared_memory", r.SharedMemory, 0, MemoryMax) && memoryOK && r.Memory != 0 && r.SharedMemory > r.Memory {
		v.add(path+".shared_memory", "job.shared_memory", "job.shared_memory.hint",
			"shared", FormatSize(r.SharedMemory), "memory", FormatSize(r.Memory))
	}
	if r.Disk != 0 {
		v.size(path+".disk", r.Disk, DiskMin, DiskMax)
	}
}

func (v *validator) devices(j *Job, path string, devices []DeviceRequest) {
	if len(devices) > DevicesMax {
		v.add(path+".device", "job.too_many", "", "what", "device", "count", len(devices), "max", DevicesMax)
		return
	}
	for i := range devices {
		d, path := &devices[i], IndexedPath(path+".device", i)
		if !deviceKind(d.Kind) {
			v.add(path+".kind", "job.device_kind", "job.device_kind.hint", "kind", d.Kind)
		}
		countOK := d.Count == DevicesAll || v.integer(path+".count", d.Count, 1, DeviceCountMax)
		if d.Count == DevicesAll && len(d.IDs) > 0 {
			v.excludes(path+".ids", path+`.count = "all"`)
			continue
		}
		v.word(path+".model", d.Model, WordMax)
		v.models(path, d)
		v.size(path+".memory", d.Memory, 0, MemoryMax)
		if len(d.IDs) == 0 {
			continue
		}
		// A list for each of the named nodes is what their numbers become at admission.
		if countOK && len(d.IDs) != d.Count && len(d.IDs) != d.Count*len(j.Placement.Nodes) {
			v.add(path+".ids", "job.device_ids", "", "ids", len(d.IDs), "count", d.Count)
		}
		if len(j.Placement.Nodes) == 0 {
			v.add(path+".ids", "job.device_ids_pinned", "job.device_ids_pinned.hint")
		}
		seen := make(map[string]bool, len(d.IDs))
		for k, id := range d.IDs {
			idPath := IndexedPath(path+".ids", k)
			if k >= DeviceCountMax {
				break
			}
			if id == "" {
				v.add(idPath, "job.missing", "")
			} else if v.word(idPath, id, WordMax) && seen[id] {
				v.add(idPath, "job.duplicate", "", "value", id)
			}
			seen[id] = true
		}
	}
}

// lastDevices checks that only the last node of several gets fewer devices, of
// the one request that is counted.
func (v *validator) lastDevices(j *Job, path string, r *Resources) {
	switch {
	case r.LastDevices == 0:
	case j.Nodes < 2 || len(r.Devices) != 1 || r.Devices[0].Count < 2:
		v.add(path+".last_devices", "job.last_devices", "")
	default:
		v.integer(path+".last_devices", r.LastDevices, 1, r.Devices[0].Count-1)
	}
}

// models checks the models that are equally welcome.
func (v *validator) models(path string, d *DeviceRequest) {
	if len(d.Models) > AlternativesMax {
		v.add(path+".models", "job.too_many", "", "what", "models", "count", len(d.Models), "max", AlternativesMax)
		return
	}
	if d.Model != "" && len(d.Models) > 0 {
		v.excludes(path+".models", path+".model")
	}
	for i, model := range d.Models {
		if path := IndexedPath(path+".models", i); model == "" {
			v.add(path, "job.missing", "")
		} else {
			v.word(path, model, WordMax)
		}
	}
}

// deviceKind reports whether kind has the form vendor/type.
func deviceKind(kind string) bool {
	vendor, what, found := strings.Cut(kind, "/")
	return found && NameProblem(vendor) == "" && NameProblem(what) == ""
}

func (v *validator) ports(j *Job, path string, ports []PortRequest) {
	if len(ports) > PortsMax {
		v.add(path+".port", "job.too_many", "", "what", "port", "count", len(ports), "max", PortsMax)
		return
	}
	names := make(map[string]bool, len(ports))
	numbers := make(map[int]bool, len(ports))
	for i, p := range ports {
		path := IndexedPath(path+".port", i)
		if v.name(path+".name", p.Name) {
			switch {
			case p.Name == MasterPortName:
				v.add(path+".name", "job.port_master", "job.port_master.hint", "name", p.Name)
			case names[p.Name]:
				v.add(path+".name", "job.duplicate", "", "value", p.Name)
			}
			names[p.Name] = true
		}
		if !v.integer(path+".static", p.Static, 0, PortMax) || p.Static == 0 {
			continue
		}
		if numbers[p.Static] || p.Static == j.Distributed.MasterPort {
			v.add(path+".static", "job.duplicate", "", "value", p.Static)
		}
		numbers[p.Static] = true
	}
}

func (v *validator) placement(j *Job) {
	p := &j.Placement
	if p.Pool != "" {
		v.name("placement.pool", p.Pool)
		if len(p.Nodes) > 0 {
			v.excludes("placement.nodes", "placement.pool")
		}
	}
	if p.DriverVersion != "" {
		v.driverVersion(j)
		if len(p.Nodes) > 0 {
			v.excludes("placement.nodes", "placement.driver_version")
		}
	}
	v.choice("placement.spread_or_pack", p.SpreadOrPack, false, Pack, Spread)
	if len(p.Nodes) > NamedNodesMax {
		v.add("placement.nodes", "job.too_many", "", "what", "placement.nodes", "count", len(p.Nodes), "max", NamedNodesMax)
		return
	}
	if n := len(p.Nodes); n > 0 && n < j.Nodes {
		v.add("placement.nodes", "job.named_too_few", "", "named", n, "nodes", j.Nodes)
	}
	seen := make(map[string]bool, len(p.Nodes))
	for i, node := range p.Nodes {
		path := IndexedPath("placement.nodes", i)
		switch {
		case !nodeName(node):
			v.add(path, "job.node_name", "", "name", node)
		case seen[node]:
			v.add(path, "job.duplicate", "", "value", node)
		}
		seen[node] = true
	}
}

// vip checks the machines that a VIP job chooses: one for each of its nodes.
func (v *validator) vip(j *Job) {
	if j.VIP == nil {
		return
	}
	machines := j.VIP.Machines
	switch {
	case len(machines) == 0:
		v.add("vip.machine", "job.missing", "job.vip.hint")
		return
	case len(machines) > NamedNodesMax:
		v.add("vip.machine", "job.too_many", "", "what", "vip.machine", "count", len(machines), "max", NamedNodesMax)
		return
	case len(machines) != j.Nodes:
		v.add("vip.machine", "job.vip_machines", "job.vip_machines.hint", "machines", len(machines), "nodes", j.Nodes)
	}
	seen, asks := make(map[string]bool, len(machines)), false
	for i, m := range machines {
		path := IndexedPath("vip.machine", i)
		switch {
		case !nodeName(m.Node):
			v.add(path+".node", "job.node_name", "", "name", m.Node)
		case seen[m.Node]:
			v.add(path+".node", "job.duplicate", "", "value", m.Node)
		}
		seen[m.Node] = true
		v.choice(path+".busy", m.Busy, false, BusyWait, BusyAsk, BusyKill)
		asks = asks || m.Busy == BusyAsk
	}
	if ask := j.VIP.Ask; ask != nil {
		v.choice("vip.ask.silence", ask.Silence, false, BusyWait, BusyKill)
		if ask.For < ConsentForLeast || ask.For > ConsentForMax {
			v.add("vip.ask.for", "job.ask_for", "", "least", FormatDuration(ConsentForLeast), "max", FormatDuration(ConsentForMax))
		}
		if !PlainText(ask.Message, ConsentMessageMax) {
			v.add("vip.ask.message", "job.ask_message", "", "max", ConsentMessageMax)
		}
		if !asks {
			v.add("vip.ask", "job.ask_nobody", "job.ask_nobody.hint")
		}
	}
	if len(j.Placement.Nodes) > 0 {
		v.excludes("vip", "placement.nodes")
	}
	if j.Preemptible {
		v.excludes("vip", "preemptible")
	}
	if j.Batched() {
		v.excludes("vip", "batch")
	}
	if j.Elastic != nil {
		v.excludes("vip", "elastic")
	}
}

// nodeName reports whether text can be the name or id of a node: a host name.
func nodeName(text string) bool {
	const hostNameMax = 253
	if text == "" || len(text) > hostNameMax || text[0] == '-' || text[0] == '.' || text[len(text)-1] == '.' {
		return false
	}
	for i := 0; i < len(text); i++ {
		c := lowerASCII(text[i])
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte("-_.", c) < 0 {
			return false
		}
	}
	return true
}

// driverVersion checks a constraint such as ">= 535, < 560", which only makes
// sense for specs with devices.
func (v *validator) driverVersion(j *Job) {
	const path = "placement.driver_version"
	text := j.Placement.DriverVersion
	if !v.word(path, text, WordMax) {
		return
	}
	if _, ok := ParseVersionConstraint(text); !ok {
		v.add(path, "job.driver_version", "job.driver_version.hint", "value", text)
		return
	}
	for i := range j.Resources {
		if r := &j.Resources[i]; len(r.Devices) == 0 && r.SKU == 0 { // an SKU brings its own
			v.add(path, "job.driver_version_devices", "", "resources", IndexedPath("resources", i))
			return
		}
	}
}
