package faults

import "nomadlike/nomadlike/structs"

// Fault is one end of an attempt that was its own failure or a loss, and the way to
// the next attempt.
type Fault struct {
	Subjob  int             `json:"subjob"`
	Attempt uint64          `json:"attempt"`
	Outcome structs.Outcome `json:"outcome"` // failed or lost
	Cause   *structs.Reason `json:"cause,omitempty"`
	Rank    int             `json:"rank"`           // that ended first; -1: none is known
	Node    string          `json:"node,omitempty"` // of that rank
	NodeID  string          `json:"node_id,omitempty"`
	Next    uint64          `json:"next,omitempty"` // the attempt that went on; 0: none, or not yet
	Moments []Moment        `json:"moments"`        // in their order
	Loss    Loss            `json:"loss"`
}

// Moment is one step of the way.
type Moment struct {
	Stage Stage `json:"stage"`
	// Reason says what was then, or with At 0 why nobody knows when it was.
	structs.Reason
	At   structs.UnixNano `json:"at"`             // 0: not known, or not yet
	Took structs.Duration `json:"took,omitempty"` // since the moment before that is known
}

// Stage is what a Moment is.
type Stage string

// The stages.
const (
	StageFault   Stage = "fault"   // the rank ended, or the node fell silent
	StageNoticed Stage = "noticed" // the servers knew
	StageAgreed  Stage = "agreed"  // the servers ended the attempt: its ranks were told to stop
	StageSaved   Stage = "saved"   // a checkpoint was registered after that
	StageStopped Stage = "stopped" // the last rank was gone
	StagePlaced  Stage = "placed"  // the next attempt had its nodes
	StageRunning Stage = "running" // every rank of it ran
	StageStepped Stage = "stepped" // its first step
)

// Loss is what a fault cost. Waiting in the queue holds nothing and is not in
// DeviceHours.
type Loss struct {
	Devices  int              `json:"devices"`         // of the attempt that ended; 0: it had none
	Nodes    int              `json:"nodes"`           // ranks of it
	Saved    bool             `json:"saved"`           // it had registered a checkpoint: Work is since then, otherwise since it ran
	Work     structs.Duration `json:"work"`            // done and lost
	Stopping structs.Duration `json:"stopping"`        // until the last rank was gone
	Waiting  structs.Duration `json:"waiting"`         // in the queue
	Starting structs.Duration `json:"starting"`        // until every rank of the next attempt ran
	Steps    int64            `json:"steps,omitempty"` // made and made again; 0: none, or not known
	Open     bool             `json:"open,omitempty"`  // it still grows
	Hours    float64          `json:"hours"`           // of devices, or without any of nodes: Work, Stopping and Starting
}
