package state

import (
	"nomadlike/nomadlike/structs"
)

// Attributes of devices that tell what their condition asks for, and the code of
// what is wrong: see plugins/device, which may not be imported here.
const (
	attrDeviceAction = "action"
	attrDeviceFault  = "fault"
)

// deviceEventsMax bounds what one registration says of single devices: when the
// library of a machine hangs, all of them change at once.
const deviceEventsMax = 64

// tellDevices records how the health of a node's devices has changed: those that
// have become unhealthy, those that are healthy again, and those that are gone. Devices
// that are new and well are nothing to tell.
func (tx *txn) tellDevices(before, after *structs.Node) {
	known := make(map[string]*structs.Device, len(before.Devices)) // looked up, never ranged over
	for i := range before.Devices {
		known[before.Devices[i].ID] = &before.Devices[i]
	}
	there := make(map[string]bool, len(after.Devices))
	told := 0
	tell := func(id, severity string, d *structs.Device) {
		if told++; told > deviceEventsMax {
			return
		}
		event := nodeEvent(id, after)
		event.Severity, event.Cause = severity, d.Health
		params := []string{"node", after.Name, "device", d.ID, "number", decimal(d.Index)}
		if fault := d.Attrs[attrDeviceFault]; fault != "" {
			params = append(params, "fault", fault)
		}
		tx.tell(event, params...)
	}
	for i := range after.Devices {
		d := &after.Devices[i]
		there[d.ID] = true
		was := known[d.ID]
		if was == nil {
			was = &structs.Device{Healthy: true}
		}
		if sameHealth(was, d) {
			continue
		}
		switch action := d.Attrs[attrDeviceAction]; {
		case !d.Healthy && (action == "" || action == "cordon"):
			tell("event.node.device_suspect", severityWarn, d)
		case !d.Healthy:
			tell("event.node.device_unwell", severityError, d)
		case action != "":
			tell("event.node.device_noted", "", d)
		default:
			tell("event.node.device_well", "", d)
		}
	}
	for i := range before.Devices {
		if d := before.Devices[i]; !there[d.ID] {
			d.Health = nil
			tell("event.node.device_gone", severityWarn, &d)
		}
	}
	if told > deviceEventsMax {
		event := nodeEvent("event.node.devices_more", after)
		event.Severity = severityWarn
		tx.tell(event, "node", after.Name, "count", decimal(told-deviceEventsMax))
	}
}

// sameHealth reports whether two states of a device say the same of its health.
// Figures within a reason change all the time and count for nothing.
func sameHealth(a, b *structs.Device) bool {
	reason := func(d *structs.Device) string {
		if d.Health == nil {
			return ""
		}
		return d.Health.ID
	}
	return a.Healthy == b.Healthy && reason(a) == reason(b) &&
		a.Attrs[attrDeviceAction] == b.Attrs[attrDeviceAction] && a.Attrs[attrDeviceFault] == b.Attrs[attrDeviceFault]
}
