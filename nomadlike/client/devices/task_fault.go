package devices

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// taskFaultAfter is how long after its end a task may still be the one that a fault
// of its own is heard of: a process dies of it before the driver has written it down.
const taskFaultAfter = 5 * time.Second

// taskFault is a fault that an allocation has been told of.
type taskFault struct{ alloc, device, code string }

// tellTasks makes the faults that tasks have brought upon themselves events of their
// jobs: what the framework prints of them is often no more than that a call failed.
// Each allocation is told once of each fault of each device.
func (d *Devices) tellTasks(l *loop.Loop, events []device.Event) {
	devices, _ := d.watch.registered()
	card := make(map[string]string, len(devices)) // the physical device of each
	for i := range devices {
		card[devices[i].ID] = cmp.Or(devices[i].Attrs[device.AttrParent], devices[i].ID)
	}
	maps.DeleteFunc(d.toldFaults, func(f taskFault, _ bool) bool { _, known := l.State(f.alloc); return !known })
	states := l.States()
	devicesOf := func(id string) []string {
		if a := l.Assignment(id); a != nil {
			return a.Alloc.Devices
		}
		return d.reserved[id] // it has ended
	}
	for _, e := range events {
		if e.Action != device.ActTask || e.Reason == nil {
			continue
		}
		on := holders(states, devicesOf, card, e.DeviceID, d.Now())
		event := structs.EventDeviceFault
		if len(on) > 1 {
			event = structs.EventDeviceFaultShared // the process that the driver names may be another's: MPS makes one client of all
		}
		for _, s := range on {
			fault := taskFault{s.AllocID, e.DeviceID, e.Code}
			if !d.toldFaults[fault] {
				d.toldFaults[fault] = true
				d.Notes.Tell(s.AllocID, s.Attempt, structs.Told{Event: event, Severity: "warn", Params: faultParams(&e)})
			}
		}
	}
}

// remember keeps what an allocation has been given for as long as it is known here.
func (d *Devices) remember(l *loop.Loop, id string, devices []string) {
	maps.DeleteFunc(d.reserved, func(id string, _ []string) bool { _, known := l.State(id); return !known })
	d.reserved[id] = devices
}

// holders returns the allocations that have a device, or a part of it: those that may
// have processes, or, when there are none, those that have ended lately. Pure.
func holders(states []alloc.State, devicesOf func(alloc string) []string, card map[string]string, id string, now time.Time) (found []alloc.State) {
	var late []alloc.State
	for _, s := range states {
		if !slices.ContainsFunc(devicesOf(s.AllocID), func(used string) bool { return used == id || card[used] == id }) {
			continue
		}
		switch {
		case s.Phase.MayHaveProcesses():
			found = append(found, s)
		case s.Phase == alloc.PhaseEnded && s.Handle != nil && now.Sub(s.EndedAt.Time()) <= taskFaultAfter:
			late = append(late, s)
		}
	}
	if len(found) > 0 {
		return found
	}
	return late
}

// faultParams are the parameters of the event: the reason in words, with its id and
// its own parameters, so that every reader gets it in a language of theirs.
func faultParams(e *device.Event) map[string]string {
	params := map[string]string{
		"cause": messages.Text(messages.English, e.Reason.ID, e.Reason.Params), "cause_id": e.Reason.ID,
		"device": e.DeviceID, "code": e.Code,
	}
	if e.PID > 0 {
		params["pid"] = strconv.Itoa(e.PID)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Reason.Params)) {
		if len(params) < structs.NoteParamsMax {
			params["cause."+name] = e.Reason.Params[name]
		}
	}
	return params
}
