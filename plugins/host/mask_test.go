package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
)

// masker is a driver that notes what it is told to mask, and crashes when it is asked
// to signal a task.
type masker struct{ hostile }

// toldFile is where it notes that: beside its tasks, in the directory of its argument.
func toldFile() string { return os.Args[1] + "/told" }

func (m *masker) Mask(_ context.Context, id driver.TaskID, mask []structs.Mask) error {
	if err := m.hostile.Continue(context.Background(), id); err != nil { // not recovered yet
		return err
	}
	file, err := os.OpenFile(toldFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, one := range mask {
		fmt.Fprintf(file, "%s@%d %d\n", one.Name, one.Version, len(one.Text))
	}
	return nil
}

// TestRestartedPluginIsToldMasksAgain: a program that has crashed is told what to mask,
// by the host's memory, for each task with secrets and for no other; one that does not
// know how is left alone.
func TestRestartedPluginIsToldMasksAgain(t *testing.T) {
	state := t.TempDir()
	h := start(t, "masker", state)
	d := open(t, h, "masker")
	spec := drivertest.Shell(t, `echo ready $TOKEN; exec sleep 1000`)
	spec.Env = append(spec.Env, "TOKEN=hunter2222")
	spec.Mask = []structs.Mask{{Name: "token", Version: 7, Text: structs.SecretBytes("hunter2222")}}
	drivertest.Start(t, d, spec)
	plain := drivertest.Shell(t, "echo ready; exec sleep 1000")
	plain.ID += "-2"
	drivertest.Start(t, d, plain)
	drivertest.AwaitOutput(t, spec, "ready")
	drivertest.AwaitOutput(t, plain, "ready")
	if log := drivertest.Log(t, spec, tasklog.Stdout); log != "ready [masked: token]\n" {
		t.Errorf("the log has %q", log)
	}
	for round := 1; round <= 2; round++ {
		if err := d.Signal(t.Context(), spec.ID, "SIGUSR1"); !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("call into the crashing plugin gives %v", err)
		}
		eventually.Within(t, time.Minute, "task answers again", func() bool {
			_, err := d.Stats(context.Background(), spec.ID)
			return err == nil
		})
		told, err := os.ReadFile(state + "/told")
		if want := strings.Repeat("token@7 10\n", round); err != nil || string(told) != want {
			t.Errorf("after %d crashes it was told %q, %v", round, told, err)
		}
	}
	h2 := start(t, "exec-ext", t.TempDir())
	if err := open(t, h2, "exec-ext").(driver.Masker).Mask(t.Context(), spec.ID, spec.Mask); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("one that does not know how says %v", err)
	}
}
