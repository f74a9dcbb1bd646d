package exec

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

	"nomadlike/plugins/exec/supervisor"
)

//go:embed embedded/*
var embedded embed.FS

func embeddedName() string { return "embedded/supervisor-linux-" + runtime.GOARCH }

// findSupervisor returns the command line that starts a supervisor.
func findSupervisor(config Config) ([]string, error) {
	if len(config.Supervisor) > 0 {
		return config.Supervisor, nil
	}
	program, err := embedded.ReadFile(embeddedName())
	if errors.Is(err, fs.ErrNotExist) {
		return []string{"/proc/self/exe", supervisor.Argument}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read embedded supervisor: %w", err)
	}
	path, err := install(program, config.BinDir)
	if err != nil {
		return nil, err
	}
	return []string{path}, nil
}

// install writes the supervisor under a name made of its contents, unless it
// is there already. Running supervisors of other versions keep theirs.
func install(program []byte, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("install supervisor: %w", err)
	}
	sum := sha256.Sum256(program)
	path := filepath.Join(dir, "task-supervisor-"+hex.EncodeToString(sum[:8]))
	if present, err := os.ReadFile(path); err == nil && bytes.Equal(present, program) {
		if info, err := os.Lstat(path); err == nil && info.Mode() == 0o755 {
			return path, nil
		}
	}
	file, err := os.CreateTemp(dir, "task-supervisor-*.new")
	if err != nil {
		return "", fmt.Errorf("install supervisor: %w", err)
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
		return "", fmt.Errorf("install supervisor: %w", err)
	}
	return path, nil
}
