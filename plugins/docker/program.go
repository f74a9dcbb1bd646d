package docker

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"nomadlike/internal/carried"
)

//go:embed embedded/*
var embedded embed.FS

// initProgram names the program that runs in and beside containers.
const initProgram = "task-init"

// Embedded reports whether this build embeds the program that runs in and
// beside containers. Without it no task can be started.
func Embedded() bool { return carried.Carries(embedded, initProgram) }

// errNoProgram is returned when this build has no program for containers.
var errNoProgram = errors.New("this build of nomadlike has no program for containers: build it with make")

// installProgram returns the path of the program, writing the embedded one
// under a name made of its contents. Containers and keepers of other versions
// keep theirs.
func installProgram(config *Config) (string, error) {
	if config.Program != "" {
		return config.Program, nil
	}
	path, err := carried.Install(embedded, initProgram, filepath.Join(config.StateDir, "bin"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errNoProgram
	}
	return path, err
}

// placeProgram puts the program into a container's door: the same file under
// another name where that can be, else a copy.
func placeProgram(program, door string) error {
	target := filepath.Join(door, "init")
	if err := os.Link(program, target); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	body, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("place program: %w", err)
	}
	if err := os.WriteFile(target, body, 0o755); err != nil {
		return fmt.Errorf("place program: %w", err)
	}
	return nil
}
