package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// An agent may run with a precedence that no task is to have: a negative nice
// value, or protection from the kernel's choice of whom to kill when memory
// runs out. A supervisor inherits both and keeps them; its tasks do not.

// oomName is the badness adjustment of a process, from -1000 to 1000, in its
// directory of /proc. All of its threads have the same.
const oomName = "oom_score_adj"

// dropNice resets this thread, and what it forks, to the usual nice value when
// it has a better one. The other threads keep theirs.
func dropNice() error {
	const raw = 20 // the system call returns 20 minus the nice value
	value, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err == nil && value > raw {
		err = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 0)
	}
	if err != nil {
		return fmt.Errorf("drop nice value: %w", err)
	}
	return nil
}

// readOOM returns the adjustment of this process if it protects it, else 0.
func readOOM(dir string) int {
	data, err := os.ReadFile(filepath.Join(dir, oomName))
	if err != nil {
		return 0
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return min(value, 0)
}

// openOOM opens the adjustment of this process for writing. A thread that has given
// its rights away to a task's user, or to rules for files, could not open it any more.
func openOOM(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, oomName), os.O_WRONLY, 0)
}

// unprotected calls fork without the protection that value stands for, so
// that the child never has it, and then takes it back. One call at a time. file
// is this process's adjustment.
func unprotected(file *os.File, value int, fork func() (int, error)) (int, error) {
	if value >= 0 {
		return fork()
	}
	if err := writeOOM(file, 0); err != nil {
		return 0, fmt.Errorf("drop protection from the end of memory: %w", err)
	}
	pid, err := fork()
	if err := writeOOM(file, value); err != nil {
		fmt.Fprintln(os.Stderr, "keep protection from the end of memory:", err) // goes on like any other process
	}
	return pid, err
}

// writeOOM writes as many bytes whatever the value: nothing of the one before stays.
func writeOOM(file *os.File, value int) error {
	_, err := file.WriteAt(fmt.Appendf(nil, "%-5d\n", value), 0)
	return err
}
