package structs

import (
	"slices"
	"time"
)

// Bounds of what is asked of owners.
const (
	ConsentsMax       = 1024                         // gangs that are asked for one job; those beyond are waited for
	ConsentMessageMax = 400                          // bytes
	ConsentForLeast   = Duration(time.Minute)        // VIPAsk.For
	ConsentForMax     = Duration(7 * 24 * time.Hour) // VIPAsk.For
	ConsentForDefault = Duration(30 * time.Minute)   // VIPAsk.For when the job says nothing
)

// VIPAsk says how the owners of what runs on machines with BusyAsk are asked
// whether it may be stopped for a VIP job. Set by the user.
type VIPAsk struct {
	For     Duration `json:"for" since:"20"`               // how long they may take from when they are asked on
	Silence string   `json:"silence,omitempty" since:"20"` // wait (default) | kill: what no answer means by then
	Message string   `json:"message,omitempty" since:"20"` // to the owners
}

// Consent is what the owner of a gang was asked, and answered. It is made with the
// nomination of the VIP job, and outlives it: who has answered is not asked again.
// Written by state.Apply.
//
//	asked ──yes──► the gang is stopped once the VIP job can have all its machines
//	  │
//	  ├─────no───► it is waited for, and so is the whole machine
//	  │
//	  └──Until───► what VIPAsk.Silence says; a later answer counts all the same
//
// An answer may be changed while the gang runs.
type Consent struct {
	Of      AttemptKey    `json:"of" since:"20"`
	AskedAt UnixNano      `json:"asked_at" since:"20"`
	Until   UnixNano      `json:"until" since:"20"`
	Answer  ConsentAnswer `json:"answer,omitempty" since:"20"`
	By      string        `json:"by,omitempty" since:"20"` // who answered
	At      UnixNano      `json:"at,omitempty" since:"20"` // when
}

// ConsentAnswer is what an owner says.
type ConsentAnswer string

// The answers.
const (
	ConsentNone ConsentAnswer = ""
	ConsentYes  ConsentAnswer = "yes"
	ConsentNo   ConsentAnswer = "no"
)

// JobConsent answers, for the gang Of, what the job JobID asks.
type JobConsent struct {
	JobID  string        `json:"job_id"` // the VIP job
	Subjob int           `json:"subjob"`
	Of     AttemptKey    `json:"of"`
	Answer ConsentAnswer `json:"answer"` // yes | no
	Reason string        `json:"reason,omitempty"`
}

// Allows reports whether the gang may be stopped at now.
func (c *Consent) Allows(ask *VIPAsk, now UnixNano) bool {
	switch c.Answer {
	case ConsentYes:
		return true
	case ConsentNo:
		return false
	}
	return ask != nil && ask.Silence == BusyKill && now >= c.Until
}

// ConsentOf returns what was asked about a gang, nil when nothing was.
func (s *Subjob) ConsentOf(gang AttemptKey) *Consent {
	at := slices.IndexFunc(s.Consents, func(c Consent) bool { return c.Of == gang })
	if at < 0 {
		return nil
	}
	return &s.Consents[at]
}

// Consented reports whether a gang may be stopped at now for a subjob of job,
// because its owner agreed or the time to answer is over.
func (s *Subjob) Consented(job *Job, gang AttemptKey, now UnixNano) bool {
	if job.VIP == nil || job.VIP.Ask == nil {
		return false
	}
	c := s.ConsentOf(gang)
	return c != nil && c.Allows(job.VIP.Ask, now)
}

// SilenceAt is when the next of the gangs that have not answered may be stopped; 0:
// none will, by time alone.
func (s *Subjob) SilenceAt(job *Job, now UnixNano) (next UnixNano) {
	if job.VIP == nil || job.VIP.Ask == nil || job.VIP.Ask.Silence != BusyKill {
		return 0
	}
	for i := range s.Consents {
		if c := &s.Consents[i]; c.Answer == ConsentNone && c.Until > now && (next == 0 || c.Until < next) {
			next = c.Until
		}
	}
	return next
}

// Asks reports whether the owners of what runs on a node are asked.
func (v *VIP) Asks(node *Node) bool {
	return v != nil && v.Ask != nil && slices.ContainsFunc(v.Machines, func(m VIPMachine) bool {
		return m.Busy == BusyAsk && (m.Node == node.Name || m.Node == node.ID)
	})
}
