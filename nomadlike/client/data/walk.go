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

// dir lists a directory, by names in it alone: a path is walked once for each
// directory and not for each file.
func (w *walk) dir(name string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	names, stats, err := w.read(name)
	if err != nil {
		return err
	}
	for i, base := range names {
		below := path.Join(name, base)
		switch stats[i].Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			if err := w.dir(below); err != nil {
				return err
			}
		case unix.S_IFREG:
			if len(w.listing.Files) == FilesMax {
				return errTooMany
			}
			mode, owner := rightsOf(fs.FileMode(stats[i].Mode&0o777), &stats[i], w.mayChown)
			w.listing.Files = append(w.listing.Files, File{Path: below, Size: stats[i].Size, Mode: mode, MTime: stats[i].Mtim.Nano(), Owner: owner})
			w.listing.Bytes += stats[i].Size
		default:
			w.listing.Left++
		}
	}
	return nil
}

// read gives what is in a directory, sorted. The directory itself joins the
// listing.
func (w *walk) read(name string) ([]string, []unix.Stat_t, error) {
	d, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	fd := int(d.Fd())
	var own unix.Stat_t
	if err := unix.Fstat(fd, &own); err != nil {
		return nil, nil, err
	}
	mode, owner := rightsOf(fs.ModeDir|fs.FileMode(own.Mode&0o777), &own, w.mayChown)
	w.listing.Dirs = append(w.listing.Dirs, folder{name, mode, owner})
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(names)
	stats := make([]unix.Stat_t, len(names))
	for i, base := range names {
		if err := unix.Fstatat(fd, base, &stats[i], unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return nil, nil, &fs.PathError{Op: "stat", Path: path.Join(name, base), Err: err}
		}
	}
	return names, stats, nil
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
