package structs

import (
	"maps"
	"slices"
	"strings"
)

// Limits of one pool.
const (
	PoolNodesMax       = NodesMax                // nodes that a pool lists
	PoolConstraintsMax = 64                      // attributes
	AgeWeightMax       = 1e6                     // device-hours for each hour in the queue
	HalfLifeMin        = Duration(1_000_000_000) // a second
)

// Validate lists everything that is wrong with a pool's record, in the order of
// its fields; an empty list means that it may be stored. Pure.
func (p *Pool) Validate() []Problem {
	v := &validator{}
	v.name("name", p.Name)
	v.text("description", p.Description, DescriptionMax)
	v.poolNodes(p)
	v.constraints(p)
	if p.Exec != nil {
		v.problems = append(v.problems, p.Exec.Problems("exec")...)
	}
	if p.SKU != nil {
		v.unit(p.SKU)
	}
	known := v.choice("order", string(p.Order), true, string(OrderSubmission), string(OrderFair))
	if p.HalfLife != 0 {
		v.span("half_life", p.HalfLife, HalfLifeMin, SpanMax)
	}
	v.fraction("age_weight", p.AgeWeight, AgeWeightMax)
	if known && p.Order != OrderFair && (p.HalfLife != 0 || p.AgeWeight != 0) {
		v.add("order", "pool.fair_only", "pool.fair_only.hint")
	}
	v.span("defaults.time_limit", p.Defaults.TimeLimit, 0, SpanMax)
	v.choice("defaults.priority", string(p.Defaults.Priority), true, string(PriorityNormal), string(PriorityUrgent))
	v.ceilings(&p.Ceilings)
	v.underOwnCeilings(p)
	v.floors(p)
	v.taskDefaults(&p.Defaults.Task)
	return v.problems
}

// taskDefaults checks what a record sets for tasks.
func (v *validator) taskDefaults(t *TaskDefaults) {
	v.env("defaults.env", t.Env)
	if t.Arguments != "" {
		v.arguments("defaults.arguments", t.Arguments)
	}
}

// floors checks the least of each node, and that the pool's SKU says what its
// units are.
func (v *validator) floors(p *Pool) {
	f := &p.Floors
	v.integer("floors.sku", f.SKU, 0, DeviceCountMax)
	if f.SKU > 0 && p.SKU == nil {
		v.add("floors.sku", "pool.no_sku", "pool.no_sku.hint", "pool", p.Name)
	}
	v.fraction("floors.cpu", f.CPU, CPUMax)
	if f.Memory != 0 {
		v.size("floors.memory", f.Memory, 0, MemoryMax)
	}
	v.integer("floors.devices", f.Devices, 0, DeviceCountMax)
}

// fraction checks a number between 0 and high.
func (v *validator) fraction(path string, value, high float64) {
	if !finite(value) || value < 0 || value > high {
		v.add(path, "job.range", "", "value", value, "min", 0, "max", int64(high))
	}
}

func (v *validator) poolNodes(p *Pool) {
	if len(p.Nodes) > PoolNodesMax {
		v.add("nodes", "job.too_many", "", "what", "nodes", "count", len(p.Nodes), "max", PoolNodesMax)
		return
	}
	seen := make(map[string]bool, len(p.Nodes))
	for i, node := range p.Nodes {
		path := IndexedPath("nodes", i)
		switch {
		case !nodeName(node):
			v.add(path, "job.node_name", "", "name", node)
		case seen[node]:
			v.add(path, "job.duplicate", "", "value", node)
		}
		seen[node] = true
	}
}

func (v *validator) constraints(p *Pool) {
	if len(p.Constraints) > PoolConstraintsMax {
		v.add("constraints", "job.too_many", "", "what", "constraints", "count", len(p.Constraints), "max", PoolConstraintsMax)
		return
	}
	for _, attribute := range slices.Sorted(maps.Keys(p.Constraints)) {
		path, values := KeyedPath("constraints", attribute), p.Constraints[attribute]
		if attribute == "" || values == "" {
			v.add(path, "job.missing", "")
		}
		if v.word(path, attribute, WordMax) && v.text(path, values, MetaValueMax) && values != "" && slices.Contains(strings.Split(values, "|"), "") {
			v.add(path, "pool.constraint", "pool.constraint.hint", "value", values)
		}
	}
}

// unit checks what one unit of a SKU is.
func (v *validator) unit(u *SKU) {
	if !finite(u.CPU) || u.CPU < CPUMin || u.CPU > CPUMax {
		v.add("sku.cpu", "job.range", "", "value", u.CPU, "min", CPUMin, "max", CPUMax)
	}
	v.size("sku.memory", u.Memory, MemoryMin, MemoryMax)
	if len(u.Devices) > DevicesMax {
		v.add("sku.device", "job.too_many", "", "what", "device", "count", len(u.Devices), "max", DevicesMax)
		return
	}
	for i := range u.Devices {
		d, path := &u.Devices[i], IndexedPath("sku.device", i)
		if !deviceKind(d.Kind) {
			v.add(path+".kind", "job.device_kind", "job.device_kind.hint", "kind", d.Kind)
		} else if slices.ContainsFunc(u.Devices[:i], func(other DeviceRequest) bool { return other.Kind == d.Kind }) {
			v.add(path+".kind", "job.duplicate", "", "value", d.Kind)
		}
		v.integer(path+".count", d.Count, 1, DeviceCountMax)
		v.word(path+".model", d.Model, WordMax)
		v.models(path, d)
		v.size(path+".memory", d.Memory, 0, MemoryMax)
		if len(d.IDs) > 0 {
			v.add(path+".ids", "pool.sku_ids", "")
		}
	}
}

// ceilings checks the bounds of a record.
func (v *validator) ceilings(c *PoolCeilings) {
	v.span("ceilings.time_limit", c.TimeLimit, 0, SpanMax)
	v.integer("ceilings.nodes", c.Nodes, 0, NodesMax)
	v.integer("ceilings.devices", c.Devices, 0, NodesMax*DeviceCountMax)
	v.integer("ceilings.max_resumes", c.MaxResumes, 0, RestartsMax)
	v.span("ceilings.grace", c.Grace, 0, GraceMax)
	v.span("ceilings.hold", c.Hold, 0, HoldMax)
}

// underOwnCeilings checks that a pool's defaults are within its ceilings.
func (v *validator) underOwnCeilings(p *Pool) {
	c := &p.Ceilings
	v.span("defaults.hold", p.Defaults.Hold, 0, HoldMax)
	if c.Hold > 0 && p.Defaults.Hold > c.Hold {
		v.add("defaults.hold", "pool.default_over", "", "value", FormatDuration(p.Defaults.Hold), "max", FormatDuration(c.Hold))
	}
	if c.TimeLimit > 0 && p.Defaults.TimeLimit > c.TimeLimit {
		v.add("defaults.time_limit", "pool.default_over", "", "value", FormatDuration(p.Defaults.TimeLimit), "max", FormatDuration(c.TimeLimit))
	}
}
