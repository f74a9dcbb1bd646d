package runtime

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

const (
	// Calm is how long a condition must be over for its fault to be.
	Calm = 30 * time.Second
	// FaultsMax bounds the faults of one card.
	FaultsMax = 128
	// Gone is the code of a card that has vanished from the machine. Being back
	// proves nothing about having been gone: it takes a reboot or an operator.
	Gone = "gone"
)

// Unit is what is kept of one card over time, whatever its vendor. A vendor
// embeds it in a unit of its own.
type Unit struct {
	Faults Faults `json:"faults,omitempty"`
	// Since says from when on a condition has held that is no fault yet.
	Since map[string]time.Time `json:"since,omitempty"`
	// Suspect: its memory is in use by nobody, as Reap has found.
	Suspect bool `json:"suspect,omitempty"`
	// Unkillable are processes of dead tasks on it that could not be ended.
	Unkillable []int `json:"stuck,omitempty"`
}

// Fault is something wrong with a card.
type Fault struct {
	Code     string          `json:"code"`
	Action   device.Action   `json:"action"`
	Reason   *structs.Reason `json:"reason"`
	Since    time.Time       `json:"since"`
	Last     time.Time       `json:"last"` // when it was last seen to hold
	Count    int             `json:"count,omitempty"`
	Instance string          `json:"instance,omitempty"` // id of the only part that it hits; "": all
	// Measured: it is over when the measurement says so. Others need a reset,
	// a reboot, or an operator's word.
	Measured bool `json:"measured,omitempty"`
	// Verdict: the driver itself has asked for something since, so that its
	// taking back ends the fault.
	Verdict bool `json:"verdict,omitempty"`
}

// Faults are those of one card, in the order in which they began.
type Faults []Fault

// UnmarshalJSON reads a list, or an object by code, as the ascend plugin wrote
// it before it had this runtime.
func (f *Faults) UnmarshalJSON(text []byte) error {
	if len(text) == 0 || text[0] != '{' {
		return json.Unmarshal(text, (*[]Fault)(f))
	}
	var byCode map[string]Fault
	if err := json.Unmarshal(text, &byCode); err != nil {
		return err
	}
	*f = nil
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		one := byCode[code]
		one.Code, one.Measured = code, code != Gone
		*f = append(*f, one)
	}
	return nil
}

// Condition is one thing that may be wrong with a card, as it is seen now.
type Condition struct {
	Code   string
	Holds  bool
	Action device.Action
	After  time.Duration // it must hold that long to be a fault
	Calm   time.Duration // how long it must be over for its fault to be; 0: Calm
	Sticky bool          // a fault once it holds: measuring well again is not enough
	Kept   bool          // a fault also where its action lets the card take work: what it says stands beside the card
	Still  bool          // its fault keeps the reason that it began with
	Again  bool          // each time that it is seen is news
	// Text names the vendor's text; "": as the code.
	Text   string
	Params []any
}

// Subject is the card that is judged.
type Subject struct {
	ID string
	// Say makes the vendor's text of a name, about this card.
	Say func(name string, params ...any) *structs.Reason
}

func (s Subject) event(now time.Time, code string, action device.Action, reason *structs.Reason) *device.Event {
	return &device.Event{At: now, DeviceID: s.ID, Code: code, Action: action, Reason: reason}
}

// Recovered reports that a fault is over.
func (s Subject) Recovered(code string, now time.Time) *device.Event {
	return s.event(now, code, device.ActNone, s.Say("recovered", "code", code))
}

// Common is the unit itself, for those that embed it.
func (u *Unit) Common() *Unit { return u }

// Judge turns a condition into a fault, or ends one, and says of it once.
// began: the event reports something that was not known.
func (u *Unit) Judge(c Condition, s Subject, now time.Time) (event *device.Event, began bool) {
	at := slices.IndexFunc(u.Faults, func(f Fault) bool { return f.Code == c.Code })
	if !c.Holds {
		delete(u.Since, c.Code)
		if at < 0 || !u.Faults[at].Measured || now.Sub(u.Faults[at].Last) < cmp.Or(c.Calm, Calm) {
			return nil, false
		}
		u.Faults = slices.Delete(u.Faults, at, at+1)
		return s.Recovered(c.Code, now), false
	}
	if u.Since == nil {
		u.Since = make(map[string]time.Time)
	}
	since, waiting := u.Since[c.Code]
	if !waiting {
		since = now
		u.Since[c.Code] = now
	}
	reason := s.Say(cmp.Or(c.Text, c.Code), c.Params...)
	if at >= 0 {
		f := &u.Faults[at]
		f.Last = now
		if !c.Still {
			f.Reason = reason
		}
		if f.Action == c.Action {
			return nil, false
		}
		f.Action = c.Action // the driver has changed its mind, or the table has
		return s.event(now, c.Code, c.Action, reason), false
	}
	if now.Sub(since) < c.After || c.Action == device.ActNone {
		return nil, false
	}
	if c.Action.TakesWork() && !c.Kept {
		if waiting && c.After == 0 && !c.Again {
			return nil, false // told already
		}
		return s.event(now, c.Code, c.Action, reason), true
	}
	u.Add(Fault{Code: c.Code, Action: c.Action, Reason: reason, Since: since, Last: now, Count: 1, Measured: !c.Sticky})
	return s.event(now, c.Code, c.Action, reason), true
}

// JudgeAll judges a card by the conditions that hold; whatever else was wrong
// with it is over, unless it is silent: what does not answer says nothing about
// its other faults.
func (u *Unit) JudgeAll(holding []Condition, silent bool, s Subject, now time.Time) []device.Event {
	var events []device.Event
	holds := make(map[string]bool, len(holding))
	for _, c := range holding {
		c.Holds, holds[c.Code] = true, true
		if event, _ := u.Judge(c, s, now); event != nil {
			events = append(events, *event)
		}
	}
	for code := range u.Since {
		if !holds[code] {
			delete(u.Since, code)
		}
	}
	if silent {
		return events
	}
	// In the order of codes, whichever began first.
	known := slices.Clone(u.Faults)
	slices.SortFunc(known, func(a, b Fault) int { return strings.Compare(a.Code, b.Code) })
	for _, f := range known {
		if holds[f.Code] {
			continue
		}
		if event, _ := u.Judge(Condition{Code: f.Code}, s, now); event != nil {
			events = append(events, *event)
		}
	}
	return events
}

// Add keeps a fault; of too many the first one goes.
func (u *Unit) Add(f Fault) {
	u.Faults = append(u.Faults, f)
	if len(u.Faults) > FaultsMax {
		u.Faults = slices.Delete(u.Faults, 0, 1)
	}
}

// Worst returns what the card asks for.
func (u *Unit) Worst() device.Action {
	worst := device.ActNone
	for _, f := range u.Faults {
		worst = worst.Worse(f.Action)
	}
	return worst
}

// Forget ends faults: all, or those that a reset ends. Conditions that still
// hold come back.
func (u *Unit) Forget(all bool, s Subject, now time.Time) []device.Event {
	var events []device.Event
	u.Faults = slices.DeleteFunc(u.Faults, func(f Fault) bool {
		if all || device.ActReset.Worse(f.Action) == device.ActReset {
			events = append(events, *s.Recovered(f.Code, now))
			return true
		}
		return false
	})
	u.Since, u.Suspect = nil, false
	return events
}

// Rebooted ends what waited for a reboot, or for a reset; what needs a person
// stays.
func (u *Unit) Rebooted() {
	u.Faults = slices.DeleteFunc(u.Faults, func(f Fault) bool { return f.Action != device.ActService || f.Measured })
	u.Since, u.Suspect, u.Unkillable = nil, false, nil
}

// apply writes the worst fault into a device. A task's own fault is none of the
// device.
func (u *Unit) apply(d *structs.Device) {
	var worst *Fault
	for k := range u.Faults {
		f := &u.Faults[k]
		if (f.Instance == "" || f.Instance == d.ID) && (worst == nil || worst.Action.Worse(f.Action) != worst.Action) {
			worst = f
		}
	}
	if worst == nil || worst.Action == device.ActTask {
		return
	}
	device.Judge(d, worst.Action, worst.Reason)
	d.Attrs[device.AttrFault] = worst.Code
	d.Attrs[device.AttrFaultSince] = worst.Since.UTC().Format(time.RFC3339)
}

// Numbers joins numbers, as texts name processes.
func Numbers(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}
