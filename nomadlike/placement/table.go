package placement

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// RowState reports whether a node could take a rank at once.
type RowState string

// The states of a row. UI words: 空闲 紧张.
const (
	RowIdle  RowState = "idle"  // what is asked for is free now
	RowTight RowState = "tight" // something that is asked for is not free now
)

// Row is one node of the table of available resources: what it has, what of it
// is used, and by whom.
type Row struct {
	NodeID     string    `json:"node_id"`
	Name       string    `json:"name"`
	Pool       string    `json:"pool"`
	State      RowState  `json:"state"`
	OS         string    `json:"os,omitempty"`
	Kernel     string    `json:"kernel,omitempty"`
	Drivers    []string  `json:"driver_versions,omitempty"` // of its devices, each once
	CPU        float64   `json:"cpu"`                       // cores
	CPUUsed    float64   `json:"cpu_used"`
	Memory     int64     `json:"memory"` // bytes
	MemoryUsed int64     `json:"memory_used"`
	Kinds      []KindUse `json:"kinds,omitempty"`
	Specs      []int     `json:"specs"` // which of the specs asked about could stand here, as indexes
	Now        []int     `json:"now"`   // which of them have room now
	Cards      []Card    `json:"cards,omitempty"`
}

// KindUse sums up the devices of one kind and model.
type KindUse struct {
	Kind  string `json:"kind"`
	Model string `json:"model"`
	Total int    `json:"total"`
	Used  int    `json:"used"`
	Sick  int    `json:"sick,omitempty"`
	Free  int    `json:"free"` // well, and held by nobody
}

// Card is one device of a node, or a slice of one.
type Card struct {
	Device  string `json:"device"` // id
	Index   int    `json:"index"`  // number of the physical card
	Slice   int    `json:"slice,omitempty"`
	Healthy bool   `json:"healthy"`
	Used    bool   `json:"used"`
	Job     string `json:"job,omitempty"` // who uses it, when that is known
}

// String writes the use of a card as people read it: 3:digits for a whole card,
// 1(2):digits for the second slice of card 1.
func (c Card) String() string {
	text := strconv.Itoa(c.Index)
	if c.Slice > 0 {
		text += "(" + strconv.Itoa(c.Slice) + ")"
	}
	if c.Used {
		text += ":" + c.Job
	}
	return text
}

// attrSlice is the attribute of a device that says which part of its card it is,
// from 1; device plugins write it.
const attrSlice = "slice"

// Table lists in floor order the nodes that take new work and could hold a rank
// of at least one of the needs if they held nothing, as the needs' jobs ask:
// pool, named nodes, driver and all. jobOf tells the job of an allocation. The
// floor must not change while the table is read.
func (f *Floor) Table(needs []*Need, jobOf func(allocID string) string) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		queries := make([]query, len(needs))
		for i, need := range needs {
			queries[i] = f.query(need, &need.ports, &Options{})
		}
		f.Ready()
		for pos, at := range f.layout.index {
			var specs, now []int
			for i := range queries {
				q := &queries[i]
				if !q.open.Has(pos) || !q.could(int32(pos)) {
					continue
				}
				specs = append(specs, i)
				if q.fits(int32(pos)) {
					now = append(now, i)
				}
			}
			if len(specs) > 0 && !yield(f.row(at, specs, now, jobOf)) {
				return
			}
		}
	}
}

func (f *Floor) row(at int32, specs, now []int, jobOf func(allocID string) string) Row {
	node, usage := f.sites[at].node, f.usage(at)
	row := Row{
		NodeID: node.ID, Name: node.Name, Pool: node.PoolName(), State: RowTight, OS: node.Attributes["os.pretty"],
		Kernel: node.Attributes["kernel.version"], CPU: node.Capacity.CPU, Memory: node.Capacity.Memory, Specs: specs, Now: now,
	}
	if len(now) > 0 {
		row.State = RowIdle
	}
	if usage != nil {
		row.CPUUsed, row.MemoryUsed = usage.CPU, usage.Memory
	}
	for i := range node.Devices {
		d := &node.Devices[i]
		card := Card{Device: d.ID, Index: d.Index, Healthy: d.Healthy}
		card.Slice, _ = strconv.Atoi(d.Attrs[attrSlice]) // 0: a whole card
		if usage != nil {
			var holder string
			if holder, card.Used = usage.Devices[d.ID]; holder != "" {
				card.Job = jobOf(holder)
			}
		}
		row.Cards = append(row.Cards, card)
		row.count(d, card.Used)
		if d.Driver != "" && !slices.Contains(row.Drivers, d.Driver) {
			row.Drivers = append(row.Drivers, d.Driver)
		}
	}
	slices.SortFunc(row.Cards, func(a, b Card) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Slice, b.Slice), structs.CompareNames(a.Device, b.Device))
	})
	slices.Sort(row.Drivers)
	return row
}

// count adds a device to the sums of its kind and model.
func (r *Row) count(d *structs.Device, used bool) {
	at := slices.IndexFunc(r.Kinds, func(k KindUse) bool { return k.Kind == d.Kind && k.Model == d.Model })
	if at < 0 {
		at = len(r.Kinds)
		r.Kinds = append(r.Kinds, KindUse{Kind: d.Kind, Model: d.Model})
	}
	k := &r.Kinds[at]
	k.Total++
	if used {
		k.Used++
	}
	if !d.Healthy {
		k.Sick++
	} else if !used {
		k.Free++
	}
}
