package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// This file makes views on kernels before 5.12, which lack some of openat2,
// open_tree, move_mount and mount_setattr: those of RHEL 8, Kylin V10,
// openEuler 20.03 and Ubuntu 20.04. Views are the same on both roads.
//
// Paths are walked one name at a time from an opened directory, so that no link
// is followed that was not read and judged here. Mounts are copied by a bind to a
// stage of this thread's own, restricted there one by one, looked at again, and only then
// moved to their place. Files are named to mount(2) by their descriptors.

// classical tells whether the kernel lacks any of the four calls, or a filter keeps
// them from this process.
var classical = sync.OnceValue(func() bool {
	missing := func(errno syscall.Errno) bool { return errno == syscall.ENOSYS || errno == syscall.EPERM }
	var empty [1]byte
	var how struct{ flags, mode, resolve uint64 }
	var attr struct{ set, clear, propagation, userNS uint64 }
	none := ^uintptr(0) // no descriptor: who knows the call says EBADF
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

// walk is openAt name by name. With resolveInRoot dir is the root: links and ".."
// stay in there; with resolveBeneath what would leave it is refused. Links of
// /proc are refused always.
func walk(dir int, path string, flags int, resolve uint64) (int, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return -1, syscall.EINVAL
	}
	scoped := resolve&resolveInRoot != 0
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
		fd, err := openName(here(), name, oPath)
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
		if links++; resolve&resolveNoSymlinks != 0 || last || links > linksMax || ofProc(fd) {
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
	return openName(-1, fdPath(here()), flags&^syscall.O_NOFOLLOW)
}

// openName opens an entry of an opened directory that is no link, or, with flags
// for it, the link itself; or, for an absolute path of ours, what it leads to.
func openName(dir int, name string, flags int) (int, error) {
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
	return syscall.Fstatfs(fd, &stat) != nil || int64(stat.Type) == procMagic
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

// fdPath names an opened file to calls that take paths.
func fdPath(fd int) string { return "/proc/thread-self/fd/" + strconv.Itoa(fd) }

// stageTree is cloneTreeAt: what is mounted at the path, with what is below, is
// bound to a place on the stage. One tree at a time is there: it has to be
// attached before the next.
func (v *view) stageTree(dir int, path string) (int, error) {
	source := dir
	if path != "" {
		fd, err := openName(dir, path, oPath)
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
	place := filepath.Join(v.stage, "leaf")
	var err error
	switch stat.Mode & syscall.S_IFMT {
	case syscall.S_IFLNK:
		return -1, syscall.ELOOP
	case syscall.S_IFDIR:
		place = filepath.Join(v.stage, "tree")
		err = os.Mkdir(place, 0o755)
	default:
		err = os.WriteFile(place, nil, 0o444)
	}
	if err != nil && !os.IsExist(err) {
		return -1, err
	}
	if err := syscall.Mount(fdPath(source), place, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return -1, err
	}
	return openName(-1, place, oPath)
}

// moveStaged is move_mount for a tree of stageTree.
func moveStaged(tree, dir int, name string) error {
	target := dir
	if name != "" {
		fd, err := openName(dir, name, oPath)
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		target = fd
	}
	return syscall.Mount(fdPath(tree), fdPath(target), "", syscall.MS_MOVE, "")
}

// restrictStaged is restrictTree for a tree of stageTree: mount by mount, and then
// all are looked at again, for what is mounted there may be in strange hands.
func restrictStaged(tree int, flags uint64) error {
	root, err := realPath(tree)
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
			if look == looksMax {
				return fmt.Errorf("%s: %w", strings.TrimPrefix(point.path, root), syscall.EBUSY)
			}
			if err := restrictPoint(tree, root, point, flags); err != nil {
				return fmt.Errorf("%s: %w", strings.TrimPrefix(point.path, root), err)
			}
		}
	}
}

// looksMax is how often mounts that come meanwhile are restricted too: those of
// an automounter, for instance.
const looksMax = 4

// restrictPoint sets flags on the mount at a path, over no link.
func restrictPoint(tree int, root string, point mountPoint, flags uint64) error {
	set := point.flags | restrictions(flags)
	fd := tree
	if point.path != root {
		below, err := walk(tree, strings.TrimPrefix(point.path, root+"/"), oPath, resolveBeneath|resolveNoSymlinks)
		if err != nil {
			return err
		}
		defer syscall.Close(below)
		fd = below
	}
	if set&(syscall.MS_NOATIME|syscall.MS_RELATIME) == 0 {
		set |= syscall.MS_STRICTATIME // otherwise the kernel takes another one than there is, which may be locked
	}
	return syscall.Mount("", fdPath(fd), "", syscall.MS_BIND|syscall.MS_REMOUNT|set, "")
}

// restrictions are flags of mount_setattr in the words of mount(2).
func restrictions(flags uint64) (set uintptr) {
	for _, one := range []struct {
		flag uint64
		set  uintptr
	}{{mountReadOnly, syscall.MS_RDONLY}, {mountNoSUID, syscall.MS_NOSUID}, {mountNoDev, syscall.MS_NODEV}} {
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
		point := mountPoint{path: unescapeMount(words[4])}
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

// unescapeMount reads a path of mountinfo, in which blanks, tabs, newlines and
// backslashes are octal numbers. Pure.
func unescapeMount(text string) string {
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
