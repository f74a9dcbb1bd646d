package client

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/exec"
)

// watchNotes counts what the watches of an allocation told.
func (c *control) watchNotes(id string) (silent, heard int, slow []structs.Slowness, last structs.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, note := range c.mu.notes {
		switch {
		case note.AllocID != id:
		case note.Slow != nil:
			slow = append(slow, *note.Slow)
		case note.Progress != nil && note.Progress.Silent:
			silent++
			last = *note.Progress
		case note.Progress != nil:
			heard++
		}
	}
	return silent, heard, slow, last
}

// TestWatches: a task that prints steps and then stands still is told of with
// its last step and its idle processors, and once more when it goes on; a bad
// figure is told of once.
func TestWatches(t *testing.T) {
	c := newControl()
	nodeWithData(t, c, exec.IsolationRaw, "", nil)
	gate := t.TempDir()
	a := gang("watched", 1, fmt.Sprintf(`sh -c "for i in 1 2 3 4 5 6 7 8 9; do echo step $i; sleep 0.1; done; `+
		`echo hardware time is 9 and e2e time is 10 ms; echo hardware time is 9 and e2e time is 10 ms; `+
		`while [ ! -e %s/on ]; do sleep 0.05; done; echo step 10; sleep 60"`, gate), "n1")[0]
	a.Job.Hang = &structs.Hang{Action: structs.WatchAlert, Factor: 10, Least: structs.Duration(2 * time.Second), Most: structs.Duration(time.Minute)}
	a.Job.Checkpoint = &structs.Checkpoint{Performance: &structs.Performance{Threshold: 0.664, Compare: "gt", Times: 2, Action: structs.WatchAlert}}
	c.assign(a)
	eventually.Within(t, time.Minute, "silence is told", func() bool { n, _, _, _ := c.watchNotes(a.Alloc.ID); return n > 0 })
	_, heard, slow, last := c.watchNotes(a.Alloc.ID)
	if last.Step != 9 || last.Mute || last.Over || heard != 0 || last.Limit < structs.Duration(2*time.Second) || last.Limit > structs.Duration(30*time.Second) {
		t.Errorf("told %+v, heard %d", last, heard)
	}
	if len(slow) != 1 || slow[0].Value != 0.9 || slow[0].Times != 2 {
		t.Errorf("slow %+v", slow)
	}
	if err := os.WriteFile(filepath.Join(gate, "on"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "it is heard again", func() bool { _, n, _, _ := c.watchNotes(a.Alloc.ID); return n > 0 })
}
