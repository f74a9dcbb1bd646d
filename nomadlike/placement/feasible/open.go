package feasible

import (
	"cmp"

	"nomadlike/nomadlike/structs"
)

// Barred reports what keeps ranks of spec off a node whatever it holds, or nil when
// nothing does. pool is the record of the node's pool, nil when there is none. It is
// what a leader asks before it places; of AgentProblem the log asks nothing.
func Barred(job *structs.Job, spec structs.Resources, node *structs.Node, pool *structs.Pool) *structs.Reason {
	if reason := NodeProblem(job, node); reason != nil {
		return reason
	}
	if reason := PoolProblem(job, spec, node, pool); reason != nil {
		return reason
	}
	if reason := SpecProblem(job, spec, node); reason != nil {
		return reason
	}
	return AgentProblem(job, node)
}

// AgentProblem reports what keeps a job that names secrets or data, or whose code travels
// with it, off a node: its agent is too old to give them to tasks, or its driver masks
// nothing in logs. Leaders ask it when they choose, and state.Apply does not: what an entry of the log does may not
// depend on it, since servers of before know nothing of it. The one that chooses must
// be new enough for it to hold.
func AgentProblem(job *structs.Job, node *structs.Node) *structs.Reason {
	switch needs := job.Task.SecretsProtocol(); {
	case node.Speaks() < structs.DataProtocol && job.NamesData():
		return structs.NewReason("scheduler.node_old_data", "node", node.Name, "version", cmp.Or(node.Version, "?"))
	case job.Workdir != nil && node.Speaks() < structs.CodeProtocol:
		return structs.NewReason("scheduler.node_old_code", "node", node.Name, "version", cmp.Or(node.Version, "?"))
	case needs == 0:
		return nil
	case node.Speaks() < needs:
		return structs.NewReason("scheduler.node_old", "node", node.Name, "version", cmp.Or(node.Version, "?"))
	case job.Task.HoldsSecrets() && !node.Masks(job.Task.Driver):
		return structs.NewReason("scheduler.node_masks", "node", node.Name, "driver", job.Task.Driver)
	}
	return nil
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
