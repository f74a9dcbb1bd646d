package orphans

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
)

const argument = "left-behind"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == argument {
		child := exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString(strconv.Itoa(child.Process.Pid) + "\n")
		_ = child.Wait()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process of the program ends, also when its file and directory are gone; others stay.
func TestEndProgram(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	contents, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	program, dir := filepath.Join(t.TempDir(), "sleep"), filepath.Join(t.TempDir(), "state", "tasks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, contents, 0o755); err != nil {
		t.Fatal(err)
	}
	own := exec.Command(program, "1000")
	own.Dir = dir
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	EndProgram(program+"2", "/")
	EndProgram(program, dir+"2")
	if err := syscall.Kill(own.Process.Pid, 0); err != nil {
		t.Errorf("a process of another program: %v", err)
	}
	if err := errors.Join(os.Remove(program), os.Remove(dir)); err != nil {
		t.Fatal(err)
	}
	EndProgram(program, filepath.Dir(dir))
	if state, err := own.Process.Wait(); err != nil || state.Success() {
		t.Errorf("the process ended by %v %v", state, err)
	}
}

// A process with the argument ends with its child; others of the program stay.
func TestEnd(t *testing.T) {
	own := exec.Command("/proc/self/exe", argument)
	out, err := own.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	End("another")
	if err := syscall.Kill(child, 0); err != nil {
		t.Errorf("the child of a process without the argument: %v", err)
	}
	End(argument)
	state, err := own.Process.Wait()
	if err != nil || state.Success() {
		t.Errorf("the process ended by %v %v", state, err)
	}
	eventually.Within(t, time.Minute, "its child ends", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
