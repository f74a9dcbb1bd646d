// Package orphans ends the tasks that a test program leaves behind. Tasks
// outlive the agent that started them, as they must, so they would outlive a
// test whose job is still running at its end, and keep a processor busy for as
// long as the machine is up. It is for tests on Linux only.
package orphans

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is one line of the process table.
type process struct {
	pid, parent int
	exe         string
	arguments   []string
}

// End kills every other process that runs this program's own file, or one of
// programs, with the first argument given, and all that it started. TestMain
// calls it when all tests have run. Processes that end meanwhile do not matter
// to it.
func End(argument string, programs ...string) {
	if self, err := os.Executable(); err == nil {
		programs = append(programs, self)
	}
	table := processes()
	for _, p := range table {
		own := slices.Contains(programs, strings.TrimSuffix(p.exe, gone))
		if own && p.pid != os.Getpid() && len(p.arguments) > 1 && p.arguments[1] == argument {
			endTree(table, p.pid)
		}
	}
}

// EndProgram kills every process that runs the file of this path in a directory, or in
// one below it, and all that it started. File and directory may be gone.
func EndProgram(path, dir string) {
	table := processes()
	for _, p := range table {
		if strings.TrimSuffix(p.exe, gone) != path || p.pid == os.Getpid() {
			continue
		}
		cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(p.pid), "cwd"))
		if err != nil {
			continue // it ended meanwhile
		}
		if below, err := filepath.Rel(dir, strings.TrimSuffix(cwd, gone)); err == nil && filepath.IsLocal(below) {
			endTree(table, p.pid)
		}
	}
}

// gone is what the kernel adds to the path of a file that was removed.
const gone = " (deleted)"

// endTree kills a process before its children, so that it starts no more.
func endTree(table []process, pid int) {
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, p := range table {
		if p.parent == pid {
			endTree(table, p.pid)
		}
	}
}

func processes() []process {
	var table []process
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range found {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		exe, _ := os.Readlink(filepath.Join(dir, "exe"))
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		// The name stands in brackets and may hold anything.
		after := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(after) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(after[1])
		table = append(table, process{pid: pid, parent: parent, exe: exe, arguments: strings.Split(string(line), "\x00")})
	}
	return table
}
