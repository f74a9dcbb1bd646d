package structs

// Nomination is a gang with the nodes that it gets once others have left them. A
// plan makes it in the one log entry that ends its victims; its nodes take no other
// work, and Apply places the gang in the entry that frees the last of what it needs. So nothing is held twice and no victim ends for nobody.
//
//	plan with victims or VIP machines ──► nomination ──all free──► attempt placed
//	                                          │
//	                                          └─node lost, job stopped──► dropped, still queued
type Nomination struct {
	Gang    GangPlan     `json:"gang"`    // without Victims; devices and ports fixed when it is placed
	Victims []AttemptKey `json:"victims"` // attempts that were asked to end for it
	Since   UnixNano     `json:"since"`
}

// VIP lets a person choose the machines of a job, and for each whether its
// jobs are waited for or ended. A VIP job is never preempted. Row 145-150.
type VIP struct {
	Machines []VIPMachine `json:"machines"`
	Ask      *VIPAsk      `json:"ask,omitempty" since:"20"` // of machines with BusyAsk; nil without any
}

// VIPMachine is one chosen machine.
type VIPMachine struct {
	Node string `json:"node"`           // name or id
	Busy string `json:"busy,omitempty"` // wait (default) | ask | kill: what happens to the jobs on it
}

// What a VIP job does about jobs on its machines.
const (
	BusyWait = "wait"
	BusyAsk  = "ask" // their owners are asked, see VIPAsk; without a yes they are waited for
	BusyKill = "kill"
)

// StopOrder says how the ranks of an ending attempt are stopped, when it is
// not by the job's stop_grace and SIGTERM: a preempted or resized training is
// told to save a checkpoint first.
type StopOrder struct {
	Signal string   `json:"signal"`
	Grace  Duration `json:"grace"`
}
