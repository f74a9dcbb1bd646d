package api

import (
	"context"

	"nomadlike/nomadlike/structs"
)

// ConsentRequest answers what a VIP job asks the owner of a job that runs on its
// machines.
type ConsentRequest struct {
	To     string                `json:"to,omitempty"` // the VIP job, by id or name; "": the only one that asks
	Answer structs.ConsentAnswer `json:"answer"`       // yes | no
	Reason string                `json:"reason,omitempty"`
}

// Asked is what a VIP job asks the owner of a job: may it be stopped? Whoever owns the
// job learns who asks, also when that is another project's job.
type Asked struct {
	To       JobRef                `json:"to"`     // the VIP job
	Subjob   int                   `json:"subjob"` // of the job that is asked about
	Attempt  uint64                `json:"attempt"`
	Machines []string              `json:"machines,omitempty"` // of the VIP job, on which the job runs, by name
	AskedAt  structs.UnixNano      `json:"asked_at"`
	Until    structs.UnixNano      `json:"until"`   // how long there is time to answer
	Silence  string                `json:"silence"` // wait | kill: what no answer means by then
	Message  string                `json:"message,omitempty"`
	Answer   structs.ConsentAnswer `json:"answer,omitempty"` // yes | no
	By       string                `json:"by,omitempty"`     // who answered
	At       structs.UnixNano      `json:"at,omitempty"`
	Stops    bool                  `json:"stops,omitempty"` // the job is stopped as soon as the VIP job can have all its machines
}

// Answered is an owner's answer as the VIP job sees it.
type Answered struct {
	Of      JobRef                `json:"of"` // empty for one that the caller may not read
	AskedAt structs.UnixNano      `json:"asked_at"`
	Until   structs.UnixNano      `json:"until"`
	Answer  structs.ConsentAnswer `json:"answer,omitempty"` // yes | no; "" while there is none
	By      string                `json:"by,omitempty"`
	At      structs.UnixNano      `json:"at,omitempty"`
	Over    bool                  `json:"over,omitempty"` // the gang does not run any more
}

// AskedList is what VIP jobs ask the owner of a job.
type AskedList struct {
	JobID string  `json:"job_id"`
	Index uint64  `json:"index,omitempty"` // of the answer
	Asked []Asked `json:"asked"`
}

// Consent answers a VIP job for a job that runs on its machines, and returns what is
// asked then.
func (c *Client) Consent(ctx context.Context, id string, request ConsentRequest) (*AskedList, error) {
	return change(ctx, c, JobsConsent, id, request)
}
