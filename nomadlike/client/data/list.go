package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// FilesMax bounds the files of one dataset.
const FilesMax = 20_000_000

// file is one file of a source.
type file struct {
	Path  string      `json:"path"` // relative, with slashes
	Size  int64       `json:"size"`
	Mode  fs.FileMode `json:"mode"`  // permission bits of the copy
	MTime int64       `json:"mtime"` // nanoseconds
	Owner owner       `json:"owner"`
}

// folder is one directory of a source.
type folder struct {
	Path  string // relative, with slashes; "." is the source itself
	Mode  fs.FileMode
	Owner owner
}

// owner says who may read: a copy belongs to whom its source belongs to.
type owner struct{ UID, GID int }

// rightsOf gives what a copy keeps of a source's rights: the bits to read, to
// execute and to search, and the owner when the agent may give files away.
// An agent that may not is the owner, and must still be able to remove the copy.
func rightsOf(info fs.FileInfo, root bool) (fs.FileMode, owner) {
	mode := info.Mode().Perm() &^ 0o222
	if !root {
		mode |= 0o400
		if info.IsDir() {
			mode |= 0o700
		}
		return mode, owner{-1, -1}
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return mode, owner{int(stat.Uid), int(stat.Gid)}
	}
	return mode, owner{-1, -1}
}

// listing is what a source consists of, in the order of paths.
type listing struct {
	Dirs  []folder // the source itself first
	Files []file
	Bytes int64
	Left  int // links and special files that were left out
}

// list reads the names and times of a source. Nothing outside of root is read,
// whatever links there are.
func list(ctx context.Context, root *os.Root) (*listing, error) {
	l, mayChown := &listing{}, os.Geteuid() == 0
	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			info, err := entry.Info()
			if err != nil {
				return err
			}
			mode, owner := rightsOf(info, mayChown)
			l.Dirs = append(l.Dirs, folder{name, mode, owner})
			return nil
		case !entry.Type().IsRegular():
			l.Left++
			return nil
		case len(l.Files) == FilesMax:
			return fmt.Errorf("list dataset: more than %d files", FilesMax)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode, owner := rightsOf(info, mayChown)
		l.Files = append(l.Files, file{Path: name, Size: info.Size(), Mode: mode, MTime: info.ModTime().UnixNano(), Owner: owner})
		l.Bytes += info.Size()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list dataset: %w", err)
	}
	return l, nil
}

// keyVersion changes with what a copy keeps of its source, so that copies of
// older versions are not taken for it.
const keyVersion = "2"

// key names the listing: sources with the same key are taken for the same.
func (l *listing) key() string {
	h := sha256.New()
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	rights := func(mode fs.FileMode, o owner) {
		b = binary.AppendUvarint(b, uint64(mode))
		b = binary.AppendVarint(b, int64(o.UID))
		b = binary.AppendVarint(b, int64(o.GID))
	}
	h.Write([]byte(keyVersion))
	for i := range l.Dirs {
		b = b[:0]
		text(l.Dirs[i].Path)
		rights(l.Dirs[i].Mode, l.Dirs[i].Owner)
		h.Write(b)
	}
	h.Write([]byte{0})
	for i := range l.Files {
		f := &l.Files[i]
		b = b[:0]
		text(f.Path)
		b = binary.AppendVarint(b, f.Size)
		rights(f.Mode, f.Owner)
		b = binary.AppendVarint(b, f.MTime)
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// chunkBytes is what one worker copies of a file at a time. Larger files are
// copied by several.
const chunkBytes = 16 << 20

// chunks is how many pieces a file has; an empty one has one too.
func (f *file) chunks() int { return int(max((f.Size+chunkBytes-1)/chunkBytes, 1)) }

// span is where a chunk lies in its file.
func (f *file) span(chunk int) (offset, length int64) {
	offset = int64(chunk) * chunkBytes
	return offset, max(0, min(chunkBytes, f.Size-offset))
}

// digestOf names the contents of a copy: what is called how, holds what, and may
// be read by whom.
func digestOf(l *listing, digests [][]byte) string {
	h := sha256.New()
	for _, d := range l.Dirs {
		fmt.Fprintf(h, "d %q %o %d:%d\n", d.Path, d.Mode, d.Owner.UID, d.Owner.GID)
	}
	for i := range l.Files {
		f := &l.Files[i]
		fmt.Fprintf(h, "f %q %o %d:%d %d %x\n", path.Clean(f.Path), f.Mode, f.Owner.UID, f.Owner.GID, f.Size, digests[i])
	}
	return hex.EncodeToString(h.Sum(nil))
}
