package data

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// rollShort is how many bytes a roll holds in memory before it goes on on the disk.
const rollShort = 1 << 20

// roll is a list of files or of directories, written one behind the other, each
// path by what it has not in common with the one before. A long one lies in a file
// without a name: what an agent holds of a dataset does not grow with its files.
// It is filled by one goroutine, and read by any number after that.
type roll struct {
	dir   string // for its file; "" keeps all of it in memory
	text  []byte // what is behind the file's
	file  *os.File
	size  int64 // bytes in the file
	count int
	last  string // path
}

// add appends what f says.
func (r *roll) add(f *File) error {
	shared := 0
	for shared < min(len(r.last), len(f.Path)) && r.last[shared] == f.Path[shared] {
		shared++
	}
	b := binary.AppendUvarint(r.text, uint64(shared))
	b = appendText(b, f.Path[shared:])
	b = binary.AppendVarint(b, f.Size)
	b = binary.AppendUvarint(b, uint64(f.Mode))
	b = binary.AppendVarint(b, f.MTime)
	b = binary.AppendVarint(b, int64(f.Owner.UID))
	b = binary.AppendVarint(b, int64(f.Owner.GID))
	b = appendText(b, f.Tag)
	b = appendText(b, string(f.SHA256))
	whole := byte(0)
	if f.Whole {
		whole = 1
	}
	b = binary.AppendUvarint(append(b, whole), uint64(len(f.Ends)))
	for _, end := range f.Ends {
		b = binary.AppendUvarint(b, uint64(end))
	}
	r.text, r.last, r.count = b, f.Path, r.count+1
	if r.dir == "" || len(r.text) < rollShort {
		return nil
	}
	return r.spill()
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// spill moves what is in memory to the file.
func (r *roll) spill() (err error) {
	if r.file == nil {
		if r.file, err = nameless(r.dir); err != nil {
			return err
		}
	}
	if _, err := r.file.WriteAt(r.text, r.size); err != nil {
		return fmt.Errorf("keep a list of files: %w", err)
	}
	r.size, r.text = r.size+int64(len(r.text)), r.text[:0]
	return nil
}

// nameless makes a file that is gone when it is closed, however this process ends.
func nameless(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// each reads the list from its beginning. Every f is one of its own.
func (r *roll) each(yield func(i int, f *File) error) error {
	var from io.Reader = bytes.NewReader(r.text)
	if r.file != nil {
		from = io.MultiReader(io.NewSectionReader(r.file, 0, r.size), from)
	}
	reader, last := bufio.NewReaderSize(from, 1<<16), ""
	for i := range r.count {
		f := new(File)
		if err := decodeFile(reader, last, f); err != nil {
			return fmt.Errorf("read a list of files: %w", err)
		}
		last = f.Path
		if err := yield(i, f); err != nil {
			return err
		}
	}
	return nil
}

func decodeFile(from *bufio.Reader, last string, f *File) (err error) {
	unsigned := func() (n uint64) {
		if err == nil {
			n, err = binary.ReadUvarint(from)
		}
		return n
	}
	signed := func() (n int64) {
		if err == nil {
			n, err = binary.ReadVarint(from)
		}
		return n
	}
	text := func() []byte {
		n := unsigned()
		if err == nil && n > rollTextMax {
			err = io.ErrUnexpectedEOF
		}
		if err != nil || n == 0 {
			return nil
		}
		b := make([]byte, n)
		_, err = io.ReadFull(from, b)
		return b
	}
	shared := unsigned()
	if shared > uint64(len(last)) {
		return io.ErrUnexpectedEOF
	}
	f.Path = last[:shared] + string(text())
	f.Size, f.Mode, f.MTime = signed(), fs.FileMode(unsigned()), signed()
	f.Owner.UID, f.Owner.GID = int(signed()), int(signed())
	f.Tag, f.SHA256 = string(text()), text()
	if err == nil {
		var whole byte
		whole, err = from.ReadByte()
		f.Whole = whole == 1
	}
	for ends := unsigned(); ends > 0 && err == nil; ends-- {
		f.Ends = append(f.Ends, int64(unsigned()))
	}
	return err
}

// rollTextMax is no bound of what is added: it stops a file that is damaged from
// asking for memory.
const rollTextMax = 1 << 24

func (r *roll) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
