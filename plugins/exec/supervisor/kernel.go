package supervisor

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"nomadlike/internal/mounts"
)

// System calls that package syscall does not know. Their numbers are the same
// on every architecture.
const (
	sysOpenTree        = 428
	sysMoveMount       = 429
	sysOpenat2         = 437
	sysMountSetattr    = 442
	sysLandlockCreate  = 444
	sysLandlockAddRule = 445
	sysLandlockSelf    = 446

	atEmptyPath = 0x1000
	atNoFollow  = 0x100
	atRecursive = 0x8000
	atFDCWD     = -100
	oPath       = 0x200000

	openTreeClone     = 1
	openTreeCloexec   = syscall.O_CLOEXEC
	moveFromEmptyPath = 0x4
	moveToEmptyPath   = 0x40

	resolveNoMagicLinks = mounts.NoMagicLinks
	resolveNoSymlinks   = mounts.NoSymlinks
	resolveBeneath      = mounts.Beneath
	resolveInRoot       = mounts.InRoot

	mountReadOnly = mounts.ReadOnly
	mountNoSUID   = mounts.NoSUID
	mountNoDev    = mounts.NoDev
)

// openAt opens a path below a directory as the given way of resolving allows.
func openAt(dir int, path string, flags int, resolve uint64) (int, error) {
	if mounts.Classical() {
		return mounts.Walk(dir, path, flags, resolve)
	}
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	how := struct{ flags, mode, resolve uint64 }{uint64(flags | syscall.O_CLOEXEC), 0, resolve}
	for {
		fd, _, errno := syscall.Syscall6(sysOpenat2, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
		switch errno {
		case 0:
			return int(fd), nil
		case syscall.EINTR, syscall.EAGAIN: // somebody renames meanwhile
		default:
			return -1, errno
		}
	}
}

// OpenInRoot opens a path as whoever has an opened directory for "/" would, but over no
// link. For package exec alone.
func OpenInRoot(root int, path string, flags int) (int, error) {
	return openAt(root, path, flags, resolveInRoot|resolveNoSymlinks)
}

// cloneTree returns a copy of what is mounted at an opened path, with what is
// below, that the task does not see yet. It has to be attached before the next
// one is made.
func (r *root) cloneTree(fd int) (int, error) { return r.cloneTreeAt(fd, "") }

// cloneTreeAt is cloneTree for a path below an opened directory; a link at its end
// is not followed.
func (r *root) cloneTreeAt(dir int, path string) (int, error) {
	if mounts.Classical() {
		return r.stageTree(dir, path)
	}
	flags := uintptr(atRecursive | atNoFollow)
	if path == "" {
		flags |= atEmptyPath
	}
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	copied, _, errno := syscall.Syscall(sysOpenTree, uintptr(dir), uintptr(unsafe.Pointer(name)), openTreeClone|openTreeCloexec|flags)
	if errno != 0 {
		return -1, errno
	}
	return int(copied), nil
}

// restrictTree sets flags on every mount of a tree.
func restrictTree(tree int, flags uint64) error {
	if mounts.Classical() {
		return mounts.Restrict(tree, flags)
	}
	var empty [1]byte
	attr := struct{ set, clear, propagation, userNS uint64 }{set: flags}
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(tree), uintptr(unsafe.Pointer(&empty)), atEmptyPath|atRecursive,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// attach mounts a tree over an opened file or directory.
func attach(tree, target int) error {
	return moveTree(tree, target, "", moveFromEmptyPath|moveToEmptyPath)
}

// attachAt mounts a tree over an entry of an opened directory; links are not
// followed.
func attachAt(tree, dir int, name string) error {
	return moveTree(tree, dir, name, moveFromEmptyPath)
}

func moveTree(tree, dir int, path string, flags uintptr) error {
	if mounts.Classical() {
		return moveStaged(tree, dir, path)
	}
	var empty [1]byte
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(sysMoveMount, uintptr(tree), uintptr(unsafe.Pointer(&empty)), uintptr(dir),
		uintptr(unsafe.Pointer(name)), flags, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// realPath reports where an opened file is.
func realPath(fd int) (string, error) { return os.Readlink("/proc/thread-self/fd/" + strconv.Itoa(fd)) }

// prctl calls prctl(2) for this thread.
func prctl(option int, a, b uintptr) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, uintptr(option), a, b, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
