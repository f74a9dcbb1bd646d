package structs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// SetDefaults fills what a job that stands in the pool leaves out, before
// Job.SetDefaults does, and says what it chose. It changes j in place. A nil
// pool, one without a record, chooses nothing.
func (p *Pool) SetDefaults(j *Job) []Default {
	if p == nil {
		return nil
	}
	d := defaulter{from: FromPool}
	if p.Defaults.Priority != "" {
		fill(&d, "priority", &j.Priority, p.Defaults.Priority)
	}
	if p.Defaults.TimeLimit != 0 {
		fill(&d, "time_limit", &j.TimeLimit, p.Defaults.TimeLimit)
	}
	if p.Defaults.Hold != 0 && j.Debug != nil {
		fill(&d, "debug.hold", &j.Debug.Hold, p.Defaults.Hold)
	}
	d.task(j, &p.Defaults.Task)
	return d.chosen
}

// SetDefaults fills what a job of the project leaves out, before those of its
// pool do, and says what it chose. It changes j in place. A nil project, one
// without a record, chooses nothing.
func (p *Project) SetDefaults(j *Job) []Default {
	if p == nil {
		return nil
	}
	d, of := defaulter{from: FromProject}, &p.JobDefaults
	if of.Pool != "" && len(j.Placement.Nodes) == 0 && j.VIP == nil {
		fill(&d, "placement.pool", &j.Placement.Pool, of.Pool)
	}
	if of.Priority != "" {
		fill(&d, "priority", &j.Priority, of.Priority)
	}
	if of.TimeLimit != 0 {
		fill(&d, "time_limit", &j.TimeLimit, of.TimeLimit)
	}
	if of.Image != "" && j.Task.Driver == DriverDocker {
		fill(&d, "task.image", &j.Task.Image, of.Image)
	}
	if of.OutputStorage != "" && j.Output != "" {
		fill(&d, "output_storage", &j.OutputStorage, of.OutputStorage)
	}
	if of.Notify != nil && j.Notify == nil {
		const at = "notify"
		j.Notify = of.Notify.Copy()
		d.chosen = append(d.chosen,
			Default{Path: at + ".on", Value: strings.Join(of.Notify.On, ", "), From: d.from},
			Default{Path: at + ".to", Value: of.Notify.To, From: d.from})
	}
	d.task(j, &p.Defaults)
	return d.chosen
}

// task fills in what a record says where the task of a job says nothing.
func (d *defaulter) task(j *Job, t *TaskDefaults) {
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		if _, set := j.Task.Env[name]; set {
			continue
		}
		if j.Task.Env == nil {
			j.Task.Env = make(map[string]string, len(t.Env))
		}
		j.Task.Env[name] = t.Env[name]
		d.chosen = append(d.chosen, Default{Path: KeyedPath("task.env", name), Value: t.Env[name], From: d.from})
	}
	if t.Arguments != "" {
		fill(d, "task.arguments", &j.Task.Arguments, t.Arguments)
	}
}

// Admit returns the job as the pool takes it, its SKU multiples resolved, or
// everything that the pool has against it. The job itself stays as it is: it
// has its defaults and is valid. p is the record of the pool that the job names,
// or of PoolDefault when it names none or names nodes; nil when that has no
// record. server/admit calls it before the log. Pure.
func (p *Pool) Admit(j *Job) (*Job, []Problem) {
	v := &validator{}
	admitted := j.Copy()
	for i := range admitted.Resources {
		spec, path := &admitted.Resources[i], IndexedPath("resources", i)
		resolved, problems := p.Resolve(*spec, path)
		*spec = resolved
		v.problems = append(v.problems, problems...)
		spec.RDMAByNodes = spec.RDMA
		if spec.RDMA && j.Placement.Pool != "" && !p.MayRDMA(*spec) {
			v.add(path+".rdma", "pool.no_rdma", "pool.no_rdma.hint", "pool", p.name())
		}
	}
	v.account(p, j)
	if p != nil && p.Ceilings.NoCheckpoint && j.Checkpoint != nil {
		hint := "pool.no_checkpoint.hint"
		if p.CeilingsBy == "" { // set before that was written down
			hint = "pool.no_checkpoint_old.hint"
		}
		v.add("checkpoint", "pool.no_checkpoint", hint, "pool", p.Name, "by", cmp.Or(p.CeilingsBy, nobody))
	}
	if p != nil && len(j.Placement.Nodes) == 0 {
		texts := ceilingTexts{
			over: "pool.ceiling", overHint: "pool.ceiling.hint", devices: "pool.ceiling_devices", params: []any{"pool", p.Name, "by", cmp.Or(p.CeilingsBy, nobody)},
			all: "pool.ceiling_all", allHint: "pool.ceiling_all.hint", missing: "pool.limit_missing", missingHint: "pool.limit_missing.hint",
		}
		if p.CeilingsBy == "" {
			texts.overHint, texts.allHint, texts.missingHint = "project.ceiling.hint", "project.ceiling_all.hint", "project.limit_missing.hint"
		}
		v.underCeilings(&p.Ceilings, admitted, &texts)
		v.overFloors(p, admitted)
	}
	return admitted, v.problems
}

// name is the pool's name, also without a record.
func (p *Pool) name() string {
	if p == nil {
		return PoolDefault
	}
	return p.Name
}

// Admit lists everything that the project has against a job, which its pool has
// admitted: that it is archived, and what is over its ceilings, with who set them.
// A nil project, one without a record, has nothing against any. Pure.
func (p *Project) Admit(admitted *Job) []Problem {
	if p == nil {
		return nil
	}
	v := &validator{}
	if p.Archived {
		v.add("project", "project.archived", "project.archived.hint", "project", p.Name, "by", p.ArchivedBy)
	}
	texts := &ceilingTexts{
		over: "project.ceiling", overHint: "project.ceiling.hint", devices: "project.ceiling_devices", params: []any{"project", p.Name, "by", p.BoundsBy},
		all: "project.ceiling_all", allHint: "project.ceiling_all.hint", missing: "project.limit_missing", missingHint: "project.limit_missing.hint",
	}
	if p.Ceilings.NoCheckpoint && admitted.Checkpoint != nil {
		v.add("checkpoint", "project.no_checkpoint", "project.ceiling.hint", texts.params...)
	}
	v.underCeilings(&p.Ceilings, admitted, texts)
	return v.problems
}

// ceilingTexts say of a job that it is over somebody's ceilings: ids of messages, and
// whose ceilings these are.
type ceilingTexts struct {
	over, overHint, devices, all, allHint, missing, missingHint string
	params                                                      []any
}

// underCeilings checks a job against what its pool, or its project, allows at most.
func (v *validator) underCeilings(c *PoolCeilings, j *Job, texts *ceilingTexts) {
	add := func(path, id, hint string, params ...any) {
		v.add(path, id, hint, append(slices.Clip(texts.params), params...)...)
	}
	if c.TimeLimit > 0 && j.TimeLimit == 0 {
		add("time_limit", texts.missing, texts.missingHint, "max", FormatDuration(c.TimeLimit))
	}
	over := func(path string, above bool, value, most string) {
		if above {
			add(path, texts.over, texts.overHint, "value", value, "max", most)
		}
	}
	span := func(path string, value, most Duration) {
		over(path, most > 0 && value > most, FormatDuration(value), FormatDuration(most))
	}
	number := func(path string, value, most int) {
		over(path, most > 0 && value > most, strconv.Itoa(value), strconv.Itoa(most))
	}
	span("time_limit", j.TimeLimit, c.TimeLimit)
	number("nodes", j.Nodes, c.Nodes)
	for i := range j.Resources {
		path := IndexedPath("resources", i) + ".device"
		if total := j.deviceTotal(i); c.Devices > 0 && total > c.Devices {
			add(path, texts.devices, texts.overHint, "devices", total, "max", c.Devices)
		}
		all := slices.IndexFunc(j.Resources[i].Devices, func(d DeviceRequest) bool { return d.Count == DevicesAll })
		if c.Devices > 0 && all >= 0 {
			add(IndexedPath(path, all)+".count", texts.all, texts.allHint, "max", c.Devices)
		}
	}
	if j.Checkpoint != nil {
		number("checkpoint.max_resumes", j.Checkpoint.MaxResumes, c.MaxResumes)
		span("checkpoint.grace", j.Checkpoint.Grace, c.Grace)
	}
	if j.Debug != nil {
		span("debug.hold", j.Debug.Hold, c.Hold)
	}
}

// overFloors checks a job on several nodes against the least that its pool asks
// of each. A spec in units of the pool is judged by them, any other by what they
// come to.
func (v *validator) overFloors(p *Pool, j *Job) {
	f := p.Floors
	if j.Nodes < 2 {
		return
	}
	under := func(path string, below bool, value, least string) {
		if below {
			v.add(path, "pool.floor", "pool.floor.hint", "pool", p.Name, "value", value, "min", least)
		}
	}
	for i := range j.Resources {
		spec, path, least := &j.Resources[i], IndexedPath("resources", i), f
		if spec.SKU == 0 && f.SKU > 0 && p.SKU != nil {
			least.CPU = max(f.CPU, p.SKU.CPU*float64(f.SKU))
			least.Memory = max(f.Memory, p.SKU.Memory*int64(f.SKU))
			units := 0
			for _, d := range p.SKU.Devices {
				units += d.Count
			}
			least.Devices = max(f.Devices, units*f.SKU)
		}
		under(path+".sku", spec.SKU > 0 && spec.SKU < f.SKU, strconv.Itoa(spec.SKU), strconv.Itoa(f.SKU))
		under(path+".cpu", MilliCPU(spec.CPU) < MilliCPU(least.CPU), FormatMilliCPU(MilliCPU(spec.CPU)), FormatMilliCPU(MilliCPU(least.CPU)))
		under(path+".memory", spec.Memory < least.Memory, FormatSize(spec.Memory), FormatSize(least.Memory))
		all := slices.ContainsFunc(spec.Devices, func(d DeviceRequest) bool { return d.Count == DevicesAll })
		under(path+".device", !all && spec.DeviceCount() < least.Devices, strconv.Itoa(spec.DeviceCount()), strconv.Itoa(least.Devices))
	}
}

// deviceTotal counts the devices of a whole gang under an alternative.
func (j *Job) deviceTotal(spec int) int {
	total := 0
	for rank := range min(j.Nodes, 2) { // all but the last are alike
		each := j.SpecOf(spec, j.Nodes-1-rank, j.Nodes).DeviceCount()
		if rank == 1 {
			each *= j.Nodes - 1
		}
		total += each
	}
	return total
}

// Resolve returns a spec with its SKU multiples as cores, memory and devices, or
// what the pool has against it; path is where the spec stands in the job. A
// spec without SKU multiples stays as it is, and so does one that was resolved.
// What the spec sets itself stands when it is within its multiples: cores and
// memory at most, of each kind of device exactly that many.
func (p *Pool) Resolve(spec Resources, path string) (Resources, []Problem) {
	if spec.SKU == 0 {
		return spec, nil
	}
	v := &validator{}
	if p == nil || p.SKU == nil {
		v.add(path+".sku", "pool.no_sku", "pool.no_sku.hint", "pool", p.name())
		return spec, v.problems
	}
	resolved, unit, n := spec.Copy(), p.SKU, spec.SKU
	most := func(field string) { // the product is more than any node has
		v.add(path+".sku", "pool.sku_large", "", "sku", n, "field", field)
	}
	cpu, memory := MilliCPU(unit.CPU)*int64(n), min(unit.Memory, MemoryMax)*int64(n)
	switch {
	case cpu > MilliCPU(CPUMax):
		most("cpu")
	case spec.CPU == 0:
		resolved.CPU = float64(cpu) / 1000
	case MilliCPU(spec.CPU) > cpu:
		v.overSKU(path+".cpu", n, FormatMilliCPU(MilliCPU(spec.CPU)), FormatMilliCPU(cpu))
	}
	switch {
	case memory > MemoryMax:
		most("memory")
	case spec.Memory == 0:
		resolved.Memory = memory
	case spec.Memory > memory:
		v.overSKU(path+".memory", n, FormatSize(spec.Memory), FormatSize(memory))
	}
	resolved.Devices = v.unitDevices(path, &resolved, unit)
	if spec.SharedMemory > resolved.Memory {
		v.overSKU(path+".shared_memory", n, FormatSize(spec.SharedMemory), FormatSize(resolved.Memory))
	}
	return resolved, v.problems
}

func (v *validator) overSKU(path string, sku int, value, most string) {
	v.add(path, "pool.over_sku", "", "value", value, "sku", sku, "max", most)
}

// unitDevices is what the spec asks for, completed by the devices of its SKU
// multiples.
func (v *validator) unitDevices(path string, spec *Resources, unit *SKU) []DeviceRequest {
	devices := slices.Clone(spec.Devices)
	for _, d := range unit.Devices {
		d.IDs, d.Models = nil, slices.Clone(d.Models)
		d.Count *= spec.SKU
		if d.Count > DeviceCountMax {
			v.add(path+".sku", "pool.sku_large", "", "sku", spec.SKU, "field", d.Kind)
			continue
		}
		asked, first := 0, -1
		for i, request := range spec.Devices {
			if request.Kind != d.Kind {
				continue
			}
			if first < 0 {
				first = i
			}
			if request.Model == "" && len(request.Models) == 0 {
				devices[i].Model, devices[i].Models = d.Model, d.Models
			}
			devices[i].Memory = max(request.Memory, d.Memory)
			asked += request.Count
			if request.Count == DevicesAll {
				asked = DevicesAll
				break
			}
		}
		switch {
		case first < 0:
			devices = append(devices, d)
		case asked != d.Count && asked != DevicesAll:
			v.add(IndexedPath(path+".device", first)+".count", "pool.sku_devices", "pool.sku_devices.hint",
				"kind", d.Kind, "count", asked, "sku", spec.SKU, "want", d.Count)
		case asked == DevicesAll:
			v.add(IndexedPath(path+".device", first)+".count", "pool.sku_all", "pool.sku_devices.hint",
				"kind", d.Kind, "sku", spec.SKU, "want", d.Count)
		}
	}
	for i, request := range spec.Devices {
		if !slices.ContainsFunc(unit.Devices, func(d DeviceRequest) bool { return d.Kind == request.Kind }) {
			v.add(IndexedPath(path+".device", i)+".kind", "pool.sku_kind", "", "kind", request.Kind)
		}
	}
	return devices
}
