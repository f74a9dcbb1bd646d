package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// list reads the names and times of a directory and of all below it. Nothing
// outside of root is read, whatever links there are.
func list(ctx context.Context, root *os.Root) (*Listing, error) {
	w := walk{ctx: ctx, root: root, listing: &Listing{}, mayChown: os.Geteuid() == 0}
	if err := w.dir("."); err != nil {
		return nil, fmt.Errorf("list dataset: %w", err)
	}
	return w.listing, nil
}

// walk is a listing in the making.
type walk struct {
	ctx      context.Context //nolint:containedctx // of one call of list
	root     *os.Root
	listing  *Listing
	mayChown bool
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
	w.listing.Files = slices.Grow(w.listing.Files, min(len(names), FilesMax-len(w.listing.Files)))
	for some := range slices.Chunk(names, statsAtOnce) {
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
		if len(w.listing.Files) == FilesMax {
			return errTooMany
		}
		mode, owner := rightsOf(fs.FileMode(stat.Mode&0o777), stat, w.mayChown)
		w.listing.Files = append(w.listing.Files, File{Path: name, Size: stat.Size, Mode: mode, MTime: stat.Mtim.Nano(), Owner: owner})
		w.listing.Bytes += stat.Size
	default:
		w.listing.Left++
	}
	return nil
}

// open opens a directory of the dataset.
func (w *walk) open(name string) (*os.File, error) {
	return w.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}

// read gives the names in a directory, sorted. The directory itself joins the
// listing.
func (w *walk) read(name string) ([]string, error) {
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
	w.listing.Dirs = append(w.listing.Dirs, folder{name, mode, owner})
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
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

var errTooMany = errors.New("too many files")

// rightsOf gives what a copy keeps of a source's rights: the bits to read, to
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
