package run

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/client/machine"
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
		node, log := machine.NewRegistration(structs.Node{}, func() {}), slog.New(slog.DiscardHandler)
		starts := machine.NewStarts(machine.NewDisks(t.TempDir(), t.TempDir(), machine.DiskBounds{}, node, log), node, func() time.Time { return time.Unix(1e9, 0) }, log)
		for _, job := range []string{"a", "b", "c"} {
			starts.Failed(&structs.Assignment{Job: &structs.Job{ID: job}}, failedBy(got), true)
		}
		reason := node.Node().Faults[0].Reason
		if text := messages.Text(messages.Chinese, reason.ID, reason.Params); strings.Contains(text, "docker.") || strings.Contains(text, "hard=") {
			t.Errorf("%s: the node's fault shows an id: %s", name, text)
		}
	}
}
