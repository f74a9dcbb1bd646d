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
		"another node":   {8, func(j *structs.Job) { j.Placement.Nodes = []string{"n9"} }, "scheduler.node_unknown", Help{Kind: HelpAnyNode}},
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
				if help.Kind == c.help.Kind && help.Nodes == c.help.Nodes && help.Devices == c.help.Devices && help.Model == c.help.Model && help.Verdict == VerdictNow {
					return
				}
			}
			t.Fatalf("helps: %+v", a.Helps)
		})
	}
}
