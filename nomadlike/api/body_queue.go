package api

import (
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// Queue is what waits, in the order in which it will be looked at.
type Queue struct {
	Entries []QueueEntry `json:"entries"`
	Hidden  int          `json:"hidden,omitempty"` // that wait as well, of jobs that the caller may not read, in the whole queue of that pool
	Next    string       `json:"next,omitempty"`
}

// QueueEntry is one waiting subjob.
type QueueEntry struct {
	JobID       string              `json:"job_id"`
	JobNumber   uint64              `json:"job_number,omitempty"`
	JobName     string              `json:"job_name"`
	Project     string              `json:"project"`
	User        string              `json:"user,omitempty"`
	Subjob      int                 `json:"subjob"`
	Priority    structs.Priority    `json:"priority"`
	Preemptible bool                `json:"preemptible,omitempty"`
	VIP         bool                `json:"vip,omitempty"`
	Pool        string              `json:"pool,omitempty"` // that the job names
	Nodes       int                 `json:"nodes"`
	Devices     int                 `json:"devices,omitempty"` // of the first spec, on all nodes
	QueuedAt    structs.UnixNano    `json:"queued_at"`
	Position    int                 `json:"position"`        // from 1, among all that waits
	Moved       bool                `json:"moved,omitempty"` // an administrator gave it its place
	Wait        *structs.WaitReason `json:"wait,omitempty"`
	Holders     []JobRef            `json:"holders,omitempty"` // of what it waits for, those that the caller may read, and one without a name for others
	Awaits      []JobRef            `json:"awaits,omitempty"`  // asked to end for it: their nodes are nominated for it
	// Forecast is when it starts, when the parameter forecast asks for it.
	Forecast *outlook.When `json:"forecast,omitempty"`
}

// MachineList lists the machines that a VIP job may choose, free ones first.
type MachineList struct {
	Machines []Machine `json:"machines"`
}

// Machine is a node as the machine picker of VIP jobs shows it.
type Machine struct {
	ID           string              `json:"id"`
	Name         string              `json:"name"`
	Pool         string              `json:"pool"`
	Status       structs.NodeStatus  `json:"status"`
	Eligibility  structs.Eligibility `json:"eligibility"`
	Free         bool                `json:"free"`
	CPU          float64             `json:"cpu"`
	CPUUsed      float64             `json:"cpu_used"`
	Memory       int64               `json:"memory"`
	MemoryUsed   int64               `json:"memory_used"`
	Devices      []DeviceShare       `json:"devices,omitempty"`
	NominatedFor *JobRef             `json:"claim,omitempty"` // the machine is kept free for it
	Work         []MachineWork       `json:"work"`
	// Cost is what would be lost if its work were ended now: the device time of the
	// gangs on it since their newest checkpoints, on all their nodes; of a gang without
	// devices, its time. Machines are listed by it.
	Cost structs.Duration `json:"cost,omitempty"`
}

// MachineWork is a job's share of a machine: what would be waited for, or
// ended.
type MachineWork struct {
	Job          JobRef           `json:"job"` // empty for one that the caller may not read
	Attempt      uint64           `json:"attempt"`
	Nodes        int              `json:"nodes"` // of the whole gang: all of it ends together
	Devices      int              `json:"devices"`
	GangDevices  int              `json:"gang_devices,omitempty"` // of the whole gang
	Priority     structs.Priority `json:"priority"`
	Preemptible  bool             `json:"preemptible,omitempty"`
	VIP          bool             `json:"vip,omitempty"` // never ended for others
	Since        structs.UnixNano `json:"since"`
	RunningAt    structs.UnixNano `json:"running_at,omitempty"`      // when every rank ran, 0: not yet
	CheckpointAt structs.UnixNano `json:"checkpoint_at,omitempty"`   // work since then would be lost; 0: all of it
	Step         int64            `json:"checkpoint_step,omitempty"` // that the newest checkpoint is of; 0: not told
	Lost         structs.Duration `json:"lost,omitempty"`            // for how long it has worked since its newest checkpoint, or since it ran
	P50          structs.UnixNano `json:"p50,omitempty"`             // its end by the forecast, as likely before as after; 0: nobody knows
	P90          structs.UnixNano `json:"p90,omitempty"`             // its end by the forecast, 90 % likely by then
	EndsBy       structs.UnixNano `json:"ends_by,omitempty"`         // its time limit
	Ending       bool             `json:"ending,omitempty"`
}
