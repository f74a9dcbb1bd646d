package feasible

import "nomadlike/nomadlike/structs"

// Barred reports what keeps ranks of spec off a node whatever it holds, or nil when
// nothing does. pool is the record of the node's pool, nil when there is none.
func Barred(job *structs.Job, spec structs.Resources, node *structs.Node, pool *structs.Pool) *structs.Reason {
	if reason := NodeProblem(job, node); reason != nil {
		return reason
	}
	if reason := PoolProblem(job, spec, node, pool); reason != nil {
		return reason
	}
	return SpecProblem(job, spec, node)
}

// Open reports whether the node takes new work and nothing bars ranks of spec.
func Open(job *structs.Job, spec structs.Resources, node *structs.Node, pool *structs.Pool) bool {
	return node.Schedulable() && Barred(job, spec, node, pool) == nil
}

// CouldRun reports whether the node takes new work and would have room for a rank
// of spec, which is not rank 0, if it held nothing.
func CouldRun(job *structs.Job, spec structs.Resources, node *structs.Node, pool *structs.Pool) bool {
	if !Open(job, spec, node, pool) || RoomProblem(node, nil, spec) != nil {
		return false
	}
	_, devices := ChooseDevices(node, nil, spec.Devices)
	_, ports := ChoosePorts(node, nil, job.PortRequests(spec, 1), 0)
	return devices && ports
}
