package structs

import "time"

// PoolDefault is the pool of nodes that no other pool claims, and of jobs
// that name none. A record under this name sets its order; it needs none.
const PoolDefault = "default"

// HalfLifeDefault is how long it takes until use counts half in fair share.
const HalfLifeDefault = Duration(7 * 24 * time.Hour)

// QueueOrder is how jobs of one tier stand in the queue of a pool.
type QueueOrder string

// The orders of a pool's queue.
const (
	OrderSubmission QueueOrder = "submission" // earlier submission first
	OrderFair       QueueOrder = "fair"       // the project that used least of late first, age counting in
)

// Pool is a virtual cluster, 专属资源池/虚拟集群: a named set of nodes, with the
// rules for jobs in it. A node is in exactly one pool: the first by name that
// lists the node, else the first whose constraints all hold, else the one of
// the node's own configuration, else PoolDefault. Written by administrators.
type Pool struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Nodes       []string          `json:"nodes,omitempty"`              // members by node name
	Constraints map[string]string `json:"constraints,omitempty"`        // members by attribute; a value may list alternatives: "a|b"
	Dedicated   bool              `json:"dedicated,omitempty"`          // only jobs that name the pool run here
	RDMA        bool              `json:"rdma,omitempty"`               // its nodes have RDMA networks between them
	NoRDMA      bool              `json:"no_rdma,omitempty" since:"16"` // they have none that jobs may use, whatever the nodes say
	Raw         bool              `json:"raw,omitempty"`                // processes may run on its raw nodes, see Node.Raw
	Exec        *PoolExec         `json:"exec,omitempty"`               // whom tasks run as; nil: ids of their projects
	SKU         *SKU              `json:"sku,omitempty"`
	Order       QueueOrder        `json:"order,omitempty"`      // "": submission
	HalfLife    Duration          `json:"half_life,omitempty"`  // of fair share; 0: HalfLifeDefault
	AgeWeight   float64           `json:"age_weight,omitempty"` // fair: device-hours of use forgiven for each hour in the queue
	Defaults    PoolDefaults      `json:"defaults,omitzero"`
	Ceilings    PoolCeilings      `json:"ceilings,omitzero"`
	Floors      PoolFloors        `json:"floors,omitzero" since:"16"`

	CeilingsBy string   `json:"ceilings_by,omitempty" since:"31"` // who last changed them; set by servers
	CeilingsAt UnixNano `json:"ceilings_at,omitempty" since:"31"`

	CreateIndex uint64 `json:"create_index,omitempty"`
	ModifyIndex uint64 `json:"modify_index,omitempty"`
}

// SKU is the unit in which a pool hands out its nodes: a job's sku = 4 asks
// for four of them on each node.
type SKU struct {
	CPU     float64         `json:"cpu"`
	Memory  int64           `json:"memory"`
	Devices []DeviceRequest `json:"devices,omitempty"`
}

// PoolDefaults fill what a job that names the pool leaves out; people see
// them before they submit.
type PoolDefaults struct {
	TimeLimit Duration     `json:"time_limit,omitempty"`
	Priority  Priority     `json:"priority,omitempty"`
	Hold      Duration     `json:"hold,omitempty"` // debug.hold of a job with a debug block that names none
	Task      TaskDefaults `json:"task,omitzero" since:"16"`
}

// TaskDefaults are what a pool or a project sets for the tasks of jobs that say
// nothing of it. What the project says goes before what the pool says.
type TaskDefaults struct {
	Env       map[string]string `json:"env,omitempty" since:"16"`       // each variable that the job does not set
	Arguments string            `json:"arguments,omitempty" since:"16"` // task.arguments
}

// PoolFloors are the least that each node of a job on several nodes must ask
// for; 0 sets no bound. SKU counts units of the pool: a job that asks without them must
// ask for as much.
type PoolFloors struct {
	SKU     int     `json:"sku,omitempty" since:"16"`
	CPU     float64 `json:"cpu,omitempty" since:"16"`
	Memory  int64   `json:"memory,omitempty" since:"16"`
	Devices int     `json:"devices,omitempty" since:"16"`
}

// PoolCeilings bound the jobs of a pool or a project; 0 sets no bound. NoCheckpoint
// leaves checkpoint resume to others: on the record of PoolDefault, for instance, to
// the pools with a name.
type PoolCeilings struct {
	TimeLimit  Duration `json:"time_limit,omitempty"` // a job must name a limit, at most this
	Nodes      int      `json:"nodes,omitempty"`      // of one gang
	Devices    int      `json:"devices,omitempty"`    // of one gang
	MaxResumes int      `json:"max_resumes,omitempty"`
	Grace      Duration `json:"grace,omitempty"` // checkpoint.grace
	Hold       Duration `json:"hold,omitempty"`  // debug.hold

	NoCheckpoint bool `json:"no_checkpoint,omitempty"` // no job here has a checkpoint block
}

// MayRDMA reports whether the record of a pool, or that there is none, leaves RDMA to
// a spec: it may deny it, and must promise it to a spec of an older version.
func (p *Pool) MayRDMA(spec Resources) bool {
	if spec.RDMAByNodes {
		return p == nil || !p.NoRDMA
	}
	return p != nil && p.RDMA
}
