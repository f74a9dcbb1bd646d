//go:build linux

package tasklog

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// sizeAt is the size of a name in dir, links not followed. The directory is
// reached through its descriptor, so that nobody can swap it for another.
func sizeAt(dir *os.File, name string) (int64, error) {
	var stat syscall.Stat_t
	path := filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), name)
	if err := syscall.Lstat(path, &stat); err != nil {
		return 0, err
	}
	return stat.Size, nil
}
