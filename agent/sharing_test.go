package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/nvidia/nvmltest"
)

// A card that the node's configuration divides is several devices: as many jobs
// are on it at a time, each with its own part, and nobody gets one who asks for a
// whole card.
func (m maker) partsOfCardsAreShared(t *testing.T) {
	share := cty.ObjectVal(map[string]cty.Value{
		"cards": cty.TupleVal([]cty.Value{cty.StringVal("0")}), "how": cty.StringVal("time-slice"), "parts": cty.NumberIntVal(2),
	})
	c := m.start(t, 2, setting{"share", cty.TupleVal([]cty.Value{share})})
	node, err := c.client.NodeDevices(t.Context(), c.agent.ID())
	if err != nil || len(node.Devices) != 3 {
		t.Fatalf("devices %+v %v", node, err)
	}
	say := `sh -c 'echo $CUDA_VISIBLE_DEVICES; while test ! -e ../end; do sleep 0.05; done'`
	seen := map[string]bool{}
	for _, name := range []string{"one", "two"} {
		file := strings.Replace(onCards(name, 1, say), "nvidia/gpu", "nvidia/gpu-shared", 1)
		alloc := allocOf(t, c.client, runJob(t, c.client, file, structs.JobRunning).Job.ID)
		eventually.Within(t, time.Minute, "the job sees its card", func() bool {
			return logsOf(t, c.client, alloc.ID, api.LogOptions{}) == "GPU-0000\n"
		})
		seen[alloc.Devices[0]] = true
	}
	if len(seen) != 2 {
		t.Errorf("two jobs have the parts %v", seen)
	}
	whole := allocOf(t, c.client, runJob(t, c.client, onCards("whole", 1, say), structs.JobRunning).Job.ID)
	if !slices.Equal(whole.Devices, []string{"GPU-0001"}) {
		t.Errorf("who asked for a card got %q", whole.Devices)
	}
	if node, err = c.client.NodeDevices(t.Context(), c.agent.ID()); err != nil {
		t.Fatal(err)
	}
	parts := 0
	for _, d := range node.Devices {
		if d.Slice > 0 && d.Attrs["sharing"] == "time-slice" && d.Attrs["parent"] == "GPU-0000" && d.Used && d.Owner != nil {
			parts++
		}
	}
	if parts != 2 {
		t.Errorf("people are shown %+v", node.Devices)
	}
}

// Two jobs on one card by MPS have the daemon's pipes, which the plugin has
// started, and each the limits of its part.
func (m maker) partsByMPS(t *testing.T) {
	mps := nvmltest.NewMPS(t)
	share := cty.ObjectVal(map[string]cty.Value{
		"cards": cty.TupleVal([]cty.Value{cty.StringVal("0")}), "how": cty.StringVal("mps"), "parts": cty.NumberIntVal(2), "pipe_dir": cty.StringVal(mps.Pipes),
	})
	c := m.start(t, 1, setting{"share", cty.TupleVal([]cty.Value{share})}, setting{"mps_control", cty.StringVal(mps.Program)})
	c.await(t, "GPU-0000::1", true)
	if got := mps.Environment(t, mps.Await(t), "CUDA_VISIBLE_DEVICES"); got != "GPU-0000" {
		t.Errorf("the daemon has the cards %q", got)
	}
	say := `sh -c 'echo $CUDA_VISIBLE_DEVICES $CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; while test ! -e ../end; do sleep 0.05; done'`
	seen := map[string]bool{}
	for _, name := range []string{"one", "two"} {
		file := strings.Replace(onCards(name, 1, say), "nvidia/gpu", "nvidia/gpu-shared", 1)
		alloc := allocOf(t, c.client, runJob(t, c.client, file, structs.JobRunning).Job.ID)
		eventually.Within(t, time.Minute, "the job sees its part", func() bool {
			return logsOf(t, c.client, alloc.ID, api.LogOptions{}) == "GPU-0000 "+mps.Pipes+" 50 0=40779M\n"
		})
		seen[alloc.Devices[0]] = true
	}
	if !seen["GPU-0000::1"] || !seen["GPU-0000::2"] {
		t.Errorf("two jobs have the parts %v", seen)
	}
	third, err := c.client.SubmitJob(t.Context(), api.JobRequest{HCL: strings.Replace(onCards("three", 1, say), "nvidia/gpu", "nvidia/gpu-shared", 1)}, "")
	if err != nil {
		t.Fatal(err)
	}
	node, err := c.client.NodeDevices(t.Context(), c.agent.ID())
	if err != nil || len(node.Devices) != 2 {
		t.Fatalf("people are shown %+v, %v", node, err)
	}
	for i, d := range node.Devices {
		if d.Slice != i+1 || d.Attrs["sharing"] != "mps" || d.Attrs["parent"] != "GPU-0000" || !d.Used || d.Owner == nil {
			t.Errorf("people are shown %+v", d)
		}
	}
	if job, _, err := c.client.Job(t.Context(), third.JobID, nil); err != nil || job.State != structs.JobQueued {
		t.Errorf("a third job on two parts is %+v, %v", job, err)
	}
}

// A job that asks for instances of a card in MIG mode sees exactly its own, by
// their UUIDs, and nobody gets the card as a whole.
func (m maker) instancesOfCards(t *testing.T) {
	c := m.start(t, 2)
	c.Change("gpu uuid=GPU-0000 ", "gpu uuid=GPU-0000 mig=1 ")
	c.Add(`instance GPU-0000 uuid=MIG-a gi=1 ci=0 name="NVIDIA H100 80GB HBM3 MIG 1g.10gb" total=9728`,
		`instance GPU-0000 uuid=MIG-b gi=2 ci=0 name="NVIDIA H100 80GB HBM3 MIG 1g.10gb" total=9728`,
		`instance GPU-0000 uuid=MIG-c gi=5 ci=0 name="NVIDIA H100 80GB HBM3 MIG 3g.40gb" total=40448`)
	c.await(t, "MIG-c", true)
	say := `sh -c 'echo $CUDA_VISIBLE_DEVICES; while test ! -e ../end; do sleep 0.05; done'`
	instances := func(name, count string) structs.Allocation {
		t.Helper()
		file := strings.Replace(onCards(name, 1, say), `device "nvidia/gpu" { count = 1 }`, `device "nvidia/mig" {`+count+`}`, 1)
		alloc := allocOf(t, c.client, runJob(t, c.client, file, structs.JobRunning).Job.ID)
		eventually.Within(t, time.Minute, "the job sees its instances", func() bool {
			return logsOf(t, c.client, alloc.ID, api.LogOptions{}) == strings.Join(alloc.Devices, ",")+"\n"
		})
		return alloc
	}
	large := instances("large", "\n      count = 1\n      model = \"3g.40gb\"\n    ")
	both := instances("both", " count = 2 ")
	slices.Sort(both.Devices)
	if !slices.Equal(large.Devices, []string{"MIG-c"}) || !slices.Equal(both.Devices, []string{"MIG-a", "MIG-b"}) {
		t.Errorf("jobs have the instances %q and %q", large.Devices, both.Devices)
	}
	whole := allocOf(t, c.client, runJob(t, c.client, onCards("whole", 1, say), structs.JobRunning).Job.ID)
	if !slices.Equal(whole.Devices, []string{"GPU-0001"}) {
		t.Errorf("who asked for a card got %q", whole.Devices)
	}
	node, err := c.client.NodeDevices(t.Context(), c.agent.ID())
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, d := range node.Devices {
		if d.Attrs["sharing"] == "mig" && d.Attrs["parent"] == "GPU-0000" && d.Slice > 0 && d.Owner != nil {
			shown++
		}
	}
	if shown != 3 {
		t.Errorf("people are shown %+v", node.Devices)
	}
	// What befalls one instance befalls its job alone; what befalls the card, all.
	c.Happen("GPU-0000 xid=79")
	for _, id := range []string{"MIG-a", "MIG-b", "MIG-c"} {
		c.await(t, id, false)
	}
	if d := c.await(t, "GPU-0001", true); d.Health != nil {
		t.Errorf("the other card says %+v", d.Health)
	}
}
