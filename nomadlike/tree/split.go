package tree

import (
	"errors"
	"io"

	"github.com/restic/chunker"
)

// wholeMax is the size up to which a file is one chunk: code is, and is sent anew when
// it changes. Larger files are cut where their content says so, so that what was
// inserted or changed in the middle leaves the other chunks as they were.
const wholeMax = 1 << 20 // bytes

// polynomial is where files are cut. Another one would send everything anew.
const polynomial = chunker.Pol(0x3DA3358B4DC173)

// cutter cuts files into chunks. It keeps its memory from file to file.
type cutter struct {
	cdc    *chunker.Chunker
	buffer []byte
}

func newCutter() *cutter { return &cutter{buffer: make([]byte, wholeMax+1)} }

// each calls next for each chunk of a file of that size; the bytes are good until it
// returns.
func (c *cutter) each(file io.Reader, size int64, next func(data []byte) error) error {
	if size <= wholeMax {
		n, err := io.ReadFull(file, c.buffer[:size+1])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if n == 0 {
			return nil
		}
		return next(c.buffer[:n])
	}
	if c.cdc == nil {
		c.cdc = chunker.NewWithBoundaries(file, polynomial, chunker.MinSize, ChunkSizeMax)
	} else {
		c.cdc.ResetWithBoundaries(file, polynomial, chunker.MinSize, ChunkSizeMax)
	}
	if len(c.buffer) < ChunkSizeMax {
		c.buffer = make([]byte, ChunkSizeMax)
	}
	for {
		chunk, err := c.cdc.Next(c.buffer)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := next(chunk.Data); err != nil {
			return err
		}
	}
}

// Cutter finds the chunks of single files, where Scan finds those of a directory. It is
// for one goroutine at a time.
type Cutter struct{ cut *cutter }

// NewCutter returns a cutter, which keeps its memory from file to file.
func NewCutter() *Cutter { return &Cutter{newCutter()} }

// Chunks returns the chunks of a file that is said to have a size. each is called with
// the bytes of one chunk after the other, which are good until it returns.
func (c *Cutter) Chunks(file io.Reader, size int64, each func(data []byte) error) (chunks []Chunk, err error) {
	err = c.cut.each(file, size, func(data []byte) error {
		chunks = append(chunks, Chunk{Digest: DigestOf(data), Size: int64(len(data))})
		return each(data)
	})
	return chunks, err
}
