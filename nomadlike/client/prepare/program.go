package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// programLink is the agent's own program in the directory of a task, which
// finds it as the last one of its PATH: a task says `nomadlike checkpoint`
// wherever the agent is installed, and in every image.
const programLink = ".nomadlike/bin/nomadlike"

// linkProgram puts the agent's program into the directory of a task.
func (r *Preparer) linkProgram(dir string, owner account.Owner) error {
	if r.Binary == "" {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, parent := range []string{path.Dir(path.Dir(programLink)), path.Dir(programLink)} {
		if err := root.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := owner.GiveIn(root, parent); err != nil {
			return err
		}
	}
	if err := root.Remove(programLink); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := root.Symlink(r.Binary, programLink); err != nil {
		return fmt.Errorf("link the agent's program: %w", err)
	}
	return nil
}

// showProgram lets a task find the agent's program: in a container it appears
// at its own path, to the others it is visible already.
func (r *Preparer) showProgram(spec *driver.TaskSpec, driverName string) {
	binary := r.Binary
	if binary == "" || strings.Contains(spec.TaskDir, ":") {
		return // a PATH has no way to name such a directory
	}
	spec.PathLast = append(spec.PathLast, path.Join(spec.TaskDir, path.Dir(programLink)))
	if driverName == structs.DriverDocker {
		spec.Reservations = append(spec.Reservations, driver.Reservation{
			Mounts: []driver.Mount{{HostPath: binary, TaskPath: binary, ReadOnly: true}},
		})
	}
}
