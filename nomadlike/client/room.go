package client

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// This file bounds what one allocation takes of the node's disk: its directory
// with its logs is measured while the task runs, and a task that takes too much
// is ended before it harms the others.

// How the room of an allocation is measured.
const (
	roomEvery   = 5 * time.Second
	roomShare   = 20  // of the time, at most one part in so many is spent on measuring
	roomDeepest = 200 // directories within each other; what lies deeper is not measured
	roomChunk   = 512 // entries of a directory that are read at a time
	roomFills   = 10  // the part of a file system that a task has that fills it
)

// RoomBounds are what one allocation may take of the file system of the data
// directory. Zero values mean the defaults: half of its space, half of its inodes
// and LogBytesDefault of logs.
type RoomBounds struct {
	Bytes int64 // of its directory, with its logs
	Files int64 // files and directories
	Logs  int64 // bytes of the rotated logs of one rank, both streams together
}

// LogBytesDefault is how much of its logs a rank keeps at most, whatever its job
// asks for.
const LogBytesDefault = 20 << 30

// of completes the bounds for a file system. Pure.
func (b RoomBounds) of(size, inodes int64) RoomBounds {
	b.Bytes = cmp.Or(b.Bytes, size/2)
	b.Files = cmp.Or(b.Files, inodes/2)
	b.Logs = cmp.Or(b.Logs, LogBytesDefault)
	return b
}

// exceeded is why an allocation that takes so much has to end; nil: it may go on.
// A bound of 0 bounds nothing: the file system has no figures. Pure.
func (b RoomBounds) exceeded(used roomUsed) *structs.Reason {
	switch {
	case b.Bytes > 0 && used.bytes > b.Bytes:
		return structs.NewReason("client.room_bytes", "used", roughly(used.bytes), "most", roughly(b.Bytes))
	case b.Files > 0 && used.files > b.Files:
		return structs.NewReason("client.room_files", "used", used.files, "most", b.Files)
	}
	return nil
}

// rotation bounds the logs that a job asks for: first fewer files, then smaller
// ones. Pure.
func (b RoomBounds) rotation(asked driver.LogRotation) driver.LogRotation {
	const streams = 2
	asked = asked.WithDefaults()
	most := cmp.Or(b.Logs, LogBytesDefault) / streams
	if files := most / asked.MaxBytes; int64(asked.MaxFiles) > files {
		asked.MaxFiles = int(max(files, driver.LogFilesMin))
	}
	asked.MaxBytes = min(asked.MaxBytes, most/int64(asked.MaxFiles))
	return asked.WithDefaults()
}

// Quotas are those of the file system on which tasks have their directories: who
// writes more below one gets EDQUOT at once. Package diskquota has it.
type Quotas interface {
	Bound(dir string, bytes, files int64) error
	Free(dir string) error
}

// attrRoom tells how a node bounds what its tasks write: by what it measures, or by
// quotas as well.
const attrRoom = "disk.bound"

// Values of attrRoom.
const (
	roomMeasured = "measured"
	roomQuota    = "quota"
)

// openQuotas looks whether the file system keeps quotas, and notes it.
func (c *Client) openQuotas() {
	value := roomMeasured
	if c.config.Quotas != nil {
		found, err := c.config.Quotas(c.files.root)
		if err != nil {
			c.log.Debug("what tasks write is measured alone", logkey.Error, err)
		} else {
			c.quotas, value = found, roomQuota
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.node.Attributes[attrRoom] = value
}

// quota is what a task may write before the file system refuses more: a little
// more than it is ended for, so that it is told why. 0 bounds nothing. Pure.
func (b RoomBounds) quota() (bytes, files int64) {
	const share, bytesMore, filesMore = 64, 1 << 20, 100
	if b.Bytes > 0 {
		bytes = b.Bytes + max(b.Bytes/share, bytesMore)
	}
	if b.Files > 0 {
		files = b.Files + max(b.Files/share, filesMore)
	}
	return bytes, files
}

// boundRoom sets the quota of an allocation whose directory is fresh. Without it
// the task is measured.
func (c *Client) boundRoom(id string, asked int64) {
	if c.quotas == nil {
		return
	}
	disk := diskRoom{path: c.config.DataDir}
	disk.look()
	bytes, files := c.roomOf(asked, &disk).quota()
	if err := c.quotas.Bound(c.files.task(id), bytes, files); err != nil {
		c.log.Warn("a task has no quota and is measured alone", logkey.AllocID, id, logkey.Error, err)
	}
}

// freeRoom gives the quota of an allocation up.
func (c *Client) freeRoom(id string) {
	if c.quotas == nil {
		return
	}
	if err := c.quotas.Free(c.files.task(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("a quota is not taken away", logkey.AllocID, id, logkey.Error, err)
	}
}

// roomOf are the bounds of an allocation that asked for so many bytes; 0: it did not.
func (c *Client) roomOf(asked int64, disk *diskRoom) RoomBounds {
	bounds := c.config.Room.of(disk.size, disk.inodes)
	bounds.Bytes = lesser(asked, bounds.Bytes)
	return bounds
}

// watchRoom measures the directory of an allocation until it ends.
func (c *Client) watchRoom(work context.Context, r *runner) {
	ctx, cancel := c.whileRunning(work, r)
	defer cancel()
	defer c.rooms.forget(r.id)
	asked := int64(0)
	if a := r.assigned.Load(); a != nil && a.Alloc != nil {
		asked = a.Alloc.Spec.Disk
	}
	var layer string // of its container
	for wait := c.config.RoomEvery; sleep(ctx, wait); {
		disk := diskRoom{path: c.config.DataDir}
		disk.look()
		bounds := c.roomOf(asked, &disk)
		began := time.Now()
		if layer == "" {
			layer = c.layerOf(ctx, r)
		}
		used, err := measureRoom(ctx, c.files.alloc(r.id), bounds)
		if layer != "" && err == nil && bounds.exceeded(used) == nil {
			var inside roomUsed
			inside, err = measureRoom(ctx, layer, bounds)
			used.bytes, used.files = used.bytes+inside.bytes, used.files+inside.files
		}
		if err != nil && ctx.Err() == nil {
			c.log.Debug("the room of an allocation is not measured", logkey.AllocID, r.id, logkey.Error, err)
		}
		cause := bounds.exceeded(used)
		if largest := c.rooms.note(r.id, used.bytes); cause == nil && largest && asked == 0 && fills(&disk, c.config.Disk, used.bytes) {
			cause = structs.NewReason("client.room_last", "used", roughly(used.bytes), "free", roughly(disk.free))
		}
		if cause != nil {
			c.log.Warn("a task takes too much of the disk and is ended", logkey.AllocID, r.id, logkey.Reason, cause)
			c.event(r.id, alloc.Exceeded{Cause: cause})
			return
		}
		wait = max(c.config.RoomEvery, roomShare*time.Since(began))
	}
}

// lesser is the lesser of two bounds, of which 0 is none. Pure.
func lesser(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// fills reports whether a disk is all but full and one task has taken a good part of
// it: what it would take next the others, and the agent itself, would lack. Pure.
func fills(disk *diskRoom, bounds DiskBounds, used int64) bool {
	return disk.size > 0 && disk.free < bounds.of(disk.size, disk.inodes).SpaceMin/2 && used > disk.size/roomFills
}

// layerOf is the directory of the node in which the writable layer of a container
// lies; "" without one, and while that is not known.
func (c *Client) layerOf(ctx context.Context, r *runner) string {
	d, ok := c.config.Drivers[r.driver].(driver.Layered)
	if !ok {
		return ""
	}
	dir, err := d.Layer(ctx, alloc.TaskID(r.id))
	if err != nil {
		c.log.Debug("the layer of a container is not known", logkey.AllocID, r.id, logkey.Error, err)
	}
	return dir
}

// rooms is what the allocations of the node take of its disk, as last measured.
type rooms struct {
	mu struct {
		sync.Mutex
		bytes map[string]int64 // by allocation
	}
}

// note keeps what an allocation takes, and reports whether none takes more.
func (r *rooms) note(id string, bytes int64) (largest bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.bytes == nil {
		r.mu.bytes = make(map[string]int64)
	}
	r.mu.bytes[id] = bytes
	for _, other := range r.mu.bytes {
		if other > bytes {
			return false
		}
	}
	return true
}

func (r *rooms) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.bytes, id)
}

// roomUsed is what lies below a directory: bytes on the disk, and files with
// directories.
type roomUsed struct{ bytes, files int64 }

// measureRoom measures a directory. It holds a few names at a time, whatever the
// task has made, follows no link, and ends early when a bound is passed.
func measureRoom(ctx context.Context, dir string, bounds RoomBounds) (roomUsed, error) {
	var used roomUsed
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return used, err
	}
	return used, used.add(ctx, os.NewFile(uintptr(fd), dir), bounds, roomDeepest)
}

// add measures an open directory and closes it.
func (u *roomUsed) add(ctx context.Context, dir *os.File, bounds RoomBounds, deeper int) error {
	defer dir.Close()
	fd := int(dir.Fd())
	for ctx.Err() == nil && bounds.exceeded(*u) == nil {
		names, err := dir.Readdirnames(roomChunk)
		for _, name := range names {
			var stat unix.Stat_t
			if unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // it is gone
			}
			u.bytes += stat.Blocks * 512
			u.files++
			if stat.Mode&unix.S_IFMT != unix.S_IFDIR || deeper == 0 {
				continue
			}
			below, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				continue // gone, or something else in its place
			}
			if err := u.add(ctx, os.NewFile(uintptr(below), name), bounds, deeper-1); err != nil && !errors.Is(err, syscall.ENOENT) {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
