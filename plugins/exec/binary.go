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
	path, err := carried.Install(embedded, supervisorProgram, config.BinDir)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{"/proc/self/exe", supervisor.Argument}, nil
	}
	if err != nil {
		return nil, err
	}
	return []string{path}, nil
}
