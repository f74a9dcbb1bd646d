package client

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// What a task did on its own card is an event of its job, once; what it did not is not.
func TestFaultsOfTasksAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		parts := device.FakeDevices("fake/card", 4)
		parts[3].Attrs = map[string]string{device.AttrParent: "FAKE-0002"} // a part of it
		cards := device.NewFake(parts...)
		c.node(t, t.TempDir(), "n1", w.driver(), func(c *Config) { c.DevicePlugins = map[string]device.Plugin{"fake": cards} })
		assigned := func(job, card string) string {
			a := gang(job, 1, "sleep 100", "n1")[0]
			a.Alloc.Devices = []string{card}
			c.assign(a)
			settle()
			return a.Alloc.ID
		}
		first, second, part := assigned("first", "FAKE-0000"), assigned("second", "FAKE-0001"), assigned("part", "FAKE-0003")
		want := func(when string, told ...[]string) {
			t.Helper()
			settle()
			got := [][]string{c.toldOf(first, structs.EventDeviceFault, "code"), c.toldOf(second, structs.EventDeviceFault, "code"), c.toldOf(part, structs.EventDeviceFault, "code")}
			if diff := cmp.Diff(told, got); diff != "" {
				t.Errorf("%s: events of each (-want +got):\n%s", when, diff)
			}
		}
		cards.Fault("FAKE-0000", "xid-31", device.ActTask)
		cards.Fault("FAKE-0000", "xid-31", device.ActTask)
		cards.Fault("FAKE-0000", "xid-13", device.ActTask)
		cards.Fault("FAKE-0001", "xid-63", device.ActNotice)
		cards.Fault("FAKE-0002", "xid-43", device.ActTask)
		want("while they run", []string{"xid-31", "xid-13"}, nil, []string{"xid-43"})
		if cause := c.toldOf(first, structs.EventDeviceFault, "cause"); cause[0] != "device FAKE-0000 reports fault xid-31" {
			t.Errorf("causes %q", cause)
		}

		// Of a card that two share nobody knows who it was.
		other := assigned("other", "FAKE-0003")
		cards.Fault("FAKE-0002", "xid-13", device.ActTask)
		settle()
		for _, id := range []string{part, other} {
			if diff := cmp.Diff([]string{"xid-13"}, c.toldOf(id, structs.EventDeviceFaultShared, "code")); diff != "" {
				t.Errorf("of a shared card (-want +got):\n%s", diff)
			}
		}

		// The driver writes it down when the process is dead already.
		w.exit(second, 1)
		settle()
		cards.Fault("FAKE-0001", "xid-45", device.ActTask)
		want("soon after the end", []string{"xid-31", "xid-13"}, []string{"xid-45"}, []string{"xid-43"})
		pass(10 * time.Second)
		cards.Fault("FAKE-0001", "xid-31", device.ActTask)
		want("long after the end", []string{"xid-31", "xid-13"}, []string{"xid-45"}, []string{"xid-43"})
	})
}
