// Package diskquota bounds what lies below directories by the project quotas of
// their file system: whoever writes more gets EDQUOT at once.
//
// Flow: Open looks whether the file system of a directory keeps project quotas;
// Bound sets up a fresh directory with a project of its own, which everything that is made
// below inherits, with limits; Free takes the limits away before the directory is
// removed.
//
// Limits: ext4 and XFS, mounted with prjquota, on a block device. A process with
// CAP_SYS_RESOURCE in the machine's own user namespace passes limits, and the owner
// of a file in that namespace may take it out of its project: callers measure
// beside it. Quotas count disk blocks, in KiB.
package diskquota

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// ErrNone is why a directory cannot be bounded: its file system has no project
// quotas, or they are not enforced.
var ErrNone = errors.New("the file system keeps no project quotas")

// Projects of this package have ids in a range that administrators do not use, in
// which Bound takes a free one at random.
const (
	idFirst = 0x6e000000
	idCount = 1 << 24
	idTries = 100
)

// freshMax bounds the files and directories below a fresh directory.
const freshMax = 1000

// FileSystem is a file system with project quotas.
type FileSystem struct {
	device string // the block device, as it is mounted
}

// Open returns the file system of a directory. The error is ErrNone where it has no
// project quotas.
func Open(dir string) (*FileSystem, error) {
	device, err := deviceOf(dir)
	if err != nil {
		return nil, err
	}
	f := &FileSystem{device: device}
	// struct fs_quota_statv of linux/dqblk_xfs.h, which ext4 answers too: version, flags.
	var state [256]byte
	state[0] = 1
	if err := f.call(cmdState, 0, unsafe.Pointer(&state)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if binary.NativeEndian.Uint16(state[2:])&projectEnforced == 0 {
		return nil, ErrNone
	}
	return f, nil
}

// deviceOf finds the block device on which a directory lies.
func deviceOf(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	above, err := mountinfo.GetMounts(mountinfo.ParentsFilter(dir))
	if err != nil {
		return "", fmt.Errorf("read mounts: %w", err)
	}
	var at *mountinfo.Info // the deepest, and of those at one place the last
	for _, m := range above {
		if at == nil || len(m.Mountpoint) >= len(at.Mountpoint) {
			at = m
		}
	}
	if at == nil || !strings.HasPrefix(at.Source, "/") {
		return "", fmt.Errorf("%w: it is on no block device", ErrNone)
	}
	return at.Source, nil
}

// Bound has the task that will write below dir get EDQUOT beyond so many bytes and
// so many files; 0 bounds nothing. The directory is fresh: nobody else writes there
// yet. It may be repeated, with other limits too.
func (f *FileSystem) Bound(dir string, bytes, files int64) error {
	id, err := projectOf(dir)
	if err != nil {
		return fmt.Errorf("read project: %w", err)
	}
	if !ours(id) {
		if id, err = f.unused(); err != nil {
			return err
		}
	}
	if err := f.limit(id, bytes, files); err != nil {
		return fmt.Errorf("set quota: %w", err)
	}
	count := 0
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if count++; err == nil && count > freshMax {
			err = errors.New("it has too many files")
		}
		if err != nil || !entry.IsDir() && !entry.Type().IsRegular() {
			return err
		}
		return setProject(path, id)
	})
	if err != nil {
		return errors.Join(fmt.Errorf("set project: %w", err), f.limit(id, 0, 0))
	}
	return nil
}

// Free takes the limits of a directory away; one without them is left as it is.
func (f *FileSystem) Free(dir string) error {
	id, err := projectOf(dir)
	if err != nil || !ours(id) {
		return err
	}
	return f.limit(id, 0, 0)
}

// Used reports what lies below a directory that was bounded.
func (f *FileSystem) Used(dir string) (bytes, files int64, err error) {
	id, err := projectOf(dir)
	if err != nil {
		return 0, 0, err
	}
	if !ours(id) {
		return 0, 0, errors.New("it has no project of its own")
	}
	block, err := f.block(id)
	return int64(block.space), int64(block.inodes), err
}

func ours(id uint32) bool { return id >= idFirst && id < idFirst+idCount }

// unused finds a project that nobody has.
func (f *FileSystem) unused() (uint32, error) {
	for range idTries {
		id := idFirst + rand.Uint32N(idCount)
		switch block, err := f.block(id); {
		case err != nil:
			return 0, fmt.Errorf("read quota: %w", err)
		case block == dqblk{}:
			return id, nil
		}
	}
	return 0, errors.New("find a project: all that were tried are in use")
}

// block reads what a project has and may have.
func (f *FileSystem) block(id uint32) (dqblk, error) {
	var block dqblk
	err := f.call(cmdGet, id, unsafe.Pointer(&block))
	if errors.Is(err, unix.ENOENT) { // XFS has nothing of it
		return dqblk{}, nil
	}
	block.valid = 0
	return block, err
}

// limit sets what a project may have.
func (f *FileSystem) limit(id uint32, bytes, files int64) error {
	const kib = 1024
	block := dqblk{spaceHard: uint64((max(bytes, 0) + kib - 1) / kib), inodesHard: uint64(max(files, 0)), valid: validLimits}
	return f.call(cmdSet, id, unsafe.Pointer(&block))
}

// dqblk is struct if_dqblk of linux/quota.h.
type dqblk struct {
	spaceHard, spaceSoft   uint64 // KiB
	space                  uint64 // bytes
	inodesHard, inodesSoft uint64
	inodes                 uint64
	spaceTime, inodesTime  uint64
	valid                  uint32
	_                      uint32
}

// Commands of quotactl(2), as linux/quota.h and linux/dqblk_xfs.h have them.
const (
	projectQuota    = 2
	cmdGet          = 0x800007<<8 | projectQuota
	cmdSet          = 0x800008<<8 | projectQuota
	cmdState        = ('X'<<8+8)<<8 | projectQuota
	projectEnforced = 1 << 5
	validLimits     = 1 | 4 // of space and of inodes
)

func (f *FileSystem) call(command int, id uint32, data unsafe.Pointer) error {
	device, err := unix.BytePtrFromString(f.device)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL, uintptr(command), uintptr(unsafe.Pointer(device)), uintptr(id), uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// attributes is struct fsxattr of linux/fs.h.
type attributes struct {
	flags, extentSize, extents, project, cowExtentSize uint32
	_                                                  [8]byte
}

// ioctls of linux/fs.h for it, and the flag by which what is made in a directory
// has its project.
const (
	ioctlGet = 0x801c581f
	ioctlSet = 0x401c5820
	inherits = 0x200
)

func projectOf(path string) (uint32, error) {
	var a attributes
	err := onFile(path, ioctlGet, &a)
	return a.project, err
}

func setProject(path string, id uint32) error {
	var a attributes
	if err := onFile(path, ioctlGet, &a); err != nil {
		return err
	}
	a.project = id
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		a.flags |= inherits
	}
	return onFile(path, ioctlSet, &a)
}

func onFile(path string, request uintptr, a *attributes) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(a))); errno != 0 {
		return &fs.PathError{Op: "ioctl", Path: path, Err: errno}
	}
	return nil
}
