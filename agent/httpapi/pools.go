package httpapi

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// poolHandlers answers about pools, and changes their records.
type poolHandlers struct {
	*core
	members Membership
}

// poolOf is the pool that something counts in.
func poolOf(name string) string { return cmp.Or(name, structs.PoolDefault) }

func (h *poolHandlers) list(r *front.Request) (*api.PoolList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot, err := h.block(r, everything((*state.Snapshot).WatchPools, (*state.Snapshot).WatchNodes))
	if err != nil {
		return nil, err
	}
	found := poolsOf(snapshot)
	out := api.PoolList{Pools: []api.PoolDetail{}}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		found[name].Members = nil
		out.Pools = append(out.Pools, *found[name])
	}
	return &out, nil
}

func (h *poolHandlers) read(r *front.Request) (*api.PoolDetail, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot, err := h.block(r, everything((*state.Snapshot).WatchPools, (*state.Snapshot).WatchNodes))
	if err != nil {
		return nil, err
	}
	detail, ok := poolsOf(snapshot)[r.ID]
	if !ok {
		return nil, auth.NotFound(auth.ObjectPool, r.ID)
	}
	slices.Sort(detail.Members)
	detail.Effective = structs.EffectiveCeilings(snapshot.Settings(), snapshot.Pool(r.ID), snapshot.Project(r.Caller.Standing.Project))
	return answer(*detail)
}

// poolsOf sums up every pool that has a record or a node, by name.
func poolsOf(snapshot *state.Snapshot) map[string]*api.PoolDetail {
	found := make(map[string]*api.PoolDetail)
	at := func(name string) *api.PoolDetail {
		name = poolOf(name)
		if found[name] == nil {
			found[name] = &api.PoolDetail{Pool: structs.Pool{Name: name}, Models: []api.DeviceShare{}}
		}
		return found[name]
	}
	for pool := range snapshot.Pools() {
		detail := at(pool.Name)
		detail.Pool, detail.Defined = *pool, true
	}
	for node, usage := range snapshot.Nodes() {
		detail := at(node.Pool)
		detail.Nodes++
		if node.Schedulable() {
			detail.Ready++
		}
		detail.Members = append(detail.Members, node.Name)
		detail.CPU += node.Capacity.CPU
		detail.Memory += node.Capacity.Memory
		detail.Devices += len(node.Devices)
		detail.Models = addDevices(detail.Models, node, usage)
		if usage != nil {
			detail.CPUUsed += usage.CPU
			detail.MemoryUsed += usage.Memory
			detail.DevicesUsed += len(usage.Devices)
			detail.Running += usage.Allocs
		}
	}
	reached := newReach(snapshot)
	for job := range snapshot.Queue() {
		for _, pool := range reached.of(job) {
			at(pool).Queued++
		}
	}
	return found
}

// addDevices counts the devices of a node into shares, which are kept by kind
// and model.
func addDevices(shares []api.DeviceShare, node *structs.Node, usage *structs.Usage) []api.DeviceShare {
	for i := range node.Devices {
		device := &node.Devices[i]
		at, known := slices.BinarySearchFunc(shares, device, func(share api.DeviceShare, d *structs.Device) int {
			return cmp.Or(cmp.Compare(share.Kind, d.Kind), cmp.Compare(share.Model, d.Model))
		})
		if !known {
			shares = slices.Insert(shares, at, api.DeviceShare{Kind: device.Kind, Model: device.Model})
		}
		shares[at].Total++
		if !device.Healthy {
			shares[at].Sick++
		}
		held := usage != nil && usage.Devices[device.ID] != ""
		if held {
			shares[at].Used++
		}
		if device.Healthy && !held && node.Schedulable() {
			shares[at].Free++
		}
	}
	return shares
}

func (h *poolHandlers) put(r *front.Request, body *structs.Pool) (*api.Changed, error) {
	pool := *body
	if err := sameName(&pool.Name, r.ID); err != nil {
		return nil, err
	}
	if err := invalid("agent.pool_invalid", pool.Validate()); err != nil {
		return nil, err
	}
	pool.CeilingsBy, pool.CeilingsAt = "", 0
	before, changes := h.store.Snapshot().Pool(pool.Name), pool.Ceilings != structs.PoolCeilings{}
	if before != nil {
		pool.CeilingsBy, pool.CeilingsAt, changes = before.CeilingsBy, before.CeilingsAt, pool.Ceilings != before.Ceilings
	}
	if changes && h.members.Protocol() >= wire.ProtocolSettings {
		pool.CeilingsBy, pool.CeilingsAt = r.Caller.Principal.ID, structs.At(h.now())
	}
	known, raw, exec := structs.PoolCeilings{}, false, (*structs.PoolExec)(nil)
	if err := r.May(auth.VerbCeilings, r.Object); err != nil {
		if record := r.Pool(h.store.Snapshot(), pool.Name); record != nil {
			known, raw, exec = record.Ceilings, record.Raw, record.Exec
		}
		if pool.Ceilings != known || pool.Raw && !raw || !reflect.DeepEqual(pool.Exec, exec) {
			return nil, err
		}
	}
	return h.change(r, structs.CommandPoolPut, structs.PoolPut{Pool: pool})
}

func (h *poolHandlers) delete(r *front.Request) (*api.Changed, error) {
	return h.change(r, structs.CommandPoolDelete, structs.PoolDelete{Name: r.ID})
}

// sameName takes the name from the path when the body leaves it out.
func sameName(name *string, path string) error {
	*name = cmp.Or(*name, path)
	if *name != path {
		return structs.NewError(structs.CodeInvalid, "agent.name_differs", "name", *name, "path", path)
	}
	return nil
}

// invalid gathers problems as one error, nil without any.
func invalid(id string, problems []structs.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	e := structs.InvalidJob(structs.CodeInvalid, problems)
	e.ID = id
	return e
}
