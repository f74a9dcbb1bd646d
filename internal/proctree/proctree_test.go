package proctree_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/internal/proctree"
)

func TestReadSelf(t *testing.T) {
	p, err := proctree.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != os.Getpid() || p.Parent != os.Getppid() || p.StartTicks == 0 || p.Threads < 1 || p.ResidentPages < 1 || p.Dead() {
		t.Errorf("this process is %+v", p)
	}
	if !proctree.Alive(p.PID, p.StartTicks) || proctree.Alive(p.PID, p.StartTicks+1) {
		t.Error("its identity is not told apart from another's")
	}
}

func TestReadNobody(t *testing.T) {
	if _, err := proctree.Read(1 << 30); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read gives %v", err)
	}
}

func TestDeadAndDescendants(t *testing.T) {
	child := exec.Command("/bin/sh", "-c", "sleep 1000 & wait")
	child.Env = []string{"MARK=task-1:abc"}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var found []proctree.Process
	eventually.Within(t, time.Minute, "both are there", func() bool {
		var err error
		if found, err = proctree.Descendants(os.Getpid()); err != nil {
			t.Fatal(err)
		}
		return len(found) == 2 && found[1].Name == "sleep"
	})
	if found[0].PID != child.Process.Pid || found[1].Parent != found[0].PID {
		t.Errorf("descendants are %+v", found)
	}
	if !proctree.HasEnv(found[1].PID, "MARK=task-1:") || proctree.HasEnv(found[1].PID, "MARK=task-2:") || proctree.HasEnv(1<<30, "") {
		t.Error("environment is misread")
	}
	for _, p := range found {
		process, err := os.FindProcess(p.PID)
		if err == nil {
			err = process.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually.Within(t, time.Minute, "child is dead", func() bool {
		p, err := proctree.Read(child.Process.Pid)
		return err == nil && p.Dead() && !proctree.Alive(p.PID, p.StartTicks)
	})
	_ = child.Wait() // killed
}

func TestParse(t *testing.T) {
	const rest = " S 7 8 9 0 -1 4194560 1 2 3 4 11 12 13 14 20 0 5 0 777 1000 42 18446744073709551615"
	for name, want := range map[string]string{"sh": "sh", "a b": "a b", ") R 1 (": ") R 1 (", "": "", "new\nline": "new\nline"} {
		p, err := proctree.Parse([]byte("123 (" + name + ")" + rest))
		if err != nil {
			t.Errorf("name %q: %v", name, err)
			continue
		}
		if p != (proctree.Process{
			PID: 123, Name: want, State: 'S', Parent: 7, Group: 8, Session: 9, StartTicks: 777,
			UserTicks: 11, SysTicks: 12, ChildUserTicks: 13, ChildSysTicks: 14, Threads: 5, ResidentPages: 42,
		}) {
			t.Errorf("name %q gives %+v", name, p)
		}
	}
}

func TestBootID(t *testing.T) {
	a, err := proctree.BootID()
	b, again := proctree.BootID()
	if err != nil || again != nil || a != b || len(a) != 36 {
		t.Errorf("boot ids are %q and %q, %v", a, b, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("1 (init) S 0 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 1 1 1 1"))
	f.Add([]byte("1 (a) b) S 0 1"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, line []byte) {
		if p, err := proctree.Parse(line); err == nil && p.PID < 1 {
			t.Errorf("%q gives %+v", line, p)
		}
	})
}

// A program that executes itself all the time is always between two programs,
// or just before or after.
func TestEnvironmentWhileExecuting(t *testing.T) {
	child := exec.Command("/bin/sh", "-c", `eval "$1"`, "sh", `exec /bin/sh -c "$1" sh "$1"`)
	child.Env = []string{"MARK=task-1:abc"}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	missed := 0
	for range 5000 {
		if !proctree.HasEnv(child.Process.Pid, "MARK=task-1:") {
			missed++
		}
	}
	if missed > 0 {
		t.Errorf("the environment was missed %d times", missed)
	}
	if err := child.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = child.Wait() // killed
}

// TestBelowIsDescendants: both lists have the same processes, children of children
// and the dead included.
func TestBelowIsDescendants(t *testing.T) {
	child := exec.Command("/bin/sh", "-c", `(sleep 1000 & sleep 1000 & exec sleep 1000) & (exit 3) & exec sleep 1000`)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ids := func(list func(int) ([]proctree.Process, error)) (pids []int) {
		processes, err := list(child.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range processes {
			pids = append(pids, p.PID)
		}
		slices.Sort(pids)
		return pids
	}
	defer func() {
		for _, pid := range append(ids(proctree.Descendants), child.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = child.Wait() // killed
	}()
	eventually.Within(t, time.Minute, "four processes below, one of them dead", func() bool {
		processes, err := proctree.Descendants(child.Process.Pid)
		asleep, dead := 0, 0
		for _, p := range processes {
			if p.Dead() {
				dead++
			} else if p.Name == "sleep" {
				asleep++
			}
		}
		return err == nil && asleep == 3 && dead == 1
	})
	if below, all := ids(proctree.Below), ids(proctree.Descendants); !slices.Equal(below, all) {
		t.Errorf("below %v, descendants %v", below, all)
	}
	if none, err := proctree.Below(1 << 30); err != nil || len(none) != 0 {
		t.Errorf("below nobody: %v, %v", none, err)
	}
}

func BenchmarkBelow(b *testing.B) {
	for name, list := range map[string]func(int) ([]proctree.Process, error){"below": proctree.Below, "descendants": proctree.Descendants} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := list(os.Getpid()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
