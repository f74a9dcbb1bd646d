package client

import (
	"slices"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/exec"
)

// A script that dies of the launcher's argument gets the cure in its job's
// events, before the end is told; another mode's does not.
func TestAdviceOfLaunchArgument(t *testing.T) {
	c := newControl()
	nodeWithData(t, c, exec.IsolationRaw, "", nil)
	const command = `sh -c "echo 't.py: error: unrecognized arguments: --local-rank=0' >&2; exit 2"`
	for mode, want := range map[structs.Mode]bool{structs.ModePyTorch: true, structs.ModeSingle: false} {
		a := gang(string(mode), 1, command, "n1")[0]
		a.Job.Distributed.Mode = mode
		c.assign(a)
		if r := wantEnd(t, c, a.Alloc.ID); r.ExitCode != 2 {
			t.Errorf("report %+v", r)
		}
		if got := slices.Contains(c.toldRules(a.Alloc.ID), "log-launch-argument"); got != want {
			t.Errorf("mode %s: told %v, want %v", mode, got, want)
		}
	}
}

// toldRules lists the rules that were found true of an allocation.
func (c *control) toldRules(id string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rules []string
	for _, note := range c.mu.notes {
		if note.AllocID == id && note.Told != nil && note.Told.Event == structs.EventEnvironmentFound {
			rules = append(rules, note.Told.Params["rule"])
		}
	}
	return rules
}
