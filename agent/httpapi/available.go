package httpapi

import (
	"cmp"
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// available answers nodes.available: the table of nodes on which a rank of
// a job could stand, with what is used of them and by whom. The job need not be
// complete, so it is not validated beyond what it asks for.
func (h *nodeHandlers) available(r *front.Request, offer *offered) (*api.Available, error) {
	job := offer.job
	server.Complete(h.store.Snapshot(), job)
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	if pool := snapshot.Pool(poolOf(job.Placement.Pool)); pool != nil {
		for i := range job.Resources {
			spec, problems := pool.Resolve(job.Resources[i], structs.IndexedPath("resources", i))
			if failure := structs.InvalidJob(structs.CodeInvalid, problems); failure != nil {
				return nil, failure
			}
			job.Resources[i] = spec
		}
	}
	if len(job.Resources) > structs.AlternativesMax || job.Nodes < 1 || job.Nodes > structs.NodesMax {
		return nil, structs.InvalidJob(structs.CodeInvalid, job.Validate())
	}
	out := api.Available{Nodes: []api.AvailableNode{}, Models: demandOf(snapshot)}
	for i := range job.Resources {
		out.Specs = append(out.Specs, api.AvailableSpec{Spec: i, Label: job.Resources[i].Label, Need: job.Nodes})
	}
	may := newReadable(r, snapshot)
	for row := range availableRows(snapshot, job) {
		node := availableNode(snapshot, may, &row)
		for _, spec := range row.Specs {
			out.Specs[spec].Nodes++
		}
		for _, spec := range row.Now {
			out.Specs[spec].Idle++
		}
		out.Nodes = append(out.Nodes, node)
	}
	slices.SortFunc(out.Nodes, func(a, b api.AvailableNode) int {
		return cmp.Or(structs.CompareNames(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return &out, nil
}

// availableRows asks a floor with all nodes where the ranks of a job could
// stand. Cards carry the allocations that use them in place of jobs.
func availableRows(snapshot *state.Snapshot, job *structs.Job) func(func(placement.Row) bool) {
	floor := placement.NewFloor()
	for pool := range snapshot.Pools() {
		floor.PutPool(pool)
	}
	for node, usage := range snapshot.Nodes() {
		floor.Put(node, usage)
	}
	needs := make([]*placement.Need, len(job.Resources))
	for i := range job.Resources {
		need := placement.NeedOf(job, i)
		needs[i] = &need
	}
	return floor.Table(needs, func(allocID string) string { return allocID })
}

func availableNode(snapshot *state.Snapshot, may *readable, row *placement.Row) api.AvailableNode {
	node := api.AvailableNode{
		ID: row.NodeID, Name: row.Name, Pool: row.Pool, State: string(row.State), OS: row.OS, Kernel: row.Kernel, Drivers: row.Drivers,
		CPU: row.CPU, CPUUsed: row.CPUUsed, Memory: row.Memory, MemoryUsed: row.MemoryUsed,
		Specs: row.Specs, Now: append([]int{}, row.Now...),
	}
	if record := snapshot.Node(row.NodeID); record != nil {
		node.Status = record.Status
	}
	for _, kind := range row.Kinds {
		node.Devices = append(node.Devices, api.DeviceShare{Kind: kind.Kind, Model: kind.Model, Total: kind.Total, Used: kind.Used, Sick: kind.Sick, Free: kind.Free})
	}
	for _, card := range row.Cards {
		use := api.CardUse{Device: card.Device, Index: card.Index, Slice: card.Slice, Healthy: card.Healthy, Used: card.Used}
		if alloc := snapshot.Alloc(card.Job); alloc != nil && may.job(alloc.JobID) {
			use.Job, use.JobID = alloc.JobName, alloc.JobID
		}
		card.Job = use.Job
		use.Text = card.String()
		node.Cards = append(node.Cards, use)
	}
	return node
}

// demandOf counts the devices of the cluster by kind and model, and how many of
// each all that waits asks for.
func demandOf(snapshot *state.Snapshot) []api.DeviceDemand {
	var shares []api.DeviceShare
	for node, usage := range snapshot.Nodes() {
		shares = addDevices(shares, node, usage)
	}
	models := make([]api.DeviceDemand, len(shares))
	for i := range shares {
		models[i].DeviceShare = shares[i]
	}
	var last *structs.Job
	var wanted []int // by model, of last
	for job := range snapshot.Queue() {
		if job != last { // the subjobs of a batch follow each other
			last, wanted = job, wantedBy(job, models)
		}
		for i, cards := range wanted {
			if cards > 0 {
				models[i].Wanted += cards
				models[i].Jobs++
			}
		}
	}
	return models
}

// wantedBy is how many devices of each model a gang of a job asks for under the
// alternative that asks for most.
func wantedBy(job *structs.Job, models []api.DeviceDemand) []int {
	wanted := make([]int, len(models))
	for i := range models {
		device := structs.Device{Kind: models[i].Kind, Model: models[i].Model, Memory: structs.MemoryMax, Healthy: true}
		for k := range job.Resources {
			cards := 0
			for _, request := range job.Resources[k].Devices {
				request.IDs = nil
				if device.Meets(request) {
					cards += max(request.Count, 0)
				}
			}
			wanted[i] = max(wanted[i], cards*job.Nodes)
		}
	}
	return wanted
}
