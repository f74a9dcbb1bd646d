package httpapi

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// deviceHandlers answers about devices, and treats them.
type deviceHandlers struct {
	*core
	calls  *nodeCalls
	survey *survey
}

// list answers devices.list: a page of nodes with their cards.
func (h *deviceHandlers) list(r *front.Request) (*api.DeviceList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	node, pool := q.Text("node"), q.Text("pool")
	paging, err := page(r)
	if err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	nodes, next, refusal := snapshot.ListNodes(paging, func(n *structs.Node) bool {
		return (node == "" || n.ID == node || n.Name == node) && (pool == "" || poolOf(n.Pool) == pool)
	})
	if refusal != nil {
		return nil, refusal
	}
	found := h.survey.ask(r.Context(), nodes)
	may := newReadable(r, snapshot)
	out := api.DeviceList{Nodes: make([]api.NodeDevices, len(nodes)), Next: next}
	for i, n := range nodes {
		out.Nodes[i] = nodeDevices(snapshot, may, n, found[n.ID])
	}
	return &out, nil
}

// read answers nodes.devices: the cards of one node.
func (h *deviceHandlers) read(r *front.Request, node *structs.Node) (*api.NodeDevices, error) {
	snapshot := h.store.Snapshot()
	found := h.survey.ask(r.Context(), []*structs.Node{node})
	return answer(nodeDevices(snapshot, newReadable(r, snapshot), node, found[node.ID]))
}

// nodeDevices puts together what the state knows of a node's devices and what
// the node measured.
func nodeDevices(snapshot *state.Snapshot, may *readable, node *structs.Node, found surveyed) api.NodeDevices {
	out := api.NodeDevices{
		ID: node.ID, Name: node.Name, Pool: node.Pool, Status: node.Status, Eligibility: node.Eligibility,
		CPU: node.Capacity.CPU, Memory: node.Capacity.Memory, Measured: found.fresh, Devices: make([]api.DeviceState, len(node.Devices)),
	}
	var held map[string]string
	if usage := snapshot.Usage(node.ID); usage != nil {
		out.CPUHeld, out.MemoryHeld, held = usage.CPU, usage.Memory, usage.Devices
	}
	measured := map[string]*structs.DeviceUsage{}
	if f := found.usage; f != nil {
		out.At, out.CPUBusy, out.MemoryBusy = f.At, f.CPUCores, f.MemoryUsed
		for i := range f.Devices {
			measured[f.Devices[i].ID] = &f.Devices[i]
		}
	}
	operator := may.r.May(auth.VerbOperatorRead, auth.Object{Kind: auth.ObjectCluster}) == nil
	for i := range node.Devices {
		out.Devices[i] = deviceState(snapshot, may, &node.Devices[i], held[node.Devices[i].ID])
		if f := measured[node.Devices[i].ID]; f != nil {
			out.Devices[i].At, out.Devices[i].Gauges = f.At, f.Gauges
			if operator { // the names of processes are their owners' own
				out.Devices[i].Processes = f.Processes
			}
		}
	}
	slices.SortStableFunc(out.Devices, func(a, b api.DeviceState) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Slice, b.Slice), structs.CompareNames(a.ID, b.ID))
	})
	return out
}

func deviceState(snapshot *state.Snapshot, may *readable, d *structs.Device, allocID string) api.DeviceState {
	out := api.DeviceState{Device: *d, Action: string(device.ActionOf(d)), Used: allocID != ""}
	out.Slice, _ = strconv.Atoi(d.Attrs[device.AttrSlice]) // 0: a whole card
	alloc := snapshot.Alloc(allocID)
	if alloc == nil || !may.job(alloc.JobID) {
		return out
	}
	out.Owner = &api.DeviceOwner{
		JobID: alloc.JobID, Job: alloc.JobName, Project: alloc.Project, Subjob: alloc.Subjob, Attempt: alloc.Attempt,
		Rank: alloc.Rank, AllocID: alloc.ID,
	}
	if view, ok := snapshot.Job(alloc.JobID); ok {
		out.Owner.User = view.Job.User
	}
	return out
}

// treatPatience is how long a reset with its test may take.
const treatPatience = 3 * time.Minute

// treat answers nodes.treat_device: an operator clears a device's faults,
// has it reset, or keeps it from work. The log learns first who asked for what, so that nothing is
// done unseen; then the node does it.
func (h *deviceHandlers) treat(r *front.Request, node *structs.Node, body *api.DeviceTreatRequest) (*api.DeviceTreated, error) {
	if !body.Act.Known() || body.Reason != "" && (body.Act != structs.DeviceQuarantine || !structs.PlainText(body.Reason, structs.DeviceReasonMax)) {
		return nil, structs.NewError(structs.CodeInvalid, "client.device_act", "act", body.Act)
	}
	chosen, err := chooseDevice(node, body.Device)
	if err != nil {
		return nil, err
	}
	if node.RPCAddr == "" {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.node_away", "node", node.Name)
	}
	conn, err := h.calls.of(node)
	if err != nil {
		return nil, err
	}
	index, err := h.propose(r, structs.CommandDeviceTreated, structs.DeviceTreatment{
		NodeID: node.ID, Device: chosen.ID, Number: chosen.Index, Act: body.Act,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), treatPatience)
	defer cancel()
	order := structs.DeviceTreat{Device: chosen.ID, Act: body.Act, By: r.Caller.Principal.ID, Reason: body.Reason}
	_, err = rpc.Call[structs.DeviceTreat, structs.DeviceTreated](ctx, conn, structs.MethodNodeTreat, &order)
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	return &api.DeviceTreated{Device: chosen.ID, Index: index}, nil
}

// chooseDevice finds a device of a node by its id, a unique beginning of it, or
// its number.
func chooseDevice(node *structs.Node, name string) (*structs.Device, error) {
	var candidates []*structs.Device
	number, numberErr := strconv.Atoi(name)
	for i := range node.Devices {
		d := &node.Devices[i]
		switch {
		case d.ID == name:
			return d, nil
		case numberErr == nil && d.Index == number && d.Attrs[device.AttrSlice] == "",
			numberErr != nil && name != "" && len(d.ID) >= len(name) && d.ID[:len(name)] == name:
			candidates = append(candidates, d)
		}
	}
	switch len(candidates) {
	case 0:
		return nil, structs.NewError(structs.CodeNotFound, "agent.device_unknown", "device", name, "node", node.Name)
	case 1:
		return candidates[0], nil
	}
	ids := make([]string, len(candidates))
	for i, d := range candidates {
		ids[i] = d.ID
	}
	return nil, ambiguous(name, ids)
}
