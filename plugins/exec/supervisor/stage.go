package supervisor

import (
	"os"
	"path/filepath"
	"syscall"

	"nomadlike/internal/mounts"
)

// This file makes views on kernels before 5.12, see package mounts. Views are the
// same on both roads. Mounts are copied by a bind to a stage of this thread's own,
// restricted there and only then moved to their place.

// stageTree is cloneTreeAt: what is mounted at the path, with what is below, is
// bound to a place on the stage. One tree at a time is there: it has to be
// attached before the next.
func (r *root) stageTree(dir int, path string) (int, error) {
	source := dir
	if path != "" {
		fd, err := mounts.OpenName(dir, path, oPath)
		if err != nil {
			return -1, err
		}
		defer syscall.Close(fd)
		source = fd
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(source, &stat); err != nil {
		return -1, err
	}
	place := filepath.Join(r.stage, "leaf")
	var err error
	switch stat.Mode & syscall.S_IFMT {
	case syscall.S_IFLNK:
		return -1, syscall.ELOOP
	case syscall.S_IFDIR:
		place = filepath.Join(r.stage, "tree")
		err = os.Mkdir(place, 0o755)
	default:
		err = os.WriteFile(place, nil, 0o444)
	}
	if err != nil && !os.IsExist(err) {
		return -1, err
	}
	if err := syscall.Mount(mounts.FDPath(source), place, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return -1, err
	}
	return mounts.OpenName(-1, place, oPath)
}

// moveStaged is move_mount for a tree of stageTree.
func moveStaged(tree, dir int, name string) error {
	target := dir
	if name != "" {
		fd, err := mounts.OpenName(dir, name, oPath)
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		target = fd
	}
	return syscall.Mount(mounts.FDPath(tree), mounts.FDPath(target), "", syscall.MS_MOVE, "")
}
