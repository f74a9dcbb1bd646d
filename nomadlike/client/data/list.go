package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"path"
)

// FilesMax bounds the files and directories of one dataset.
const FilesMax = 20_000_000

// SourceFilesMax bounds those of a dataset that comes from a Source, whose list
// is in memory while it is made.
const SourceFilesMax = 500_000

// File is one file of a source.
type File struct {
	Path  string // relative, with slashes
	Size  int64  // bytes
	Mode  fs.FileMode
	MTime int64 // nanoseconds; 0 when the source has a Tag instead
	Owner owner

	// What a Source adds; empty for files of a directory.
	Tag    string // which version of the file is meant, in the source's own words
	SHA256 []byte // that the contents must have; nil when nobody says
	Whole  bool   // it can only be read from its beginning: in one piece
	// Ends are where its chunks end, of a file of a version that has several; nil: it is cut
	// every chunkBytes.
	Ends []int64
}

// owner says who may read: a copy belongs to whom its source belongs to.
type owner struct{ UID, GID int }

// Listing is what a source consists of, in the order of paths. A caller that has made one
// closes it.
type Listing struct {
	Bytes int64
	Left  int // special files that were left out
	// Outside are links that lead out of the dataset, and were left out.
	Outside int
	// Origin tells sources apart whose files are told apart by tags alone; ""
	// for directories.
	Origin string

	dirs  roll // Path, relative, the source itself, ".", first; Mode and Owner
	files roll
	links roll // Path, Owner, and what the link says, in Tag
}

// Count is how many files there are.
func (l *Listing) Count() int { return l.files.count }

// Each yields the files one by one.
func (l *Listing) Each(yield func(f *File) error) error {
	return l.files.each(func(_ int, f *File) error { return yield(f) })
}

// Close frees what the listing has on the disk.
func (l *Listing) Close() error { return errors.Join(l.dirs.close(), l.files.close(), l.links.close()) }

// keyVersion changes with what a copy keeps of its source, so that copies of
// older versions are not taken for it.
const keyVersion = "2"

// key names the listing: sources with the same key are taken for the same.
func (l *Listing) key() (string, error) {
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
	if l.Origin != "" {
		b = append(b, 1)
		text(l.Origin)
		h.Write(b)
	}
	err := l.dirs.each(func(_ int, d *File) error {
		b = b[:0]
		text(d.Path)
		rights(d.Mode, d.Owner)
		h.Write(b)
		return nil
	})
	if err != nil {
		return "", err
	}
	h.Write([]byte{0})
	err = l.files.each(func(_ int, f *File) error {
		b = b[:0]
		text(f.Path)
		b = binary.AppendVarint(b, f.Size)
		rights(f.Mode, f.Owner)
		b = binary.AppendVarint(b, f.MTime)
		if l.Origin != "" {
			text(f.Tag)
			text(string(f.SHA256))
		}
		h.Write(b)
		return nil
	})
	if err != nil {
		return "", err
	}
	if l.links.count > 0 { // without links, names of before keep their meaning
		h.Write([]byte{0})
	}
	err = l.links.each(func(_ int, f *File) error {
		b = b[:0]
		text(f.Path)
		text(f.Tag)
		rights(0, f.Owner)
		h.Write(b)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// chunkBytes is what one worker copies of a file at a time. Larger files are
// copied by several.
const chunkBytes = 16 << 20

// chunks is how many pieces a file has; an empty one has one too.
func (f *File) chunks() int {
	switch {
	case f.Whole:
		return 1
	case len(f.Ends) > 0:
		return len(f.Ends)
	}
	return int(max((f.Size+chunkBytes-1)/chunkBytes, 1))
}

// span is where a chunk lies in its file.
func (f *File) span(chunk int) (offset, length int64) {
	if f.Whole {
		return 0, f.Size
	}
	if len(f.Ends) > 0 {
		if chunk > 0 {
			offset = f.Ends[chunk-1]
		}
		return offset, f.Ends[chunk] - offset
	}
	offset = int64(chunk) * chunkBytes
	return offset, max(0, min(chunkBytes, f.Size-offset))
}

// contents names the contents of a copy: what is called how, holds what, and may
// be read by whom. The files are added in the order of the listing.
type contents struct{ hash.Hash }

func contentsOf(l *Listing) (contents, error) {
	c := contents{sha256.New()}
	err := l.dirs.each(func(_ int, d *File) error {
		fmt.Fprintf(c, "d %q %o %d:%d\n", d.Path, d.Mode, d.Owner.UID, d.Owner.GID)
		return nil
	})
	if err != nil {
		return c, err
	}
	return c, l.links.each(func(_ int, f *File) error {
		fmt.Fprintf(c, "l %q %q %d:%d\n", f.Path, f.Tag, f.Owner.UID, f.Owner.GID)
		return nil
	})
}

func (c contents) add(f *File, digest []byte) {
	fmt.Fprintf(c, "f %q %o %d:%d %d %x\n", path.Clean(f.Path), f.Mode, f.Owner.UID, f.Owner.GID, f.Size, digest)
}

func (c contents) digest() string { return hex.EncodeToString(c.Sum(nil)) }
