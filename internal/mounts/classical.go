// Package mounts opens paths below a directory and restricts trees of mounts on
// kernels before 5.12, which lack some of openat2, open_tree, move_mount and
// mount_setattr: those of RHEL 8, Kylin V10, openEuler 20.03 and Ubuntu 20.04.
//
// Flow: callers that show files of the node to tasks ask Classical once. If it is so, paths
// are walked one name at a time from an opened directory, so that no link is followed
// that was not read and judged here; mounts are bound to a place that nobody else
// reaches, restricted there one by one, looked at again, and used only then. Files
// are named to mount(2) by their descriptors.
//
// Limits: standard library only, for the supervisors of tasks are small; Linux 4.18
// and later with /proc.
package mounts

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// System calls that package syscall does not know. Their numbers are the same on
// every architecture.
const (
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysOpenat2      = 437
	sysMountSetattr = 442

	atEmptyPath       = 0x1000
	openTreeCloexec   = syscall.O_CLOEXEC
	moveFromEmptyPath = 0x4
	moveToEmptyPath   = 0x40
	oPath             = 0x200000
)

// How openat2 resolves paths, as Walk takes it.
const (
	NoMagicLinks = 0x02 // links of /proc are refused; Walk does so always
	NoSymlinks   = 0x04 // every link is refused
	Beneath      = 0x08 // what would lead out of the directory is refused
	InRoot       = 0x10 // the directory is "/" to links and ".."
)

// Restrictions of mounts, as mount_setattr has them.
const (
	ReadOnly = 0x1
	NoSUID   = 0x2
	NoDev    = 0x4
)

// Classical reports whether the kernel lacks any of the four calls, or a filter keeps
// them from this process.
var Classical = sync.OnceValue(func() bool {
	missing := func(errno syscall.Errno) bool { return errno == syscall.ENOSYS || errno == syscall.EPERM }
	var empty [1]byte
	var how struct{ flags, mode, resolve uint64 }
	var attr struct{ set, clear, propagation, userNS uint64 }
	none := ^uintptr(0) // no descriptor: a kernel that knows the call says EBADF
	name := uintptr(unsafe.Pointer(&empty))
	if fd, _, errno := syscall.Syscall(sysOpenTree, none, name, atEmptyPath|openTreeCloexec); errno == 0 {
		syscall.Close(int(fd))
	} else if missing(errno) {
		return true
	}
	if _, _, errno := syscall.Syscall6(sysMoveMount, none, name, none, name, moveFromEmptyPath|moveToEmptyPath, 0); missing(errno) {
		return true
	}
	if _, _, errno := syscall.Syscall6(sysMountSetattr, none, name, atEmptyPath, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0); missing(errno) {
		return true
	}
	how.flags = oPath | syscall.O_CLOEXEC
	_, _, errno := syscall.Syscall6(sysOpenat2, none, name, uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
	return missing(errno)
})

// linksMax is how many links a path may lead over, as for the kernel.
const linksMax = 40

// procMagic is the kind of /proc, whose links may lead anywhere.
const procMagic = 0x9fa0

// Walk is openat2 name by name: it opens a path from an opened directory with flags
// of open(2). With InRoot that is the root: links and ".." stay in there; with
// Beneath what would leave it is refused, by EXDEV. Links of /proc are refused
// always, by ELOOP.
func Walk(dir int, path string, flags int, resolve uint64) (int, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return -1, syscall.EINVAL
	}
	scoped := resolve&InRoot != 0
	if strings.HasPrefix(path, "/") && !scoped {
		return -1, syscall.EXDEV
	}
	way := []int{dir} // opened from dir to where the walk is; dir is the caller's
	defer func() {
		for _, fd := range way[1:] {
			syscall.Close(fd)
		}
	}()
	here := func() int { return way[len(way)-1] }
	back := func(to int) {
		for len(way) > to {
			syscall.Close(here())
			way = way[:len(way)-1]
		}
	}
	rest, links := strings.Split(path, "/"), 0
	leaf := false // the walk is at a file that is no directory
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch {
		case leaf:
			return -1, syscall.ENOTDIR
		case name == "" || name == ".":
			continue
		case name == ".." && len(way) > 1:
			back(len(way) - 1)
			continue
		case name == ".." && scoped:
			continue
		case name == "..":
			return -1, syscall.EXDEV
		}
		fd, err := OpenName(here(), name, oPath)
		if err != nil {
			return -1, err
		}
		way = append(way, fd)
		var stat syscall.Stat_t
		if err := syscall.Fstat(fd, &stat); err != nil {
			return -1, err
		}
		if kind := stat.Mode & syscall.S_IFMT; kind != syscall.S_IFLNK {
			leaf = kind != syscall.S_IFDIR
			continue
		}
		last := len(rest) == 0 && flags&syscall.O_NOFOLLOW != 0
		if links++; resolve&NoSymlinks != 0 || last || links > linksMax || ofProc(fd) {
			return -1, syscall.ELOOP
		}
		target, err := readLink(fd)
		if err != nil {
			return -1, err
		}
		back(len(way) - 1)
		if strings.HasPrefix(target, "/") {
			if !scoped {
				return -1, syscall.EXDEV
			}
			back(1)
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if flags&oPath != 0 && flags&syscall.O_DIRECTORY == 0 && len(way) > 1 {
		fd := here()
		way = way[:len(way)-1]
		return fd, nil
	}
	// It is no link: opened anew by its descriptor it is the very same file.
	return OpenName(-1, FDPath(here()), flags&^syscall.O_NOFOLLOW)
}

// OpenName opens an entry of an opened directory that is no link, or, with flags
// for it, the link itself; or, for an absolute path of ours, what it leads to.
func OpenName(dir int, name string, flags int) (int, error) {
	if !strings.HasPrefix(name, "/") {
		flags |= syscall.O_NOFOLLOW
	}
	for {
		fd, err := syscall.Openat(dir, name, flags|syscall.O_CLOEXEC, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

func ofProc(fd int) bool {
	var stat syscall.Statfs_t
	return syscall.Fstatfs(fd, &stat) != nil || stat.Type == procMagic
}

// readLink reads an opened link.
func readLink(fd int) (string, error) {
	var empty [1]byte
	var target [4096]byte
	n, _, errno := syscall.Syscall6(syscall.SYS_READLINKAT, uintptr(fd), uintptr(unsafe.Pointer(&empty)), uintptr(unsafe.Pointer(&target)), uintptr(len(target)), 0, 0)
	switch {
	case errno != 0:
		return "", errno
	case n == 0 || int(n) == len(target):
		return "", syscall.ENAMETOOLONG
	}
	return string(target[:n]), nil
}

// FDPath names an opened file to calls that take paths.
func FDPath(fd int) string { return "/proc/thread-self/fd/" + strconv.Itoa(fd) }

// Restrict sets flags on every mount of a tree that is mounted where tree was opened:
// mount by mount, and then all are looked at again, for what is mounted there may be
// in strange hands. The tree must lie where nobody else mounts anything.
func Restrict(tree int, flags uint64) error {
	root, err := os.Readlink(FDPath(tree))
	if err != nil {
		return err
	}
	for look := 0; ; look++ {
		points, err := mountsBelow(root)
		if err != nil {
			return err
		}
		open := points[:0]
		for _, point := range points {
			if point.flags|restrictions(flags) != point.flags {
				open = append(open, point)
			}
		}
		if len(open) == 0 {
			return nil
		}
		for _, point := range open {
			// One that is gone by now is not there at the next look.
			if err := restrictPoint(tree, root, point, flags); look == looksMax {
				if err == nil {
					err = syscall.EBUSY
				}
				return fmt.Errorf("%s: %w", strings.TrimPrefix(point.path, root), err)
			}
		}
	}
}

// looksMax is how often is looked again: mounts of the node come and go meanwhile,
// those of an automounter or of containers.
const looksMax = 16

// restrictPoint sets flags on the mount at a path, over no link.
func restrictPoint(tree int, root string, point mountPoint, flags uint64) error {
	set := point.flags | restrictions(flags)
	fd := tree
	if point.path != root {
		below, err := Walk(tree, strings.TrimPrefix(point.path, root+"/"), oPath, Beneath|NoSymlinks)
		if err != nil {
			return err
		}
		defer syscall.Close(below)
		fd = below
	}
	if set&(syscall.MS_NOATIME|syscall.MS_RELATIME) == 0 {
		set |= syscall.MS_STRICTATIME // otherwise the kernel takes another one than there is, which may be locked
	}
	return syscall.Mount("", FDPath(fd), "", syscall.MS_BIND|syscall.MS_REMOUNT|set, "")
}

// restrictions are flags of mount_setattr in the words of mount(2).
func restrictions(flags uint64) (set uintptr) {
	for _, one := range []struct {
		flag uint64
		set  uintptr
	}{{ReadOnly, syscall.MS_RDONLY}, {NoSUID, syscall.MS_NOSUID}, {NoDev, syscall.MS_NODEV}} {
		if flags&one.flag != 0 {
			set |= one.set
		}
	}
	return set
}

// mountPoint is a mount and what it is restricted by.
type mountPoint struct {
	path  string
	flags uintptr
}

// mountsBelow lists the mounts at a path and below, as this thread sees them.
func mountsBelow(root string) ([]mountPoint, error) {
	text, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(text), root), nil
}

// parseMounts reads a table of mounts; of several at one path the last covers the
// others. Pure.
func parseMounts(text, root string) (points []mountPoint) {
	at := make(map[string]int)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 6 {
			continue
		}
		point := mountPoint{path: Unescape(words[4])}
		if !within(point.path, root) {
			continue
		}
		for option := range strings.SplitSeq(words[5], ",") {
			point.flags |= mountOptions[option]
		}
		if i, ok := at[point.path]; ok {
			points[i] = point
			continue
		}
		at[point.path] = len(points)
		points = append(points, point)
	}
	return points
}

// mountOptions are the options of a single mount that a remount has to repeat:
// they may be locked.
var mountOptions = map[string]uintptr{
	"ro": syscall.MS_RDONLY, "nosuid": syscall.MS_NOSUID, "nodev": syscall.MS_NODEV, "noexec": syscall.MS_NOEXEC,
	"noatime": syscall.MS_NOATIME, "nodiratime": syscall.MS_NODIRATIME, "relatime": syscall.MS_RELATIME, "nosymfollow": 0x100,
}

// Unescape reads a path of mountinfo, in which blanks, tabs, newlines and
// backslashes are octal numbers. Pure.
func Unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if value, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(value))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// within reports whether path is root or below it.
func within(path, root string) bool {
	return path == root || root == "/" || strings.HasPrefix(path, root+"/")
}
