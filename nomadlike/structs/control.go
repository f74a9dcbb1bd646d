package structs

import "time"

// Bounds of a throttle: each part of its cycle. Shorter ones would cost more
// than they leave to others, longer ones look like a pause.
const (
	ThrottlePartMin = Duration(10 * time.Millisecond)
	ThrottlePartMax = Duration(time.Minute)
	// ThrottleBusyDefault is how long a throttled job computes at a stretch
	// when only its idle time is said.
	ThrottleBusyDefault = Duration(500 * time.Millisecond)
)

// Control is what people want of a gang that runs: that it stands still, or
// that it leaves time to others. It is the same for every rank. Seq is the log
// index of the order that made it; a node answers with the Seq that it has
// executed, so that answers may come late, twice or in any order.
type Control struct {
	Seq    uint64   `json:"seq"`
	Paused bool     `json:"paused,omitempty"`
	Busy   Duration `json:"busy,omitempty"` // throttle: it runs so long,
	Idle   Duration `json:"idle,omitempty"` // and stands still so long, in turns; 0: no throttle
}

// Throttled reports whether the gang leaves time to others. A nil Control does
// not.
func (c *Control) Throttled() bool { return c != nil && c.Idle > 0 }

// Pauses reports whether the gang is to stand still. A nil Control lets it run.
func (c *Control) Pauses() bool { return c != nil && c.Paused }

// ControlAnswer is what a node says of a Control: that it is executed, or
// why that cannot be. Without Failed it is.
type ControlAnswer struct {
	Seq    uint64  `json:"seq"`
	Failed *Reason `json:"failed,omitempty"`
}

// ThrottleProblem checks the parts of a throttle; nil when they are good. An
// idle of 0 ends the throttle, whatever busy is.
func ThrottleProblem(busy, idle Duration) *Error {
	if idle == 0 {
		return nil
	}
	for _, part := range []Duration{busy, idle} {
		if part < ThrottlePartMin || part > ThrottlePartMax {
			return NewError(CodeInvalid, "job.throttle_bounds", "value", FormatDuration(part),
				"min", FormatDuration(ThrottlePartMin), "max", FormatDuration(ThrottlePartMax))
		}
	}
	return nil
}
