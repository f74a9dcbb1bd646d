package docker

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// passwdMax bounds what is read of an image's list of users.
const passwdMax = 1 << 20

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
