package docker

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

//go:embed embedded/*
var embedded embed.FS

func embeddedName() string { return "embedded/task-init-linux-" + runtime.GOARCH }

// Embedded reports whether this build embeds the program that runs in and
// beside containers. Without it no task can be started.
func Embedded() bool {
	_, err := fs.Stat(embedded, embeddedName())
	return err == nil
}

// errNoProgram is returned when this build has no program for containers.
var errNoProgram = errors.New("this build of nomadlike has no program for containers: build it with make")

// installProgram returns the path of the program, writing the embedded one
// under a name made of its contents. Containers and keepers of other versions
// keep theirs.
func installProgram(config *Config) (string, error) {
	if config.Program != "" {
		return config.Program, nil
	}
	program, err := embedded.ReadFile(embeddedName())
	if err != nil {
		return "", errNoProgram
	}
	dir := filepath.Join(config.StateDir, "bin")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("install program for containers: %w", err)
	}
	sum := sha256.Sum256(program)
	path := filepath.Join(dir, "task-init-"+hex.EncodeToString(sum[:8]))
	if present, err := os.ReadFile(path); err == nil && bytes.Equal(present, program) {
		return path, os.Chmod(path, 0o755)
	}
	file, err := os.CreateTemp(dir, "task-init-*.new")
	if err != nil {
		return "", fmt.Errorf("install program for containers: %w", err)
	}
	defer os.Remove(file.Name()) // gone already after the rename
	_, err = file.Write(program)
	if err == nil {
		err = file.Chmod(0o755)
	}
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return "", fmt.Errorf("install program for containers: %w", err)
	}
	return path, nil
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
