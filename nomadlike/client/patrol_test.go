package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/exec"
)

// toldOf lists what a node told of an allocation under an event, one parameter.
func (c *control) toldOf(id, event, param string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var values []string
	for _, note := range c.mu.notes {
		if note.AllocID == id && note.Told != nil && note.Told.Event == event {
			values = append(values, note.Told.Params[param])
		}
	}
	return values
}

// TestEnvironmentIsChecked: a job that wants prechecks is told what its rank
// sees, and likely causes, by the built-in table or the administrator's.
func TestEnvironmentIsChecked(t *testing.T) {
	c := newControl()
	dir, _ := nodeWithData(t, c, exec.IsolationAuto, "", nil)
	check := func(name, rule string) {
		a := gang(name, 1, "sleep 60", "n1")[0]
		a.Job.Checkpoint = &structs.Checkpoint{Precheck: true}
		a.Job.Task.Env = map[string]string{"CUDA_LAUNCH_BLOCKING": "1", "NCCL_SOCKET_IFNAME": "nic9"}
		c.assign(a)
		eventually.Within(t, time.Minute, rule+" is found", func() bool {
			return strings.Contains(strings.Join(c.toldOf(a.Alloc.ID, structs.EventEnvironmentFound, "rule"), " "), rule)
		})
		if seen := c.toldOf(a.Alloc.ID, structs.EventEnvironment, "seen"); len(seen) != 1 || !strings.Contains(seen[0], "env.CUDA_LAUNCH_BLOCKING=1") || !strings.Contains(seen[0], "disk.mib=") {
			t.Errorf("seen %q", seen)
		}
	}
	check("built-in", "nccl-socket-ifname cuda-launch-blocking")
	own := `{"rules":[{"id":"house-rule","when":[{"fact":"env.CUDA_LAUNCH_BLOCKING","op":"set"}],"text":"not here"}]}`
	if err := os.WriteFile(filepath.Join(dir, "environment.json"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	check("own", "house-rule")
}
