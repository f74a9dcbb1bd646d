// Package supervisortest builds the supervisor of tasks for tests that start agents.
//
// Flow: TestMain builds the program once, as releases embed it, hands its path to
// every driver of the test program, and ends what is left of it.
//
// Limits: the program is without the race detector, which the tests of the exec
// driver run it with, and up forty times sooner than a test program that has it.
// Tests on Linux only.
package supervisortest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"nomadlike/internal/orphans"
)

// Program is a supervisor that was built for the tests of one package.
type Program struct{ path string }

// Build builds the supervisor below the directory for temporary files. The caller
// calls Remove when all tests have run.
func Build() (Program, error) {
	dir, err := os.MkdirTemp("", "nomadlike-supervisor")
	if err != nil {
		return Program{}, fmt.Errorf("build supervisor: %w", err)
	}
	p := Program{path: filepath.Join(dir, "task-supervisor")}
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-trimpath", "-o", p.path, "nomadlike/plugins/exec/supervisor/cmd/task-supervisor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir) // the build's own error says more
		return Program{}, fmt.Errorf("build supervisor: %w\n%s", err, out)
	}
	return p, nil
}

// Command is the command line that starts it.
func (p Program) Command() []string { return []string{p.path} }

// EndBelow kills the supervisors of agents whose data lies below a directory, with their
// tasks, which outlive agents: a test calls it at its end, lest every later test run
// beside them.
func (p Program) EndBelow(dir string) { orphans.EndProgram(p.path, dir) }

// Remove kills the supervisors that are left, with their tasks, and removes the program.
func (p Program) Remove() {
	p.EndBelow("/")
	_ = os.RemoveAll(filepath.Dir(p.path)) // a leftover below /tmp harms nobody
}
