package exec

import (
	"embed"
	"errors"
	"io/fs"

	"nomadlike/internal/carried"
	"nomadlike/plugins/exec/supervisor"
)

//go:embed embedded/*
var embedded embed.FS

// supervisorProgram names the program that supervises tasks.
const supervisorProgram = "task-supervisor"

// findSupervisor returns the command line that starts a supervisor.
func findSupervisor(config Config) ([]string, error) {
	if len(config.Supervisor) > 0 {
		return config.Supervisor, nil
	}
	return InstallSupervisor(config.BinDir)
}

// InstallSupervisor writes the supervisor that this build carries into dir, unless
// it is there, and returns the command line that starts it. A build that carries
// none supervises by itself: main must call supervisor.Main when its first argument
// is supervisor.Argument. Many drivers of a process may share what was installed,
// by Config.Supervisor.
func InstallSupervisor(dir string) ([]string, error) {
	path, err := carried.Install(embedded, supervisorProgram, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{"/proc/self/exe", supervisor.Argument}, nil
	}
	if err != nil {
		return nil, err
	}
	return []string{path}, nil
}
