package leftover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nomadlike/plugins/device"
)

func TestClassify(t *testing.T) {
	mine := []device.Mark{{Cgroup: "/nomadlike/"}, {Env: "NOMADLIKE_TASK_MARKER="}}
	live := []device.Mark{{Cgroup: "/nomadlike/live"}, {Env: "NOMADLIKE_TASK_MARKER=live:"}, {PID: 7}}
	for name, c := range map[string]struct {
		facts Facts
		want  Kind
	}{
		"gone":                 {Facts{}, Gone},
		"nobody's":             {Facts{Exists: true, Cgroups: []string{"/user.slice"}, Environment: []string{"HOME=/"}}, Foreign},
		"unreadable":           {Facts{Exists: true}, Foreign},
		"dead by cgroup":       {Facts{Exists: true, Cgroups: []string{"/a", "/nomadlike/dead"}}, Dead},
		"dead by variable":     {Facts{Exists: true, Environment: []string{"NOMADLIKE_TASK_MARKER=dead:1"}}, Dead},
		"live by cgroup":       {Facts{Exists: true, Cgroups: []string{"/nomadlike/live"}}, Live},
		"live below cgroup":    {Facts{Exists: true, Cgroups: []string{"/nomadlike/live/inner"}}, Live},
		"like a live one":      {Facts{Exists: true, Cgroups: []string{"/nomadlike/live2"}}, Dead},
		"like ours":            {Facts{Exists: true, Cgroups: []string{"/nomadlike2/x"}}, Foreign},
		"live by variable":     {Facts{Exists: true, Environment: []string{"NOMADLIKE_TASK_MARKER=live:1"}}, Live},
		"live by ancestor":     {Facts{Exists: true, Ancestors: []int{9, 7}, Environment: []string{"NOMADLIKE_TASK_MARKER=x"}}, Live},
		"variable in another":  {Facts{Exists: true, Environment: []string{"X=NOMADLIKE_TASK_MARKER=x"}}, Foreign},
		"cgroup of the system": {Facts{Exists: true, Cgroups: []string{"/"}}, Foreign},
	} {
		if got := classify(3, c.facts, device.Reaping{Mine: mine, Live: live}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	// The root of all cgroups marks nobody, however it is asked.
	if got := classify(3, Facts{Exists: true, Cgroups: []string{"/x"}}, device.Reaping{Mine: []device.Mark{{Cgroup: "/"}, {}}}); got != Foreign {
		t.Errorf("an empty mark makes %d", got)
	}
}

// fakeMachine is a machine whose processes die when killed, after a while, or never.
type fakeMachine struct {
	facts    map[int]Facts
	on       map[string][]device.Process
	immortal map[int]bool
	dieIn    time.Duration
	deaths   map[int]time.Time
	kills    []int
}

func (w *fakeMachine) Look(pid int) Facts {
	if at, dying := w.deaths[pid]; dying && !time.Now().Before(at) {
		return Facts{}
	}
	return w.facts[pid]
}

func (w *fakeMachine) Kill(pid int, _ Facts) error {
	w.kills = append(w.kills, pid)
	if !w.immortal[pid] {
		w.deaths[pid] = time.Now().Add(w.dieIn)
	}
	return nil
}

func (w *fakeMachine) list(_ context.Context, ids []string) (map[string][]device.Process, error) {
	on := make(map[string][]device.Process)
	for _, id := range ids {
		for _, p := range w.on[id] {
			if w.Look(p.PID).Exists {
				on[id] = append(on[id], p)
			}
		}
	}
	return on, nil
}

// TestOnlyDeadTasksAreEnded throws random machines at End.
func TestOnlyDeadTasksAreEnded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &fakeMachine{facts: map[int]Facts{}, on: map[string][]device.Process{}, immortal: map[int]bool{}, deaths: map[int]time.Time{}}
			w.dieIn = time.Duration(rapid.IntRange(0, 3000).Draw(rt, "die in ms")) * time.Millisecond
			kinds := map[int]Kind{}
			ids := []string{"a", "b"}
			for pid := 2; pid < 2+rapid.IntRange(0, 8).Draw(rt, "processes"); pid++ {
				kind := rapid.SampledFrom([]Kind{Foreign, Live, Dead}).Draw(rt, "kind")
				kinds[pid] = kind
				w.facts[pid] = Facts{Exists: true, StartTicks: uint64(pid), Cgroups: []string{map[Kind]string{Foreign: "/x", Live: "/n/live", Dead: "/n/dead"}[kind]}}
				w.immortal[pid] = kind == Dead && rapid.IntRange(0, 4).Draw(rt, "immortal") == 0
				for _, id := range ids {
					if rapid.Bool().Draw(rt, "on "+id) {
						w.on[id] = append(w.on[id], device.Process{PID: pid})
					}
				}
			}
			started := time.Now()
			request := device.Reaping{IDs: ids, Mine: []device.Mark{{Cgroup: "/n"}}, Live: []device.Mark{{Cgroup: "/n/live"}}, Limit: 2 * time.Second}
			found, err := End(context.Background(), request, w.list, w)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(started); took > request.Limit+pollEvery {
				t.Errorf("it took %s", took)
			}
			for _, pid := range w.kills {
				if kinds[pid] != Dead {
					t.Errorf("process %d of kind %d was killed", pid, kinds[pid])
				}
			}
			for _, reaped := range found {
				for _, p := range w.on[reaped.ID] {
					in := func(list []device.Process) bool {
						return slices.ContainsFunc(list, func(q device.Process) bool { return q.PID == p.PID })
					}
					gone := !w.Look(p.PID).Exists
					switch {
					case kinds[p.PID] == Foreign && !in(reaped.Foreign), kinds[p.PID] == Live && !in(reaped.Live),
						kinds[p.PID] == Dead && gone && !in(reaped.Killed) && !in(reaped.Unkillable), kinds[p.PID] == Dead && !gone && !in(reaped.Unkillable):
						t.Errorf("process %d of kind %d, gone %v, is not where it belongs: %+v", p.PID, kinds[p.PID], gone, reaped)
					}
				}
				if reaped.Clean != (len(reaped.Unkillable) == 0) {
					t.Errorf("clean %v with %d unkillable", reaped.Clean, len(reaped.Unkillable))
				}
			}
		})
	})
}

func TestEndReportsAnUnreadableDevice(t *testing.T) {
	broken := errors.New("broken")
	_, err := End(context.Background(), device.Reaping{IDs: []string{"a"}}, func(context.Context, []string) (map[string][]device.Process, error) { return nil, broken }, Proc{"/proc"})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestRealProcesses ends a marked process and leaves its unmarked twin.
func TestRealProcesses(t *testing.T) {
	start := func(env ...string) *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	mine, other := start("LEFTOVER_TEST=dead"), start("LEFTOVER_TEST_2=dead")
	ended := make(chan error, 1)
	go func() { ended <- mine.Wait() }() // else it stays as a zombie
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	list := func(context.Context, []string) (map[string][]device.Process, error) {
		return map[string][]device.Process{"a": {{PID: mine.Process.Pid}, {PID: other.Process.Pid}, {PID: os.Getpid()}}}, nil
	}
	// The list never gets shorter, as with a driver that cleans up slowly.
	found, err := End(context.Background(), device.Reaping{IDs: []string{"a"}, Mine: []device.Mark{{Env: "LEFTOVER_TEST="}}, Limit: 500 * time.Millisecond}, list, Proc{"/proc"})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the marked process ended by itself")
	}
	if r := found[0]; len(r.Killed) != 1 || r.Killed[0].PID != mine.Process.Pid || r.Killed[0].Name != "sleep" || len(r.Foreign) != 2 || !r.Clean {
		t.Errorf("found %+v", r)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("1234 (py (x) thon) D 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99887 1000 20 18446744073709551615")
	f.Add("1 (")
	f.Fuzz(func(t *testing.T, line string) {
		s, err := parseStat(line)
		if err == nil && fmt.Sprint(s.state) == "" {
			t.Error("no state")
		}
	})
}

func TestParseStat(t *testing.T) {
	s, err := parseStat("1234 (py) S (x) D 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99887 1000")
	if err != nil || s.name != "py) S (x" || s.state != 'D' || s.parent != 7 || s.start != 99887 {
		t.Errorf("%+v, %v", s, err)
	}
}
