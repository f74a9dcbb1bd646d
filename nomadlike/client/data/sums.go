package data

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sort"
)

// sumsShort is of how many chunks the digests stay in memory.
const sumsShort = 1 << 15

// sums are the digests of the chunks of a copy in the making, by number. Those of
// many lie in a file without a name. Different ones may be set at the same time.
type sums struct {
	short [][sha256.Size]byte
	file  *os.File
}

func newSums(dir string, chunks int) (*sums, error) {
	if chunks <= sumsShort {
		return &sums{short: make([][sha256.Size]byte, chunks)}, nil
	}
	file, err := nameless(dir)
	if err != nil {
		return nil, fmt.Errorf("keep digests: %w", err)
	}
	return &sums{file: file}, nil
}

func (s *sums) set(number int, digest [sha256.Size]byte) (err error) {
	if s.file == nil {
		s.short[number] = digest
		return nil
	}
	_, err = s.file.WriteAt(digest[:], int64(number)*sha256.Size)
	return err
}

func (s *sums) get(number int) (digest [sha256.Size]byte, err error) {
	if s.file == nil {
		return s.short[number], nil
	}
	_, err = s.file.ReadAt(digest[:], int64(number)*sha256.Size)
	return digest, err
}

// of returns those of the n chunks of a file.
func (s *sums) of(first, n int) (digests [][sha256.Size]byte, err error) {
	for i := range n {
		digest, err := s.get(first + i)
		if err != nil {
			return nil, err
		}
		digests = append(digests, digest)
	}
	return digests, nil
}

func (s *sums) close() error {
	if s == nil || s.file == nil {
		return nil
	}
	return s.file.Close()
}

// numbers says which of all chunks are those of a file. Only files of several
// chunks are held.
type numbers struct {
	large []extra
	files int
}

// extra is how many chunks there are beside the first ones, up to and with a file.
type extra struct{ file, chunks int }

func numbersOf(l *Listing) (n numbers, err error) {
	n.files = l.Count()
	sum := 0
	err = l.files.each(func(i int, f *File) error {
		if more := f.chunks() - 1; more > 0 {
			sum += more
			n.large = append(n.large, extra{i, sum})
		}
		return nil
	})
	return n, err
}

// first is the number of a file's first chunk; with the number of files, that of
// all chunks.
func (n *numbers) first(file int) int {
	before := sort.Search(len(n.large), func(i int) bool { return n.large[i].file >= file })
	if before == 0 {
		return file
	}
	return file + n.large[before-1].chunks
}
