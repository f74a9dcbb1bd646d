package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// list reads the names and times of a directory and of all below it. Nothing
// outside of root is read, whatever links there are. A long list is kept in dir.
func list(ctx context.Context, root *os.Root, dir string) (*Listing, error) {
	w := walk{ctx: ctx, root: root, listing: &Listing{dirs: roll{dir: dir}, files: roll{dir: dir}, links: roll{dir: dir}}, mayChown: os.Geteuid() == 0}
	if err := w.dir("."); err != nil {
		return nil, errors.Join(fmt.Errorf("list dataset: %w", err), w.listing.Close())
	}
	return w.listing, nil
}

// walk is a listing in the making.
type walk struct {
	ctx      context.Context // of one call of list
	root     *os.Root
	listing  *Listing
	mayChown bool
	held     int // bytes of the names of the directories that are being walked
}

// statsAtOnce is how many files are looked at between what is done with them: the
// figures of all files of a large directory would be larger than the listing.
const statsAtOnce = 1024

// dir lists a directory, by names in it alone: a path is walked once for some
// files and not for each.
func (w *walk) dir(name string) error {
	names, err := w.read(name)
	if err != nil {
		return err
	}
	w.held += names.bytes
	defer func() { w.held -= names.bytes }()
	for from := 0; from < len(names.at); from += statsAtOnce {
		some := names.some(from, min(from+statsAtOnce, len(names.at)))
		if err := w.ctx.Err(); err != nil {
			return err
		}
		stats, err := w.stat(name, some)
		if err != nil {
			return err
		}
		for i, base := range some {
			if err := w.take(path.Join(name, base), &stats[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds what lies at a path, and what is below it.
func (w *walk) take(name string, stat *unix.Stat_t) error {
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return w.dir(name)
	case unix.S_IFREG:
		if err := w.room(); err != nil {
			return err
		}
		mode, owner := rightsOf(fs.FileMode(stat.Mode&0o777), stat, w.mayChown)
		w.listing.Bytes += stat.Size
		return w.listing.files.add(&File{Path: name, Size: stat.Size, Mode: mode, MTime: stat.Mtim.Nano(), Owner: owner})
	case unix.S_IFLNK:
		return w.link(name, stat)
	default:
		w.listing.Left++
	}
	return nil
}

// link adds a link, unless it leads out of the dataset.
func (w *walk) link(name string, stat *unix.Stat_t) error {
	target, err := w.root.Readlink(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	if !staysInside(name, target) && !w.leadsInside(name, target) {
		w.listing.Outside++
		return nil
	}
	if err := w.room(); err != nil {
		return err
	}
	_, owner := rightsOf(0, stat, w.mayChown)
	return w.listing.links.add(&File{Path: name, Tag: target, Owner: owner})
}

// staysInside reports by its text alone that a link leads to a place below the
// dataset: it climbs at first, at most as far as it lies deep, and never again.
// What it meets on the way are directories, or links that were looked at too.
func staysInside(name, target string) bool {
	if target == "" || path.IsAbs(target) {
		return false
	}
	depth, climbing := strings.Count(name, "/"), true
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			climbing = false
		case !climbing || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}

// leadsInside asks the kernel where a link leads whose text does not tell.
func (w *walk) leadsInside(name, target string) bool {
	if path.IsAbs(target) {
		return false // it is of the node, and not of the place where a task sees the dataset
	}
	_, err := w.root.Stat(name)
	return err == nil
}

// room says no when the dataset has too many files and directories.
func (w *walk) room() error {
	if w.listing.files.count+w.listing.dirs.count+w.listing.links.count >= FilesMax {
		return errTooMany
	}
	return nil
}

// open opens a directory of the dataset.
func (w *walk) open(name string) (*os.File, error) {
	return w.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}

// read returns the names in a directory, sorted. The directory itself joins the
// listing.
func (w *walk) read(name string) (*names, error) {
	if err := w.room(); err != nil {
		return nil, err
	}
	d, err := w.open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var own unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &own); err != nil {
		return nil, err
	}
	mode, owner := rightsOf(fs.ModeDir|fs.FileMode(own.Mode&0o777), &own, w.mayChown)
	if err := w.listing.dirs.add(&File{Path: name, Mode: mode, Owner: owner}); err != nil {
		return nil, err
	}
	inside, err := readNames(d, namesMax-w.held)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return inside, nil
}

// stat looks at some files of a directory.
func (w *walk) stat(name string, names []string) ([]unix.Stat_t, error) {
	d, err := w.open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	stats := make([]unix.Stat_t, len(names))
	for i, base := range names {
		if err := unix.Fstatat(int(d.Fd()), base, &stats[i], unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return nil, &fs.PathError{Op: "stat", Path: path.Join(name, base), Err: err}
		}
	}
	return stats, nil
}

var errTooMany = fmt.Errorf("it has more than %d files and directories: pack them into larger ones", FilesMax)

// rightsOf returns what a copy keeps of a source's rights: the bits to read, to
// execute and to search, and the owner when the agent may give files away.
// An agent that may not is the owner, and must still be able to remove the copy.
func rightsOf(mode fs.FileMode, stat *unix.Stat_t, root bool) (fs.FileMode, owner) {
	kept := mode.Perm() &^ 0o222
	if !root {
		kept |= 0o400
		if mode.IsDir() {
			kept |= 0o700
		}
		return kept, owner{-1, -1}
	}
	return kept, owner{int(stat.Uid), int(stat.Gid)}
}
