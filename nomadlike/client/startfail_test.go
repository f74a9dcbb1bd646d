package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// TestStartFailuresHaveWords: whoever reads why a start failed never meets the
// id of a message, and what is the job's fault ends the job.
func TestStartFailuresHaveWords(t *testing.T) {
	told := func(code structs.ErrorCode) error {
		return fmt.Errorf("start task: %w", structs.NewError(code, "docker.rlimit_refused", "limit", "nofile", "hard", 96365))
	}
	for name, c := range map[string]struct {
		err   error
		infra bool
	}{
		"the job's": {told(structs.CodeForbidden), false}, "the node's": {told(structs.CodeUnavailable), true},
		"plain": {errors.New("disk on fire"), true},
	} {
		got := startFailure(c.err, "docker", time.Unix(1e9, 0))
		text := messages.Text(messages.English, got.Result.Err.ID, got.Result.Err.Params)
		if got.Infra != c.infra || strings.Contains(text, "docker.") || !strings.Contains(text, "96365") && !strings.Contains(text, "disk on fire") {
			t.Errorf("%s: infra %v, %s", name, got.Infra, text)
		}
		watch := new(startWatch)
		for _, job := range []string{"a", "b", "c"} {
			watch.failed(job, failedBy(got), time.Unix(1e9, 0))
		}
		reason := watch.faults(time.Unix(1e9, 0))[0].Reason
		if text := messages.Text(messages.Chinese, reason.ID, reason.Params); strings.Contains(text, "docker.") || strings.Contains(text, "hard=") {
			t.Errorf("%s: the node's fault shows an id: %s", name, text)
		}
	}
}

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

// TestTerminalsHaveAName: a command on a terminal knows which kind, its caller's or
// the usual one; another command has none.
func TestTerminalsHaveAName(t *testing.T) {
	for _, c := range []struct {
		start structs.ExecStart
		want  []string
	}{
		{structs.ExecStart{TTY: true}, []string{"TERM=xterm-256color"}},
		{structs.ExecStart{TTY: true, Env: map[string]string{"TERM": "screen"}}, []string{"TERM=screen"}},
		{structs.ExecStart{}, nil},
	} {
		if got := execSpec(&c.start).Env; !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.start, got, c.want)
		}
	}
}
