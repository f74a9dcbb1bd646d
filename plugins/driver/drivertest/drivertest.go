// Package drivertest checks that a driver keeps the contract of package
// driver, with real processes. The same tests run against a driver in this
// process and one behind a plugin.
//
// Flow: a driver's own tests call Run with a way to open it. Limits: the
// driver must be able to run the node's own /bin/sh; only for tests.
package drivertest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/tasklog"
)

// limit bounds what a test waits for; far above what any step takes.
const limit = 90 * time.Second

// idRoom is what a test may add to the id of a Spec.
const idRoom = 8

// Open returns a driver to test; it registers its own cleanup. Each part of the
// contract calls it once, first of all: parts whose Open calls t.Parallel run
// beside each other.
type Open func(t *testing.T) driver.Driver

// Run checks every part of the contract.
func Run(t *testing.T, open Open) {
	t.Run("Lifecycle", func(t *testing.T) { runLifecycle(t, open) })
	t.Run("StartErrors", func(t *testing.T) { runStartErrors(t, open) })
	t.Run("Stop", func(t *testing.T) { runStop(t, open) })
	t.Run("Control", func(t *testing.T) { runControl(t, open) })
	t.Run("Exec", func(t *testing.T) { runExec(t, open) })
	t.Run("Unknown", func(t *testing.T) { runUnknown(t, open) })
	t.Run("Concurrency", func(t *testing.T) { runConcurrency(t, open) })
}

// Spec returns a task with directories of its own. Its id is made of the test's
// name, so one test starts one such task, or changes the ids.
func Spec(t testing.TB, command ...string) driver.TaskSpec {
	t.Helper()
	dir := t.TempDir()
	id := strings.NewReplacer("/", ".", "#", "-", ",", "").Replace(t.Name())
	id = strings.TrimLeft(id[max(len(id)-driver.TaskIDLengthMax+idRoom, 0):], ".-_")
	spec := driver.TaskSpec{
		ID:      driver.TaskID(id),
		AllocID: "alloc", JobName: "job", Attempt: 1,
		Command:   command,
		TaskDir:   filepath.Join(dir, "task"),
		LogDir:    filepath.Join(dir, "logs"),
		KillGrace: time.Second,
	}
	if err := os.Mkdir(spec.TaskDir, 0o755); err != nil {
		t.Fatal(err)
	}
	return spec
}

// Shell returns a task that runs a script.
func Shell(t testing.TB, script string) driver.TaskSpec {
	t.Helper()
	return Spec(t, "/bin/sh", "-c", script)
}

// Start starts a task, and destroys it when the test ends.
func Start(t testing.TB, d driver.Driver, spec driver.TaskSpec) driver.Handle {
	t.Helper()
	handle, err := d.Start(context.Background(), spec)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Destroy(context.Background(), spec.ID); err != nil {
			t.Errorf("destroy: %v", err)
		}
	})
	return handle
}

// Wait returns the exit result of a task that ends soon.
func Wait(t testing.TB, d driver.Driver, id driver.TaskID) driver.ExitResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	result, err := d.Wait(ctx, id)
	if err != nil {
		t.Fatalf("wait for %s: %v", id, err)
	}
	return result
}

// Log returns all that a task has written to a stream.
func Log(t testing.TB, spec driver.TaskSpec, stream string) string {
	t.Helper()
	var text bytes.Buffer
	err := tasklog.Read(context.Background(), tasklog.Request{Dir: spec.LogDir, Stream: stream}, func(c tasklog.Chunk) error {
		text.Write(c.Data)
		return nil
	})
	if err != nil {
		t.Fatalf("read %s: %v", stream, err)
	}
	return text.String()
}

// AwaitOutput waits until a task has written text to stdout.
func AwaitOutput(t testing.TB, spec driver.TaskSpec, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	found := errors.New("found")
	var seen bytes.Buffer
	request := tasklog.Request{Dir: spec.LogDir, Stream: tasklog.Stdout, Follow: true}
	err := tasklog.Read(ctx, request, func(c tasklog.Chunk) error {
		seen.Write(c.Data)
		if strings.Contains(seen.String(), text) {
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		t.Fatalf("task never wrote %q: %v; it wrote %q", text, err, seen.String())
	}
}
