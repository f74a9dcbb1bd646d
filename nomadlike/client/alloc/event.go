package alloc

import (
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Event is something that happened to one allocation. Events that do not
// fit the phase in which they arrive, such as a late answer of an act that
// was overtaken, change nothing.
type Event interface{ isEvent() }

// Assigned is the server's word on the allocation, first or repeated.
type Assigned struct {
	Desired  structs.AllocDesired
	Reason   *structs.Reason    // why Desired is stop
	Stop     *structs.StopOrder // how to stop it; nil: as its job says
	Control  *structs.Control   // what people want of it while it runs; nil: nothing
	Warning  *structs.Warning   // the signal that it is to get; nil: none
	Released bool
	Status   structs.AllocStatus // what the server believes
	Blocked  bool                // an older attempt still has processes on this node
}

// Revoked says that the allocation is not this node's any more: kill it.
type Revoked struct{ Cause *structs.Reason }

// LeaseEnded says that the servers may have given the node's strict jobs to
// others: kill it. Only strict allocations are told.
type LeaseEnded struct{}

// Evicted says that a device of the allocation cannot be used any longer.
// That is the node's fault: the attempt comes back elsewhere.
type Evicted struct {
	Cause *structs.Reason
	Stop  *structs.StopOrder // how to stop it; nil: as its job says
}

// Exceeded says that the task took more of the node than one may have. That is
// its own fault.
type Exceeded struct{ Cause *structs.Reason }

// Unblocked says that no older attempt has processes here any more.
type Unblocked struct{}

// Progressed reports which step a preparation that takes long has reached.
type Progressed struct {
	Step    string
	Percent int // 0 when it is not known
}

// Prepared says that everything is ready for the command to start.
type Prepared struct {
	Image string // what its driver runs it on, as ranks are compared by it; "" when it needs none
}

// PrepareFailed says that the preparation failed or was cancelled.
type PrepareFailed struct {
	Cause *structs.Reason
	Infra bool // the node's fault: another node may succeed
}

// Started says that the command runs. It also answers Recover.
type Started struct{ Handle driver.Handle }

// StartFailed says that the command could not be executed and that nothing
// of it is left.
type StartFailed struct {
	Result driver.ExitResult
	Infra  bool
}

// Controlled answers Control.
type Controlled struct{ Answer structs.ControlAnswer }

// Exited says that the task and all its processes are gone.
type Exited struct{ Result driver.ExitResult }

// Absent answers Recover: there is no trace of the command.
type Absent struct{}

// Unrecoverable answers Recover: the command was started, it is gone now,
// and nobody knows how it ended.
type Unrecoverable struct{ Cause *structs.Reason }

// Acked says that the servers have the report with this status, or will
// never take it.
type Acked struct{ Status structs.AllocStatus }

func (Assigned) isEvent()      {}
func (Revoked) isEvent()       {}
func (LeaseEnded) isEvent()    {}
func (Evicted) isEvent()       {}
func (Exceeded) isEvent()      {}
func (Unblocked) isEvent()     {}
func (Progressed) isEvent()    {}
func (Prepared) isEvent()      {}
func (PrepareFailed) isEvent() {}
func (Started) isEvent()       {}
func (StartFailed) isEvent()   {}
func (Controlled) isEvent()    {}
func (Exited) isEvent()        {}
func (Absent) isEvent()        {}
func (Unrecoverable) isEvent() {}
func (Acked) isEvent()         {}
