package forecast

import (
	"testing"
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// TestHelpFits proposes a change to whoever asks for what no node has, and the
// reason names what that is.
func TestHelpFits(t *testing.T) {
	d := newDrive(scheduler.Settings{}, 4, 8)
	d.board.PutNode("id-cpu", testNode("cpu", 0), nil)
	in := Input{Board: d.ready(scheduler.Settings{})}
	for name, c := range map[string]struct {
		devices int
		change  func(*structs.Job)
		wait    string
		help    Help
	}{
		"sixteen cards":  {16, func(*structs.Job) {}, "scheduler.devices_many", Help{Kind: HelpSpread, Nodes: 2, Devices: 8}},
		"twelve cards":   {12, func(*structs.Job) {}, "scheduler.devices_many", Help{Kind: HelpSpread, Nodes: 2, Devices: 6}},
		"too many cards": {64, func(*structs.Job) {}, "scheduler.devices_many", Help{Kind: HelpDevices, Devices: 8}},
		"another driver": {8, func(j *structs.Job) { j.Placement.DriverVersion = ">= 999" }, "scheduler.driver_version_missing", Help{Kind: HelpDriverVersion}},
		"another model":  {8, func(j *structs.Job) { j.Resources[0].Devices[0].Model = "H100" }, "scheduler.model_missing", Help{Kind: HelpSpec, Model: "A800"}},
		"too many cores": {8, func(j *structs.Job) { j.Resources[0].CPU = 150 }, "scheduler.too_large", Help{Kind: HelpResources, CPU: 64, Memory: 8 << 30}},
		"RDMA":           {8, func(j *structs.Job) { j.Resources[0].RDMA, j.Resources[0].RDMAByNodes = true, true }, "scheduler.no_rdma", Help{Kind: HelpNoRDMA}},
		"two demands": {8, func(j *structs.Job) {
			j.Resources[0].Devices[0].Model, j.Placement.DriverVersion = "H100", ">= 999"
		}, "scheduler.model_missing", Help{Kind: HelpTwo}},
		"another node": {8, func(j *structs.Job) { j.Placement.Nodes = []string{"n9"} }, "scheduler.node_unknown", Help{Kind: HelpAnyNode}},
	} {
		t.Run(name, func(t *testing.T) {
			job := testJob("", 1, c.devices, time.Hour)
			job.Name = "x"
			c.change(job)
			a := Look(in, start, 1).Job(job)
			if a.Verdict != VerdictNever || a.Wait == nil || a.Wait.ID != c.wait {
				t.Fatalf("%s, waits for %+v", a.Verdict, a.Wait)
			}
			for _, help := range a.Helps {
				if help.Kind == c.help.Kind && help.Nodes == c.help.Nodes && help.Devices == c.help.Devices && help.Model == c.help.Model && help.CPU == c.help.CPU && help.Memory == c.help.Memory && help.Verdict == VerdictNow {
					return
				}
			}
			t.Fatalf("helps: %+v", a.Helps)
		})
	}
}

// A job that waits for cores alone, beside cards that are free, is offered those that
// are free, unless that is next to nothing.
func TestHelpWithFewerCores(t *testing.T) {
	for name, c := range map[string]struct {
		nodes int
		taken float64 // cores of each node
		cpu   float64 // of the help; 0: none
	}{
		"half":            {1, 60, 4},
		"on every node":   {4, 60, 4},
		"next to nothing": {1, 63.5, 0},
		"it has room":     {1, 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(scheduler.Settings{}, 4, 8)
			for i := range 4 {
				busy := testJob(string(rune('a'+i)), 1, 0, 5*time.Hour)
				busy.Resources[0].CPU, busy.Resources[0].Memory = c.taken, 1<<30
				d.submit(busy)
			}
			d.pass()
			job := testJob("", c.nodes, 8, time.Hour)
			job.Name = "x"
			a := Look(Input{Board: d.ready(scheduler.Settings{})}, start, 1).Job(job)
			got := 0.0
			for _, help := range a.Helps {
				if help.Kind == HelpResources {
					got = help.CPU
					if help.Verdict != VerdictNow || help.Memory != 8<<30 {
						t.Errorf("%+v", help)
					}
				}
			}
			if got != c.cpu {
				t.Errorf("with %v cores, want %v: %s, %+v", got, c.cpu, a.Verdict, a.Helps)
			}
		})
	}
}
