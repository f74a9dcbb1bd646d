package prepare

import (
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestOptionsReachTheEngine: what a job's task says of the engine comes to the
// driver, which asks the node's policy.
func TestOptionsReachTheEngine(t *testing.T) {
	job := &structs.Job{Task: structs.Task{Driver: structs.DriverDocker, Image: "i", Options: map[string]string{"cap_add": "SYS_PTRACE", "ipc": "host", structs.OptionEntrypoint: structs.OptionEntrypointImage}}}
	made := container(&structs.Assignment{Job: job, Alloc: &structs.Allocation{}})
	if !made.ImageEntrypoint || len(made.Options) != 2 || made.Options["cap_add"] != "SYS_PTRACE" || made.Options["ipc"] != "host" {
		t.Errorf("%+v", made)
	}
	if made := container(&structs.Assignment{Job: &structs.Job{Task: structs.Task{Image: "i"}}, Alloc: &structs.Allocation{}}); made.ImageEntrypoint || made.Options != nil {
		t.Errorf("nothing was asked: %+v", made)
	}
}
