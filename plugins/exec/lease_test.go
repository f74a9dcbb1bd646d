package exec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"nomadlike/internal/clock"
	"nomadlike/plugins/driver"
)

// A task that ends with its node's lease is killed by its supervisor: nobody
// else does anything here.
func TestATaskEndsWithTheLease(t *testing.T) {
	d := open(t)
	dir := t.TempDir()
	lease := filepath.Join(dir, "lease.json")
	keep := func(ttl time.Duration) {
		text := fmt.Sprintf(`{"ttl":%d,"from":%d}`, ttl, clock.Boottime())
		if err := os.WriteFile(lease+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(lease+".new", lease); err != nil {
			t.Fatal(err)
		}
	}
	keep(time.Minute)
	taskDir := filepath.Join(dir, "task")
	if err := os.Mkdir(taskDir, 0o755); err != nil {
		t.Fatal(err)
	}
	spec := driver.TaskSpec{
		ID: "lease.main", AllocID: "lease", JobName: "j", Attempt: 1, Command: []string{"sleep", "60"},
		TaskDir: taskDir, LogDir: filepath.Join(dir, "logs"),
	}
	handle, err := d.StartLeased(t.Context(), spec, lease)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	keep(500 * time.Millisecond)
	result, err := d.Wait(t.Context(), handle.TaskID)
	if err != nil || result.Signal != "SIGKILL" {
		t.Errorf("ended with %+v, %v", result, err)
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("killed after %s, before its agent's turn was over", took)
	}
	if err := d.Destroy(t.Context(), handle.TaskID); err != nil {
		t.Error(err)
	}
}
