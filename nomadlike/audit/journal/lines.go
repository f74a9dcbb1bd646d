package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"nomadlike/nomadlike/audit"
)

const blockSize = 256 << 10 // bytes that are read at a time, backward

// forward goes over the lines of a file, each with its newline. A line is good
// until the next one. Bytes without a newline at the end are left out: they are
// being written.
func forward(in io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		reader := bufio.NewReaderSize(in, 2*audit.LineMax)
		for {
			line, err := reader.ReadSlice('\n')
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, fmt.Errorf("read audit record: %w", err))
				return
			case !yield(line, nil):
				return
			}
		}
	}
}

// backward goes over the lines of a file that end before a place, the last one
// first, without their newlines. Lines that are longer than any may be come in
// pieces.
func backward(in io.ReaderAt, end int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var rest []byte // the end of a line whose beginning was not read yet
		for at := end; at > 0; {
			size := min(at, blockSize)
			at -= size
			block := make([]byte, size, size+int64(len(rest)))
			if _, err := in.ReadAt(block, at); err != nil {
				yield(nil, fmt.Errorf("read audit record: %w", err))
				return
			}
			block = append(block, rest...)
			lines := bytes.Split(block, []byte{'\n'})
			rest = lines[0]
			if len(rest) > audit.LineMax {
				rest = rest[:audit.LineMax] // no line: what is kept of it stays bounded
			}
			for _, line := range slices.Backward(lines[1:]) {
				if len(line) > 0 && !yield(line, nil) {
					return
				}
			}
		}
		if len(rest) > 0 {
			yield(rest, nil)
		}
	}
}
