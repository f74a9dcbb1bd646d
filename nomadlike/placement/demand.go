package placement

import (
	"cmp"
	"iter"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Demand is how much of one model of devices there is, and how much of it the
// queue wants.
type Demand struct {
	Kind   string `json:"kind"`
	Model  string `json:"model"`
	Total  int    `json:"total"`  // on all nodes
	Ready  int    `json:"ready"`  // healthy, on nodes that take new work
	Free   int    `json:"free"`   // of these, held by nobody
	Wanted int    `json:"wanted"` // devices that queued gangs want and this model would do for
	Only   int    `json:"only"`   // of these, those that no other model here would do for
	Gangs  int    `json:"gangs"`  // that want them
	each   int    // the most on one node, for requests for all of them
}

// Demands lists every model of devices on the floor, by kind and name. queued
// yields each job of the queue with the number of its gangs that wait. A gang
// with several specs counts for a model with the spec that wants most of it.
func (f *Floor) Demands(queued iter.Seq2[*structs.Job, int]) []Demand {
	demands := f.models()
	for job, gangs := range queued {
		for i := range demands {
			d := &demands[i]
			wanted, only := d.wantedBy(job, demands)
			if wanted == 0 {
				continue
			}
			d.Wanted += wanted * gangs
			d.Gangs += gangs
			if only {
				d.Only += wanted * gangs
			}
		}
	}
	return demands
}

// models lists the models of devices with how many there are.
func (f *Floor) models() []Demand {
	f.Ready()
	var demands []Demand
	for _, at := range f.layout.index {
		site := f.sites[at]
		held, _ := f.devicesAt(at)
		here := make([]int, len(demands)+len(site.node.Devices))
		for i := range site.node.Devices {
			d := &site.node.Devices[i]
			k := slices.IndexFunc(demands, func(m Demand) bool { return m.Kind == d.Kind && m.Model == d.Model })
			if k < 0 {
				k = len(demands)
				demands = append(demands, Demand{Kind: d.Kind, Model: d.Model})
			}
			m := &demands[k]
			here[k]++
			m.each = max(m.each, here[k])
			m.Total++
			if !d.Healthy || f.spaces[at].flags&flagOpen == 0 {
				continue
			}
			m.Ready++
			if !held.Has(site.bitOf(d.ID)) {
				m.Free++
			}
		}
	}
	slices.SortFunc(demands, func(a, b Demand) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Model, b.Model)) })
	return demands
}

// wantedBy reports how many devices of the model one gang of the job wants, and
// whether no other model would do.
func (d *Demand) wantedBy(job *structs.Job, all []Demand) (wanted int, only bool) {
	only = true
	for spec := range job.Resources {
		under, alone := 0, true
		for _, request := range job.Resources[spec].Devices {
			if !d.meets(request) {
				continue
			}
			under += d.ofGang(job, spec, request)
			for i := range all {
				alone = alone && (all[i].Kind == d.Kind && all[i].Model == d.Model || !all[i].meets(request))
			}
		}
		wanted = max(wanted, under)
		only = only && under > 0 && alone
	}
	return wanted, only
}

// meets reports whether the model would do for a request, whatever its size.
func (d *Demand) meets(request structs.DeviceRequest) bool {
	device := structs.Device{Kind: d.Kind, Model: d.Model, Memory: request.Memory}
	request.IDs = nil
	return device.Meets(request)
}

// ofGang counts the devices of one request on all nodes of a gang.
func (d *Demand) ofGang(job *structs.Job, spec int, request structs.DeviceRequest) int {
	each := request.Count
	if each == structs.DevicesAll {
		each = d.each
	}
	total := each * job.Nodes
	if last := job.Resources[spec].LastDevices; last > 0 && len(job.Resources[spec].Devices) == 1 {
		total += last - each
	}
	return total
}
