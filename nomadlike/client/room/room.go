package room

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/client/words"
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

// Bounds are what one allocation may take of the file system of the data
// directory. Zero values mean the defaults: half of its space, half of its inodes
// and LogBytesDefault of logs.
type Bounds struct {
	Bytes int64 // of its directory, with its logs
	Files int64 // files and directories
	Logs  int64 // bytes of the rotated logs of one rank, both streams together
}

// LogBytesDefault is how much of its logs a rank keeps at most, whatever its job
// asks for.
const LogBytesDefault = 20 << 30

// Of completes the bounds for a file system. Pure.
func (b Bounds) of(size, inodes int64) Bounds {
	b.Bytes = cmp.Or(b.Bytes, size/2)
	b.Files = cmp.Or(b.Files, inodes/2)
	b.Logs = cmp.Or(b.Logs, LogBytesDefault)
	return b
}

// exceeded is why an allocation that takes so much has to end; nil: it may go on.
// A bound of 0 bounds nothing: the file system has no figures. Pure.
func (b Bounds) exceeded(used roomUsed) *structs.Reason {
	switch {
	case b.Bytes > 0 && used.bytes > b.Bytes:
		return structs.NewReason("client.room_bytes", "used", words.Roughly(used.bytes), "most", words.Roughly(b.Bytes))
	case b.Files > 0 && used.files > b.Files:
		return structs.NewReason("client.room_files", "used", used.files, "most", b.Files)
	}
	return nil
}

// rotation bounds the logs that a job asks for: first fewer files, then smaller
// ones. Pure.
func (b Bounds) rotation(asked driver.LogRotation) driver.LogRotation {
	const streams = 2
	asked = asked.WithDefaults()
	most := cmp.Or(b.Logs, LogBytesDefault) / streams
	if files := most / asked.MaxBytes; int64(asked.MaxFiles) > files {
		asked.MaxFiles = int(max(files, driver.LogFilesMin))
	}
	asked.MaxBytes = min(asked.MaxBytes, most/int64(asked.MaxFiles))
	return asked.WithDefaults()
}

// Quotas are those of the file system on which tasks have their directories: what
// writes more below one gets EDQUOT at once. Package diskquota has it.
type Quotas interface {
	Bound(dir string, bytes, files int64) error
	Free(dir string) error
}

// attrRoom reports how a node bounds what its tasks write: by what it measures, or by
// quotas as well.
const attrRoom = "disk.bound"

// Values of attrRoom.
const (
	roomMeasured = "measured"
	roomQuota    = "quota"
)

// Rooms bounds what the allocations of the node take of its disk. Any goroutine
// may use it once it is open.
type Rooms struct {
	Config
	quotas Quotas // nil: its file system keeps none
	taken  rooms
}

// Config is what the bounds of allocations need.
type Config struct {
	Layout  layout.Layout
	Bounds  Bounds             // of each allocation
	Disk    machine.DiskBounds // of the file system
	Every   time.Duration      // between measurements; 0: 5 s
	Drivers map[string]driver.Driver
	Events  loop.Events
	Node    *machine.Registration
	Work    *sync.WaitGroup
	Log     *slog.Logger
}

// New makes rooms that bound nothing until they are open.
func New(config Config) *Rooms {
	config.Every = cmp.Or(config.Every, roomEvery)
	return &Rooms{Config: config}
}

// Open looks whether the file system keeps quotas, and registers it. open nil: tasks
// are measured alone. It is called before everything else.
func (r *Rooms) Open(open func(dir string) (Quotas, error)) {
	value := roomMeasured
	if open != nil {
		found, err := open(r.Layout.Root)
		if err != nil {
			r.Log.Debug("what tasks write is measured alone", logkey.Error, err)
		} else {
			r.quotas, value = found, roomQuota
		}
	}
	r.Node.Set(attrRoom, value)
}

// quota is what a task may write before the file system refuses more: a little
// more than it is ended for, so that it is told why. 0 bounds nothing. Pure.
func (b Bounds) quota() (bytes, files int64) {
	const share, bytesMore, filesMore = 64, 1 << 20, 100
	if b.Bytes > 0 {
		bytes = b.Bytes + max(b.Bytes/share, bytesMore)
	}
	if b.Files > 0 {
		files = b.Files + max(b.Files/share, filesMore)
	}
	return bytes, files
}

// Bound sets the quota of an allocation whose directory is fresh, and that asked
// for so many bytes; 0: it did not. Without a quota the task is measured.
func (r *Rooms) Bound(id string, asked int64) {
	if r.quotas == nil {
		return
	}
	disk := machine.LookAt(r.Layout.Root)
	bytes, files := r.boundsOf(asked, &disk).quota()
	if err := r.quotas.Bound(r.Layout.Task(id), bytes, files); err != nil {
		r.Log.Warn("a task has no quota and is measured alone", logkey.AllocID, id, logkey.Error, err)
	}
}

// Free removes the quota of an allocation.
func (r *Rooms) Free(id string) {
	if r.quotas == nil {
		return
	}
	if err := r.quotas.Free(r.Layout.Task(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Log.Warn("a quota is not taken away", logkey.AllocID, id, logkey.Error, err)
	}
}

// boundsOf are the bounds of an allocation that asked for so many bytes; 0: it did not.
func (r *Rooms) boundsOf(asked int64, disk *machine.FileSystem) Bounds {
	bounds := r.Bounds.of(disk.Size, disk.Inodes)
	bounds.Bytes = lesser(asked, bounds.Bytes)
	return bounds
}

// Rotation bounds the logs that a job asks for.
func (r *Rooms) Rotation(asked driver.LogRotation) driver.LogRotation {
	return r.Bounds.rotation(asked)
}

// Watch measures the directory of an allocation until it ends, and has it end when
// it takes too much.
func (r *Rooms) Watch(work context.Context, t *loop.Task) {
	ctx, cancel := t.While(work, r.Work)
	defer cancel()
	defer r.taken.forget(t.ID)
	asked := int64(0)
	if a := t.Assigned.Load(); a != nil && a.Alloc != nil {
		asked = a.Alloc.Spec.Disk
	}
	var layer string // of its container
	for wait := r.Every; retry.Sleep(ctx, wait); {
		disk := machine.LookAt(r.Layout.Root)
		bounds := r.boundsOf(asked, &disk)
		began := time.Now()
		if layer == "" {
			layer = r.layerOf(ctx, t)
		}
		used, err := measureRoom(ctx, r.Layout.Alloc(t.ID), bounds)
		if layer != "" && err == nil && bounds.exceeded(used) == nil {
			var inside roomUsed
			inside, err = measureRoom(ctx, layer, bounds)
			used.bytes, used.files = used.bytes+inside.bytes, used.files+inside.files
		}
		if err != nil && ctx.Err() == nil {
			r.Log.Debug("the room of an allocation is not measured", logkey.AllocID, t.ID, logkey.Error, err)
		}
		cause := bounds.exceeded(used)
		if largest := r.taken.note(t.ID, used.bytes); cause == nil && largest && asked == 0 && fills(&disk, r.Disk, used.bytes) {
			cause = structs.NewReason("client.room_last", "used", words.Roughly(used.bytes), "free", words.Roughly(disk.Free))
		}
		if cause != nil {
			r.Log.Warn("a task takes too much of the disk and is ended", logkey.AllocID, t.ID, logkey.Reason, cause)
			r.Events.Event(t.ID, alloc.Exceeded{Cause: cause})
			return
		}
		wait = max(r.Every, roomShare*time.Since(began))
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
func fills(disk *machine.FileSystem, bounds machine.DiskBounds, used int64) bool {
	return disk.Size > 0 && disk.Free < bounds.Of(disk.Size, disk.Inodes).SpaceMin/2 && used > disk.Size/roomFills
}

// layerOf is the directory of the node in which the writable layer of a container
// lies; "" without one, and while that is not known.
func (r *Rooms) layerOf(ctx context.Context, t *loop.Task) string {
	d, ok := r.Drivers[t.Driver].(driver.Layered)
	if !ok {
		return ""
	}
	dir, err := d.Layer(ctx, alloc.TaskID(t.ID))
	if err != nil {
		r.Log.Debug("the layer of a container is not known", logkey.AllocID, t.ID, logkey.Error, err)
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
func measureRoom(ctx context.Context, dir string, bounds Bounds) (roomUsed, error) {
	var used roomUsed
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return used, err
	}
	return used, used.add(ctx, os.NewFile(uintptr(fd), dir), bounds, roomDeepest)
}

// add measures an open directory and closes it.
func (u *roomUsed) add(ctx context.Context, dir *os.File, bounds Bounds, deeper int) error {
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
