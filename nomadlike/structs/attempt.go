package structs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// AttemptState is where one numbered incarnation of a gang stands.
//
//	preparing ──barrier──► released ──all ranks run──► running
//	    │                      │                          │
//	    └──────────────────────┴───────────┬──────────────┘
//	                                       ▼
//	                                    ending ──last rank gone──► ended
//
// States only move forward; ended is absorbing. A new incarnation is a new
// Attempt with a higher number.
type AttemptState string

// The states of an attempt.
const (
	AttemptPreparing AttemptState = "preparing" // allocations get ready
	AttemptReleased  AttemptState = "released"  // the barrier is open, commands start
	AttemptRunning   AttemptState = "running"   // every rank's command runs
	AttemptEnding    AttemptState = "ending"    // ranks are being stopped
	AttemptEnded     AttemptState = "ended"     // nothing of it runs or holds resources
)

// order returns the position of a state on its way.
func (s AttemptState) order() int {
	switch s {
	case AttemptPreparing:
		return 0
	case AttemptReleased:
		return 1
	case AttemptRunning:
		return 2
	case AttemptEnding:
		return 3
	case AttemptEnded:
		return 4
	}
	return -1
}

// CanBecome reports whether an attempt may go from s to next: only forward.
func (s AttemptState) CanBecome(next AttemptState) bool {
	return s.order() >= 0 && next.order() > s.order()
}

// Commanded reports whether ranks' commands may have started, and none was told to
// stop.
func (s AttemptState) Commanded() bool { return s == AttemptReleased || s == AttemptRunning }

// Outcome is how an attempt ended, and so who pays for it.
type Outcome string

// The outcomes of an attempt.
const (
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeFailed    Outcome = "failed"    // a rank failed by itself: charged to the user's budget
	OutcomeLost      Outcome = "lost"      // a node or device was lost: charged to nobody
	OutcomePreempted Outcome = "preempted" // yielded to a higher tier: charged to nobody
	OutcomeStopped   Outcome = "stopped"   // a person stopped it
	OutcomeExpired   Outcome = "expired"   // its time limit passed
)

// Attempt is one numbered incarnation of a subjob's gang. Its number is
// assigned by state.Apply, +1 at every placement, with a gap after a restore from
// a backup, never reused; every report
// carries it and an old attempt is refused. Written by state.Apply alone.
type Attempt struct {
	JobID       string       `json:"job_id"`
	Subjob      int          `json:"subjob"`
	Number      uint64       `json:"number"`
	State       AttemptState `json:"state"`
	Outcome     Outcome      `json:"outcome,omitempty"`
	Cause       *Reason      `json:"cause,omitempty"`
	FirstFailed string       `json:"first_failed,omitempty"` // allocation that failed first
	ExitCode    int          `json:"exit_code"`
	Spec        int          `json:"spec"`   // index into Job.Resources
	Allocs      []string     `json:"allocs"` // allocation ids by rank
	PlacedAt    UnixNano     `json:"placed_at"`
	ReleasedAt  UnixNano     `json:"released_at,omitempty"`
	RunningAt   UnixNano     `json:"running_at,omitempty"`
	WarnedAt    UnixNano     `json:"warned_at,omitempty" since:"16"` // its ranks were told that its time limit comes
	EndingAt    UnixNano     `json:"ending_at,omitempty"`
	EndedAt     UnixNano     `json:"ended_at,omitempty"`
	// CheckpointAt is when it last registered a checkpoint: work since then is
	// what preemption would cost.
	CheckpointAt UnixNano `json:"checkpoint_at,omitempty"`
	// PausedAt is since when every rank stands still, PausedFor how long they
	// did so before: none of that counts as run time.
	PausedAt  UnixNano `json:"paused_at,omitempty"`
	PausedFor Duration `json:"paused_for,omitempty"`
	// HungAt is since when its hang watch finds that it hangs, 0 while it does not.
	HungAt UnixNano `json:"hung_at,omitempty"`
	// Lost is how many of its ranks torchrun goes on without because their nodes
	// failed: with so many more nodes it would be whole again.
	Lost int `json:"lost,omitempty"`
	// By is the attempt that this one yielded to, when its outcome is preempted.
	By          *AttemptKey `json:"by,omitempty"`
	CreateIndex uint64      `json:"create_index"`
	ModifyIndex uint64      `json:"modify_index"`
}

// ReasonSlow is the cause of an attempt that ended because a rank was slow, to go on
// elsewhere.
const ReasonSlow = "reason.slow"

// MovedForSpeed reports whether the attempt ended because a rank was slow. Its outcome is
// OutcomeLost, since nobody pays for it, but nothing was lost.
func (a *Attempt) MovedForSpeed() bool {
	return a != nil && a.Outcome == OutcomeLost && a.Cause != nil && a.Cause.ID == ReasonSlow
}

// RanksLeft is how many ranks take part: all but those that are lost for good.
func (a *Attempt) RanksLeft() int { return len(a.Allocs) - a.Lost }

// AllocID is the id of the allocation of rank in an attempt. It is a function
// of them, so that planning needs no randomness and an old attempt's id can
// never be mistaken for a new one's.
func AllocID(jobID string, subjob int, attempt uint64, rank int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d/%d", jobID, subjob, attempt, rank))
	return hex.EncodeToString(sum[:16])
}

// RankName is the host name of a rank: people, frameworks and MPI use it.
// Parameter servers are called ps0, ps1 and so on in the place of the rank.
func RankName(job *Job, subjob int, attempt uint64, rank int) string {
	place := strconv.Itoa(rank)
	if job.IsServer(rank) {
		place = "ps" + strconv.Itoa(rank-job.Nodes)
	}
	if job.Batched() {
		return fmt.Sprintf("%s-s%d-%d-%s", job.Name, subjob, attempt, place)
	}
	return fmt.Sprintf("%s-%d-%s", job.Name, attempt, place)
}

// SubjobKey names a subjob in one word, for instance in Usage.NominatedFor.
func SubjobKey(jobID string, subjob int) string { return fmt.Sprintf("%s/%d", jobID, subjob) }
