package docker_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
)

// secretValue is what no disk may hold.
const secretValue = "canary-of-a-kept-secret"

// telling is a task that prints its secret without end, and counts in a file beside.
func telling(t *testing.T) driver.TaskSpec {
	spec := dressed(drivertest.Shell(t, `i=0; while :; do i=$((i+1)); echo "$i $TOKEN"; echo $i > count; sleep 0.005; done`))
	spec.LogRotation = driver.LogRotation{MaxFiles: 100}
	spec.Env = append(spec.Env, "TOKEN="+secretValue)
	spec.Secrets = []structs.SecretUse{{Name: "token", Var: "TOKEN"}}
	spec.Mask = maskOf(1)
	return spec
}

func maskOf(version uint64) []structs.Mask {
	return []structs.Mask{{Name: "token", Version: version, Text: structs.SecretBytes(secretValue)}}
}

// counts waits until a telling task has gone on by so many lines.
func counts(t *testing.T, spec driver.TaskSpec, more int) {
	t.Helper()
	read := func() int {
		text, _ := os.ReadFile(filepath.Join(spec.TaskDir, "count"))
		n, _ := strconv.Atoi(strings.TrimSpace(string(text))) // it is just being written
		return n
	}
	before := read()
	eventually.Within(t, limit, "the task goes on", func() bool { return read() > before+more })
}

// killKeeper kills the process that writes a task's logs.
func killKeeper(t *testing.T, spec driver.TaskSpec) {
	t.Helper()
	for _, pid := range keepers(t, spec) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// maskedLines checks that a log has masked lines and words on what it lacks alone, and
// counts them.
func maskedLines(t *testing.T, spec driver.TaskSpec) (lines, notes int) {
	t.Helper()
	line, note := regexp.MustCompile(`^[0-9]+ \[masked: token\]$`), regexp.MustCompile(`^\[withheld: .*\]$`)
	text := drivertest.Log(t, spec, tasklog.Stdout)
	for one := range strings.Lines(text) {
		switch one = strings.TrimSuffix(one, "\n"); {
		case line.MatchString(one):
			lines++
		case note.MatchString(one):
			notes++
		case strings.Contains(one, "cana"), strings.Contains(one, "cret"):
			t.Errorf("the log has %q", one)
		}
	}
	return lines, notes
}

// holdsNothing looks for the value in all that the driver and the logs keep on disk.
func holdsNothing(t *testing.T, spec driver.TaskSpec, dirs ...string) {
	t.Helper()
	seen := 0
	for _, dir := range append(dirs, spec.LogDir) {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil // gone meanwhile
			}
			if body, err := os.ReadFile(path); err == nil {
				seen++
				if bytes.Contains(body, []byte(secretValue)) {
					t.Errorf("%s holds the value", path)
				}
			}
			return nil
		})
	}
	if seen < 2 {
		t.Errorf("only %d files were looked at", seen)
	}
}

// TestKilledKeeperMasksAgain: while the agent lives, it knows what the next keeper of a
// task's logs has to mask.
func TestKilledKeeperMasksAgain(t *testing.T) {
	t.Parallel()
	needEngine(t)
	c := config(t)
	d := open(t, func(fresh *docker.Config) { *fresh = c })
	spec := telling(t)
	drivertest.Start(t, d, spec)
	for range 3 {
		grows(t, spec, 20)
		killKeeper(t, spec)
	}
	grows(t, spec, 20)
	if result := stop(t, d, spec.ID); result.Signal != "SIGTERM" {
		t.Errorf("result is %+v", result)
	}
	if lines, notes := maskedLines(t, spec); lines < 80 || notes != 3 {
		t.Errorf("%d lines are masked, %d words say what is withheld", lines, notes)
	}
	holdsNothing(t, spec, c.StateDir)
}

// TestKilledAgentAndKeeper: after both have died nothing of a task's output is stored
// until the driver is told again what to mask, while the task goes on; and nothing at
// all when what it is told is not what the task was started with.
func TestKilledAgentAndKeeper(t *testing.T) {
	for _, c := range []struct {
		name   string
		mask   []structs.Mask
		masked bool
	}{
		{"the same", maskOf(1), true},
		{"another version", maskOf(2), false},
		{"gone", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			needEngine(t)
			settings := config(t)
			before, err := docker.New(settings)
			if err != nil {
				t.Fatal(err)
			}
			spec := telling(t)
			handle, err := before.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			grows(t, spec, 20)
			if err := before.Close(); err != nil { // the agent's end
				t.Fatal(err)
			}
			killKeeper(t, spec)
			kept := drivertest.Log(t, spec, tasklog.Stdout)
			d := open(t, func(fresh *docker.Config) { *fresh = settings })
			if err := d.Recover(t.Context(), handle); err != nil {
				t.Fatal(err)
			}
			destroyAtEnd(t, d, spec.ID)
			eventually.Within(t, limit, "there is another keeper", func() bool { return hasKeeper(spec) })
			counts(t, spec, 200)
			if log := drivertest.Log(t, spec, tasklog.Stdout); log != kept {
				t.Fatalf("before anybody knows what to mask the log has got %q", log[len(kept):])
			}
			holdsNothing(t, spec, settings.StateDir)
			if err := d.Mask(context.Background(), spec.ID, c.mask); err != nil {
				t.Fatal(err)
			}
			if c.masked {
				grows(t, spec, 250) // with what waited
			}
			counts(t, spec, 100)
			if result := stop(t, d, spec.ID); result.Signal != "SIGTERM" {
				t.Errorf("result is %+v", result)
			}
			lines, notes := maskedLines(t, spec)
			if c.masked != (lines > 250) || notes == 0 {
				t.Errorf("%d lines are masked, %d words say what is withheld", lines, notes)
			}
			holdsNothing(t, spec, settings.StateDir)
		})
	}
}

// hasKeeper reports whether some process has the task's log directory open.
func hasKeeper(spec driver.TaskSpec) bool {
	found, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range found {
		if target, err := os.Readlink(path); err == nil && target == spec.LogDir && !strings.HasPrefix(path, "/proc/"+strconv.Itoa(os.Getpid())+"/") {
			return true
		}
	}
	return false
}
