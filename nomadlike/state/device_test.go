package state

import (
	"fmt"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestDeviceHistory registers a node again and again, as its agent does whenever
// the health of its devices has changed.
func TestDeviceHistory(t *testing.T) {
	store := New()
	index := uint64(0)
	register := func(change func(devices []structs.Device) []structs.Device) {
		index++
		node := testNode(0)
		for i := range node.Devices {
			node.Devices[i].Index, node.Devices[i].Attrs = i, map[string]string{}
		}
		node.Devices = change(node.Devices)
		store.Apply(index, encode(structs.CommandNodeRegister, structs.UnixNano(index), &structs.NodeRegister{Node: node}))
	}
	judged := func(healthy bool, action, fault, reason string) func([]structs.Device) []structs.Device {
		return func(devices []structs.Device) []structs.Device {
			devices[1].Healthy, devices[1].Health = healthy, structs.NewReason(reason, "temperature", index)
			devices[1].Attrs = map[string]string{attrDeviceAction: action, attrDeviceFault: fault}
			return devices
		}
	}
	same := func(devices []structs.Device) []structs.Device { return devices }
	register(same)
	register(judged(true, "notice", "thermal", "device.hot"))
	register(judged(true, "notice", "thermal", "device.hot")) // another temperature
	register(judged(false, "cordon", "xid-92", "device.xid"))
	register(judged(false, "reboot", "xid-79", "device.xid"))
	register(same)
	register(func(devices []structs.Device) []structs.Device { return devices[:1] })
	register(judged(false, "", "", "device.blind"))
	var text strings.Builder
	for _, e := range store.Snapshot().NodeEvents("node-0", "gpu-0-1") {
		cause := "-"
		if e.Cause != nil {
			cause = e.Cause.ID
		}
		fmt.Fprintf(&text, "%d %s %q fault=%s %s\n", e.Index, strings.TrimPrefix(e.ID, "event.node.device_"), e.Severity, e.Params["fault"], cause)
	}
	want := `2 noted "" fault=thermal device.hot
4 suspect "warn" fault=xid-92 device.xid
5 unwell "error" fault=xid-79 device.xid
6 well "" fault= -
7 gone "warn" fault= -
8 suspect "warn" fault= device.blind
`
	if text.String() != want {
		t.Errorf("history is\n%swant\n%s", text.String(), want)
	}
	if others := store.Snapshot().NodeEvents("node-0", "gpu-0-0"); len(others) != 0 {
		t.Errorf("the other device has the history %+v", others)
	}
	// All of many at once are counted.
	many := make([]structs.Device, 2*deviceEventsMax)
	for i := range many {
		many[i] = structs.Device{ID: fmt.Sprintf("card-%d", i), Index: i, Kind: "nvidia/gpu", Health: structs.NewReason("device.blind")}
	}
	before := len(store.Snapshot().NodeEvents("node-0", ""))
	register(func([]structs.Device) []structs.Device { return many })
	events := store.Snapshot().NodeEvents("node-0", "")[before:]
	if last := events[len(events)-1]; len(events) != deviceEventsMax+1 || last.ID != "event.node.devices_more" || last.Params["count"] != fmt.Sprint(deviceEventsMax+2) {
		t.Errorf("%d events, the last is %+v", len(events), last)
	}
}
