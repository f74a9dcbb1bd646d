package device

import (
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Action is what a device's condition, or an event, asks for. The words are
// stable: they stand in attributes, in tables of codes and on the wire.
type Action string

// The actions, mildest first.
const (
	// ActNone: all is well.
	ActNone Action = ""
	// ActNotice: people should see it; nothing is done.
	ActNotice Action = "notice"
	// ActTask: the task's own fault. The device stays healthy.
	ActTask Action = "task"
	// ActCordon: no new work; work that runs goes on.
	ActCordon Action = "cordon"
	// ActReset: work is moved away; the empty device is reset, tested and
	// comes back.
	ActReset Action = "reset"
	// ActReboot: work is moved away; the machine must be rebooted.
	ActReboot Action = "reboot"
	// ActService: work is moved away; a person must look at the hardware.
	ActService Action = "service"
)

// severity orders the actions. An unknown word ranks just above ActCordon, so
// that a newer plugin is not taken lightly.
func (a Action) severity() int {
	switch a {
	case ActNone:
		return 0
	case ActNotice:
		return 1
	case ActTask:
		return 2
	case ActCordon:
		return 3
	case ActReset:
		return 5
	case ActReboot:
		return 6
	case ActService:
		return 7
	}
	return 4
}

// Known reports whether a is one of the actions of this version.
func (a Action) Known() bool {
	return slices.Contains([]Action{ActNone, ActNotice, ActTask, ActCordon, ActReset, ActReboot, ActService}, a)
}

// Worse returns the more severe of two actions.
func (a Action) Worse(b Action) Action {
	if b.severity() > a.severity() {
		return b
	}
	return a
}

// TakesWork reports whether a device with this action may get new work.
func (a Action) TakesWork() bool { return a.severity() < ActCordon.severity() }

// Drains reports whether work that runs on such a device must be moved away.
func (a Action) Drains() bool { return a.severity() > ActCordon.severity() }

// ActionOf reads what a device asks for.
func ActionOf(d *structs.Device) Action {
	action := Action(d.Attrs[AttrAction])
	if action == ActNone && !d.Healthy {
		return ActCordon
	}
	return action
}

// Judge writes a verdict into a device: its health, the reason and the action.
// The device's Attrs are changed in place, and made when there are none.
func Judge(d *structs.Device, action Action, reason *structs.Reason) {
	d.Healthy = action.TakesWork()
	d.Health = reason
	if action == ActNone {
		d.Health = nil
		delete(d.Attrs, AttrAction)
		return
	}
	if d.Attrs == nil {
		d.Attrs = make(map[string]string, 1)
	}
	d.Attrs[AttrAction] = string(action)
}

// Cordoned returns copies of devices that take no new work, for reason. What
// asks for more than that keeps its own reason.
func Cordoned(devices []structs.Device, reason *structs.Reason) []structs.Device {
	marked := Clone(devices)
	for i := range marked {
		if ActionOf(&marked[i]).TakesWork() {
			Judge(&marked[i], ActCordon, reason)
		}
	}
	return marked
}

// Clone copies devices with their attributes. Reasons are shared: nobody
// changes one.
func Clone(devices []structs.Device) []structs.Device {
	copied := slices.Clone(devices)
	for i := range copied {
		if copied[i].Attrs == nil {
			continue
		}
		attrs := make(map[string]string, len(copied[i].Attrs))
		for key, value := range copied[i].Attrs {
			attrs[key] = value
		}
		copied[i].Attrs = attrs
	}
	return copied
}

// Sort puts devices into the order of a Snapshot.
func Sort(devices []structs.Device) {
	slices.SortFunc(devices, func(a, b structs.Device) int {
		if a.Index != b.Index {
			return a.Index - b.Index
		}
		if a.ID < b.ID {
			return -1
		}
		if a.ID > b.ID {
			return 1
		}
		return 0
	})
}

func sortedKeys(texts map[string]string) []string {
	return slices.Sorted(maps.Keys(texts))
}
