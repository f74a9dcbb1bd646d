//go:build linux

package tasklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Bounds of reading.
const (
	ChunkBytesMax    = 128 << 10 // of one Chunk
	TailLinesBytes   = 16 << 20  // how far back TailLines looks
	followPollFirst  = 20 * time.Millisecond
	followPollSlow   = 200 * time.Millisecond
	followPollFactor = 2
)

// Request says which part of a stream to read.
type Request struct {
	Dir    string
	Stream string // Stdout or Stderr

	// Top is a directory above Dir: no link between the two is followed. "":
	// Dir's last element only is no link.
	Top string

	// Offset is the first byte wanted, counted from the start of the stream
	// (0: all that is kept). TailBytes or TailLines, when positive, replace
	// it: begin that far before the present end.
	Offset    int64
	TailBytes int64
	TailLines int

	// Limit ends the reading after that many bytes; 0 means no limit.
	Limit int64

	// Follow goes on at the end of the stream, until ctx is cancelled or
	// Ended is closed and all that was written before has been read. A nil
	// Ended never ends.
	Follow bool
	Ended  <-chan struct{}

	// Times has chunks say when their bytes came.
	Times bool
}

// Chunk is a run of bytes of a stream.
type Chunk struct {
	Offset int64  // of the first byte, from the start of the stream
	Lost   int64  // bytes directly before Offset that rotation has taken away
	Data   []byte // at most ChunkBytesMax; valid until emit returns
	Marks  []Mark // with Times: the last one not behind Offset, and those within Data; valid until emit returns
}

// Read passes the asked part of a stream to emit, in order, and returns when
// it is done, when emit returns an error (which is handed on), or when ctx is
// cancelled (ctx's error). A stream without any file is empty, and one whose
// directory does not exist is an error that satisfies errors.Is(os.ErrNotExist).
func Read(ctx context.Context, request Request, emit func(Chunk) error) error {
	if !validStream(request.Stream) {
		return fmt.Errorf("read log: no stream named %q", request.Stream)
	}
	dir, err := openDir(request.Top, request.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	r := &reader{request: request, dir: dir, emit: emit, left: request.Limit}
	defer r.close()
	if err := r.seek(); err != nil {
		return err
	}
	return r.run(ctx)
}

// reader is the position of one Read.
type reader struct {
	request Request
	dir     *os.File
	emit    func(Chunk) error
	left    int64   // of Limit
	buffer  *[]byte // of buffers; nil while the reader waits

	file   *os.File // segment number, nil when none is open
	number int64
	offset int64 // of the next byte, in the stream
	within int64 // of the next byte, in the segment
	lost   int64 // to be told with the next chunk
	times  times // of the segment
}

// buffers are shared by the readers that read: those that wait have none.
var buffers = sync.Pool{New: func() any {
	buffer := make([]byte, ChunkBytesMax)
	return &buffer
}}

// errDone ends run when the limit is reached.
var errDone = errors.New("limit reached")

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
	if r.times.file != nil {
		r.times.file.Close()
	}
	r.times = times{}
}

// layout returns the segments and, for each, the stream offset of its start.
func (r *reader) layout() ([]segment, []int64, error) {
	segments, size, err := listSegments(r.dir, r.request.Stream)
	if err != nil || len(segments) == 0 {
		return nil, nil, err
	}
	// All but the newest are equally long. A lone file is the first one,
	// unless somebody removed others by hand; then its own size has to do. So it
	// is with logs of older versions, which tell no size.
	if size == 0 {
		size = segments[0].size
	}
	for _, s := range segments {
		size = max(size, s.size)
	}
	starts := make([]int64, len(segments))
	for i, s := range segments {
		if s.number > 0 && size > (1<<62)/s.number {
			return nil, nil, fmt.Errorf("read log %s: %w: impossible number", segmentName(r.request.Stream, s.number), ErrRefused)
		}
		starts[i] = s.number * size
	}
	return segments, starts, nil
}

// seek opens the segment that holds the first byte wanted.
func (r *reader) seek() error {
	segments, starts, err := r.layout()
	if err != nil || len(segments) == 0 {
		r.offset = 0
		return err
	}
	newest := len(segments) - 1
	end := starts[newest] + segments[newest].size
	want := max(r.request.Offset, 0)
	switch {
	case r.request.TailBytes > 0:
		want = max(end-r.request.TailBytes, starts[0])
	case r.request.TailLines > 0:
		if want, err = r.tailLines(segments, starts, end); err != nil {
			return err
		}
	}
	want = min(want, end) // a reader ahead of the stream gets what comes next
	if want < starts[0] {
		r.lost = starts[0] - want
		want = starts[0]
	}
	index := newest
	for index > 0 && starts[index] > want {
		index--
	}
	if within := want - starts[index]; within <= segments[index].size {
		return r.enter(segments[index].number, want, within)
	}
	// A gap in the middle, made by hand: go on behind it.
	r.lost += starts[index+1] - want
	return r.enter(segments[index+1].number, starts[index+1], 0)
}

// enter makes a segment the present one.
func (r *reader) enter(number, offset, within int64) error {
	file, _, err := openSegment(r.dir, r.request.Stream, number, syscall.O_RDONLY)
	if err != nil {
		return err
	}
	r.close()
	r.file, r.number, r.offset, r.within = file, number, offset, within
	return nil
}

// run emits chunks until the end of what was asked for.
func (r *reader) run(ctx context.Context) error {
	poll := followPollFirst
	ending := false
	for {
		r.buffer = buffers.Get().(*[]byte)
		progress, err := r.drain(ctx)
		buffers.Put(r.buffer)
		r.buffer = nil
		switch {
		case errors.Is(err, errDone):
			return nil
		case err != nil:
			return err
		case !r.request.Follow || ending:
			return nil
		}
		if progress {
			poll = followPollFirst
		}
		timer := time.NewTimer(poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-r.request.Ended:
			timer.Stop()
			ending = true // once more: what was written before the end
		case <-timer.C:
			poll = min(poll*followPollFactor, followPollSlow)
		}
	}
}

// drain reads up to the present end of the stream.
func (r *reader) drain(ctx context.Context) (progress bool, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return progress, err
		}
		if r.file == nil {
			if err := r.seekFirst(); err != nil || r.file == nil {
				return progress, err
			}
		}
		n, err := r.readSome()
		if err != nil {
			return progress, err
		}
		if n > 0 {
			progress = true
			continue
		}
		moved, err := r.next()
		if err != nil || !moved {
			return progress, err
		}
	}
}

// seekFirst enters a stream that had no file when reading began.
func (r *reader) seekFirst() error {
	segments, starts, err := r.layout()
	if err != nil || len(segments) == 0 {
		return err
	}
	r.lost += starts[0] - r.offset
	return r.enter(segments[0].number, starts[0], 0)
}

// readSome emits one chunk of the present segment; 0 bytes mean its end.
func (r *reader) readSome() (int, error) {
	buffer := *r.buffer
	if r.request.Limit > 0 {
		if r.left <= 0 {
			return 0, errDone
		}
		buffer = buffer[:min(int64(len(buffer)), r.left)]
	}
	n, err := r.file.ReadAt(buffer, r.within)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read log: %w", err)
	}
	if n == 0 {
		return 0, nil
	}
	chunk := Chunk{Offset: r.offset, Lost: r.lost, Data: buffer[:n]}
	if r.request.Times {
		chunk.Marks = r.marksUpTo(r.offset + int64(n))
		if last := len(chunk.Marks) - 1; r.request.Follow && (last < 0 || chunk.Marks[last].Offset < r.offset) {
			time.Sleep(timesLate) // the writer may be between the bytes and their time
			chunk.Marks = r.marksUpTo(r.offset + int64(n))
		}
	}
	r.lost = 0
	r.offset += int64(n)
	r.within += int64(n)
	r.left -= int64(n)
	return n, r.emit(chunk)
}

// next goes on with the next segment that there is: then the present one is
// complete, or its machine lost power and with it the end. What is lost before
// the next one, to that or to rotation, is counted.
func (r *reader) next() (moved bool, err error) {
	segments, starts, err := r.layout()
	if err != nil {
		return false, err
	}
	for i, s := range segments {
		if s.number <= r.number {
			continue
		}
		// It may have come, and filled the present one before, since that was
		// last read; an open file keeps its bytes even when it is removed.
		if n, err := r.readSome(); err != nil || n > 0 {
			return n > 0, err
		}
		lost := max(starts[i]-r.offset, 0)
		offset := r.offset + lost
		if err := r.enter(s.number, offset, 0); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			return false, err
		}
		r.lost += lost
		return true, nil
	}
	return false, nil
}

// tailLines finds where the last TailLines lines begin, looking back over at
// most TailLinesBytes.
func (r *reader) tailLines(segments []segment, starts []int64, end int64) (int64, error) {
	newlines := 0
	block := make([]byte, ChunkBytesMax)
	for i := len(segments) - 1; i >= 0; i-- {
		file, size, err := openSegment(r.dir, r.request.Stream, segments[i].number, syscall.O_RDONLY)
		if errors.Is(err, os.ErrNotExist) {
			return starts[min(i+1, len(starts)-1)], nil
		}
		if err != nil {
			return 0, err
		}
		at, found, err := r.countBack(file, min(size, segments[i].size), starts[i], end, block, &newlines)
		file.Close()
		if err != nil || found {
			return at, err
		}
		if end-starts[i] > TailLinesBytes {
			return end - TailLinesBytes, nil
		}
	}
	return starts[0], nil
}

// countBack counts newlines of one segment from its end and returns the offset
// behind the one that precedes the wanted lines.
func (r *reader) countBack(file *os.File, size, start, end int64, block []byte, newlines *int) (int64, bool, error) {
	for size > 0 {
		from := max(size-int64(len(block)), 0)
		part := block[:size-from]
		if _, err := file.ReadAt(part, from); err != nil && !errors.Is(err, io.EOF) {
			return 0, false, fmt.Errorf("read log: %w", err)
		}
		for at := bytes.LastIndexByte(part, '\n'); at >= 0; at = bytes.LastIndexByte(part[:at], '\n') {
			position := start + from + int64(at)
			if position == end-1 {
				continue // the newline that ends the last line
			}
			*newlines++
			if *newlines == r.request.TailLines {
				return position + 1, true, nil
			}
		}
		size = from
	}
	return 0, false, nil
}
