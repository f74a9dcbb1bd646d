package structs

import (
	"testing"
	"time"
)

func TestWindowsBarJobs(t *testing.T) {
	hour := UnixNano(time.Hour)
	window := NodeMaintenance{ID: "w", Start: 10 * hour, End: 14 * hour}
	limited := func(hours int) *Job { return &Job{TimeLimit: Duration(hours) * Duration(time.Hour)} }
	saver := &Job{Checkpoint: &Checkpoint{}}
	for _, c := range []struct {
		name string
		job  *Job
		at   UnixNano
		keep bool
		want bool
	}{
		{"ends at the start", limited(4), 6 * hour, false, false},
		{"ends a moment later", limited(4), 6*hour + 1, false, true},
		{"starts within", limited(1), 12 * hour, false, true},
		{"starts at the end", limited(1), 14 * hour, false, false},
		{"starts a moment before the end", limited(1), 14*hour - 1, false, true},
		{"no limit", &Job{}, 1, false, true},
		{"no limit, afterwards", &Job{}, 14 * hour, false, false},
		{"keeps checkpoints", saver, 9 * hour, false, false},
		{"keeps checkpoints, shortly before", saver, 9*hour + 1, false, true},
		{"keeps checkpoints, and nobody stops it", saver, 1, true, true},
		{"keeps checkpoints and has a limit", &Job{Checkpoint: &Checkpoint{}, TimeLimit: Duration(5 * time.Hour)}, 6 * hour, false, true},
		{"a limit beyond all time", &Job{TimeLimit: 1<<63 - 1}, 6 * hour, false, true},
	} {
		w := window
		w.KeepRunning = c.keep
		if got := w.Bars(c.job, c.at); got != c.want {
			t.Errorf("%s: barred is %v", c.name, got)
		}
	}
}

func TestWindowsCoverNodes(t *testing.T) {
	windows := []Maintenance{
		{ID: "named", Nodes: []string{"a", "c"}, Start: 1, End: 2},
		{ID: "pool", Pool: "p", Start: 3, End: 4, KeepRunning: true},
		{ID: "common", Pool: PoolDefault, Start: 3, End: 4},
		{ID: "all", All: true, Start: 5, End: 6, Reason: "power", Begun: true},
	}
	for _, c := range []struct {
		node Node
		want []string
	}{
		{Node{Name: "a"}, []string{"named", "common", "all"}},
		{Node{Name: "b", Pool: "p"}, []string{"pool", "all"}},
		{Node{Name: "c", Pool: "p"}, []string{"named", "pool", "all"}},
	} {
		c.node.Maintenance = MaintenanceOf(&c.node, windows)
		var got []string
		for i := range c.node.Maintenance {
			got = append(got, c.node.Maintenance[i].ID)
		}
		if len(got) != len(c.want) {
			t.Errorf("node %s carries %v, want %v", c.node.Name, got, c.want)
		}
		if now := c.node.Maintained(); now == nil || now.ID != "all" || now.Reason != "power" {
			t.Errorf("node %s is in %+v", c.node.Name, now)
		}
		if c.node.Status, c.node.Eligibility = NodeReady, NodeEligible; c.node.Schedulable() {
			t.Errorf("node %s takes work in maintenance", c.node.Name)
		}
	}
}
