package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
)

// This file removes what tasks without a view of their own leave in the shared
// memory of the node: it holds memory that is counted to nobody any more. Isolated
// tasks and containers have a /dev/shm of their own, which ends with them.

// Bounds of what is removed of shared memory.
const (
	shmFilesMax = 65_536
	ShmClock    = 100 * time.Millisecond // by which the kernel's stamps of files may lie behind
)

// shmWatch remembers of users with a task here since when they had one.
type shmWatch struct {
	mu struct {
		sync.Mutex
		since map[uint32]time.Time // by user id
	}
}

// over reports since when a user may have left something, once nothing of them runs
// any more.
func (w *shmWatch) over(uid uint32, began time.Time, lives bool) (since time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.since == nil {
		w.mu.since = make(map[uint32]time.Time)
	}
	if first, known := w.mu.since[uid]; known && first.Before(began) {
		began = first
	}
	if lives {
		w.mu.since[uid] = began
		return time.Time{}, false
	}
	delete(w.mu.since, uid)
	return began, true
}

// sweepShm removes the files that a task without a view of its own has left in
// shared memory: those of its user, made since it began, once no process of that
// user lives. What root leaves stays: nobody can tell whose it is.
func (x *Runs) sweepShm(id, driverName string, began time.Time) {
	if x.ShmDir == "" || began.IsZero() || !x.Preparer.SeesNode(driverName) {
		return
	}
	uid, err := ownerID(x.Layout.Task(id))
	if err != nil || uid == 0 {
		return
	}
	lives, err := userLives(uid)
	if err != nil {
		x.Log.Warn("shared memory of ended tasks may stay", logkey.Error, err)
		return
	}
	since, ok := x.shm.over(uid, began, lives)
	if !ok {
		return
	}
	removed, err := removeShm(x.ShmDir, uid, since.Add(-ShmClock))
	if err != nil {
		x.Log.Warn("shared memory of ended tasks may stay", logkey.Path, x.ShmDir, logkey.Error, err)
	}
	if removed > 0 {
		x.Log.Info("shared memory that ended tasks have left is removed", logkey.AllocID, id, logkey.Count, removed)
	}
}

func ownerID(path string) (uint32, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.New("the owner of a file is not known")
	}
	return stat.Uid, nil
}

// userLives reports whether a process of a user runs on this machine.
func userLives(uid uint32) (bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		if owner, err := ownerID(filepath.Join("/proc", entry.Name())); err == nil && owner == uid {
			return true, nil
		}
	}
	return false, nil
}

// removeShm removes regular files of a user that were made since a moment.
func removeShm(dir string, uid uint32, since time.Time) (removed int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	d, err := root.Open(".")
	if err != nil {
		return 0, err
	}
	entries, err := d.ReadDir(shmFilesMax)
	err = errors.Join(err, d.Close())
	for _, entry := range entries {
		info, statErr := root.Lstat(entry.Name())
		if statErr != nil || !info.Mode().IsRegular() && !info.IsDir() {
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || stat.Uid != uid || time.Unix(stat.Ctim.Unix()).Before(since) {
			continue
		}
		if removeErr := root.RemoveAll(entry.Name()); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
			continue
		}
		removed++
	}
	return removed, err
}
