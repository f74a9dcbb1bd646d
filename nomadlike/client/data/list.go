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
)

// FilesMax bounds the files of one dataset.
const FilesMax = 20_000_000

// file is one file of a source.
type file struct {
	Path  string      `json:"path"` // relative, with slashes
	Size  int64       `json:"size"`
	Mode  fs.FileMode `json:"mode"`  // permission bits of the copy
	MTime int64       `json:"mtime"` // nanoseconds
}

// listing is what a source consists of, in the order of paths.
type listing struct {
	Dirs  []string
	Files []file
	Bytes int64
	Left  int // links and special files that were left out
}

// list reads the names and times of a source. Nothing outside of root is read,
// whatever links there are.
func list(ctx context.Context, root *os.Root) (*listing, error) {
	l := &listing{}
	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case name == ".":
			return nil
		case entry.IsDir():
			l.Dirs = append(l.Dirs, name)
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
		mode := fs.FileMode(0o444)
		if info.Mode()&0o111 != 0 {
			mode = 0o555
		}
		l.Files = append(l.Files, file{Path: name, Size: info.Size(), Mode: mode, MTime: info.ModTime().UnixNano()})
		l.Bytes += info.Size()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list dataset: %w", err)
	}
	return l, nil
}

// key names the listing: sources with the same key are taken for the same.
func (l *listing) key() string {
	h := sha256.New()
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, dir := range l.Dirs {
		b = b[:0]
		text(dir)
		h.Write(b)
	}
	h.Write([]byte{0})
	for i := range l.Files {
		f := &l.Files[i]
		b = b[:0]
		text(f.Path)
		b = binary.AppendVarint(b, f.Size)
		b = binary.AppendUvarint(b, uint64(f.Mode))
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

// digestOf names the contents of a copy: what is called how, and holds what.
func digestOf(l *listing, digests [][]byte) string {
	h := sha256.New()
	for _, dir := range l.Dirs {
		fmt.Fprintf(h, "d %q\n", dir)
	}
	for i := range l.Files {
		fmt.Fprintf(h, "f %q %o %d %x\n", path.Clean(l.Files[i].Path), l.Files[i].Mode, l.Files[i].Size, digests[i])
	}
	return hex.EncodeToString(h.Sum(nil))
}
