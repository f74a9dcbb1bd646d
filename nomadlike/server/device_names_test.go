package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// TestDevicesByNumber: numbers of devices on the named nodes become their ids at
// admission, of each node; ids stay, and so does what names nothing.
func TestDevicesByNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		for _, name := range []string{"m1", "m2"} {
			node := c.newNode(name)
			node.node.Devices = []structs.Device{
				{ID: name + "-a", Index: 2, Kind: "nvidia/gpu", Healthy: true},
				{ID: name + "-b", Index: 0, Kind: "nvidia/gpu", Healthy: true},
				{ID: name + "-c", Index: 2, Kind: "huawei/npu", Healthy: true},
				{ID: "1", Index: 7, Kind: "nvidia/gpu", Healthy: true},
			}
			node.connect(0)
		}
		c.eventually(0, time.Second, "nodes", func(s *state.Snapshot) bool { return s.NodeCount() == 2 })
		for _, try := range []struct {
			nodes, ids, want []string
		}{
			{[]string{"m1"}, []string{"2", "0"}, []string{"m1-a", "m1-b"}},
			{[]string{"m1"}, []string{"m1-b", "1"}, []string{"m1-b", "1"}},
			{[]string{"m1"}, []string{"2", "5"}, []string{"m1-a", "5"}},
			{[]string{"m1", "m2"}, []string{"2", "0"}, []string{"m1-a", "m1-b", "m2-a", "m2-b"}},
		} {
			job := testJob("one", len(try.nodes))
			job.Distributed.Mode = structs.ModeNone
			job.Placement.Nodes = try.nodes
			job.Resources = []structs.Resources{{Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 2, IDs: try.ids}}}}
			admitted, err := Admit(c.servers[0].Store().Snapshot(), job)
			if err != nil {
				t.Fatal(err.Details)
			}
			if got := admitted.Job().Resources[0].Devices[0].IDs; !slices.Equal(got, try.want) {
				t.Errorf("%q on %q: %q, want %q", try.ids, try.nodes, got, try.want)
			}
			if problems := admitted.Job().Validate(); len(problems) > 0 {
				t.Errorf("what was admitted cannot be submitted again: %v", problems)
			}
			if !slices.Equal(job.Resources[0].Devices[0].IDs, try.ids) {
				t.Error("the job that was given is changed")
			}
		}
	})
}
