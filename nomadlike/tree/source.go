package tree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"nomadlike/nomadlike/structs"
)

// Source is a directory that was scanned, and still holds what it held. Any goroutine
// may read from it.
type Source struct {
	root   *os.Root
	places map[Digest]place
}

// place is where in a directory a chunk lies; of several, one.
type place struct {
	name   string
	offset int64
}

// OpenSource opens the directory that the manifest was made of. The caller closes it.
func OpenSource(dir string, m Manifest) (*Source, error) {
	root, err := openTree(dir)
	if err != nil {
		return nil, err
	}
	s := &Source{root: root, places: make(map[Digest]place)}
	for i := range m.Entries {
		offset := int64(0)
		for _, chunk := range m.Entries[i].Chunks {
			if _, known := s.places[chunk.Digest]; !known {
				s.places[chunk.Digest] = place{m.Entries[i].Path, offset}
			}
			offset += chunk.Size
		}
	}
	return s, nil
}

// Close lets go of the directory.
func (s *Source) Close() error { return s.root.Close() }

// Read returns the bytes of a chunk. A file that has changed since the scan is an error
// that names it.
func (s *Source) Read(chunk Chunk) ([]byte, error) {
	at, known := s.places[chunk.Digest]
	if !known {
		return nil, structs.NewError(structs.CodeInternal, "tree.unknown_chunk", "chunk", chunk.Digest.Short())
	}
	file, err := s.root.OpenFile(at.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, changed(at.name, err)
	}
	if err != nil {
		return nil, unreadableFile(at.name, err)
	}
	defer file.Close()
	data := make([]byte, chunk.Size)
	if _, err := file.ReadAt(data, at.offset); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ESPIPE) {
			return nil, changed(at.name, err)
		}
		return nil, unreadableFile(at.name, err)
	}
	if DigestOf(data) != chunk.Digest {
		return nil, changed(at.name, nil)
	}
	return data, nil
}
