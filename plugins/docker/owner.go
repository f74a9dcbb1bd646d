package docker

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nomadlike/plugins/driver"
)

// passwdMax bounds what is read of an image's list of users.
const passwdMax = 1 << 20

// giveTaskDir hands the task's directory over to the user of the image when
// the job has named none: else the command could not write where it stands. Nothing
// runs in the directory yet, and its parents are the agent's.
func (t *task) giveTaskDir(ctx context.Context, spec *driver.TaskSpec, user string) error {
	name, group, _ := strings.Cut(user, ":")
	if spec.User != "" || name == "" {
		return nil
	}
	uid, uidErr := strconv.ParseUint(name, 10, 31)
	gid, gidErr := strconv.ParseUint(group, 10, 31)
	if uidErr == nil && group == "" {
		gid, gidErr = 0, nil // as the engine takes it
	}
	if uidErr != nil || gidErr != nil {
		passwd, err := t.driver.engine.readFile(ctx, t.record.ContainerID, "/etc/passwd", passwdMax)
		if err != nil {
			return engineError(err)
		}
		var ok bool
		if uid, gid, ok = findUser(passwd, name); !ok {
			return nil // the engine will say that there is no such user
		}
	}
	if uid == 0 {
		return nil
	}
	var paths []string
	err := filepath.WalkDir(spec.TaskDir, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		return fmt.Errorf("give task directory: %w", err)
	}
	for _, path := range slices.Backward(paths) { // the directory itself at last
		if err := os.Lchown(path, int(uid), int(gid)); err != nil {
			return fmt.Errorf("give task directory: %w", err)
		}
	}
	return nil
}

// findUser looks a name or number up in an image's list of users. Pure.
func findUser(passwd []byte, wanted string) (uid, gid uint64, ok bool) {
	for line := range strings.Lines(string(passwd)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 4 || fields[0] != wanted && fields[2] != wanted {
			continue
		}
		uid, uidErr := strconv.ParseUint(fields[2], 10, 31)
		gid, gidErr := strconv.ParseUint(fields[3], 10, 31)
		return uid, gid, uidErr == nil && gidErr == nil
	}
	return 0, 0, false
}

// readFile reads a small file of a container, running or not; one that is not
// there is empty.
func (e *engine) readFile(ctx context.Context, id, path string, most int64) ([]byte, error) {
	archive, _, err := e.api.CopyFromContainer(ctx, id, path)
	if err = told("read file of container", err); errors.Is(err, errNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	files := tar.NewReader(bufio.NewReader(archive))
	if _, err := files.Next(); err != nil {
		return nil, fmt.Errorf("read file of container: %w", err)
	}
	contents, err := io.ReadAll(io.LimitReader(files, most))
	if err != nil {
		return nil, fmt.Errorf("read file of container: %w", err)
	}
	return contents, nil
}
