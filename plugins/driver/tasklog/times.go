//go:build linux

package tasklog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
)

// When bytes were written stands beside each segment, in a file of records: the
// offset of a byte in the segment, and the time at which it came. Bytes between
// two records came with the first of them, or up to timesEvery later.
const (
	timesPrefix = ".at-" // stdout.at-0 beside stdout.0
	timeRecord  = 16     // bytes: offset and Unix nanoseconds, little endian
	timesEvery  = 20 * time.Millisecond
	timesLate   = 2 * time.Millisecond // behind its bytes, at most and usually
	timesMax    = 1 << 16              // records of one segment; each half of it doubles what lies between two
	noTime      = "-"
)

func timesName(stream string, number int64) string {
	return stream + timesPrefix + strconv.FormatInt(number, 10)
}

// clock writes the times of the segment that a Writer is at. What it cannot
// write is left out: times are a help, and output goes before them.
type clock struct {
	file  *os.File
	size  int64
	last  time.Time
	fails bool
}

// note reports that the byte at offset of the present segment comes now.
func (w *Writer) note(offset int64) {
	c := &w.clock
	now := time.Now()
	if c.fails || now.Sub(c.last) < c.every() {
		return
	}
	if c.file == nil {
		file, err := openTimes(w.dir, w.stream, w.number, syscall.O_WRONLY|syscall.O_CREAT)
		if err != nil {
			c.fails = true
			return
		}
		size, err := file.Seek(0, 2)
		if err != nil {
			file.Close()
			c.fails = true
			return
		}
		c.file, c.size = file, size-size%timeRecord // the rest of one that was broken off is written over
	}
	var record [timeRecord]byte
	binary.LittleEndian.PutUint64(record[:], uint64(offset))
	binary.LittleEndian.PutUint64(record[8:], uint64(now.UnixNano()))
	if _, err := c.file.WriteAt(record[:], c.size); err != nil {
		return // no room: a later one may have it
	}
	c.size += timeRecord
	c.last = now
}

// every is how much time lies between two records at least.
func (c *clock) every() time.Duration {
	every := timesEvery
	for left := c.size / timeRecord; left >= timesMax/2 && every < time.Hour; left -= timesMax / 16 {
		every *= 2
	}
	return every
}

// leave closes the times of a segment that is full.
func (c *clock) leave() {
	if c.file != nil {
		c.file.Close()
	}
	*c = clock{}
}

func openTimes(dir *os.File, stream string, number int64, flags int) (*os.File, error) {
	name := timesName(stream, number)
	flags |= syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	fd, err := retry(func() (int, error) { return syscall.Openat(int(dir.Fd()), name, flags, 0o600) })
	if err != nil {
		return nil, &os.PathError{Op: "open times", Path: name, Err: err}
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFREG || stat.Nlink > 1 {
		syscall.Close(fd)
		return nil, &os.PathError{Op: "open times", Path: name, Err: errors.Join(err, ErrRefused)}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Mark is when the byte at Offset of a stream came, and those behind it up to
// the next mark.
type Mark struct {
	Offset int64
	At     time.Time
}

// times reads the records of one segment, more of them as they come.
type times struct {
	file  *os.File
	marks []Mark
	read  int64
}

// marksUpTo returns the marks of the present segment that say something of the
// bytes from r.offset to end, of which the first may lie before r.offset.
func (r *reader) marksUpTo(end int64) []Mark {
	start := r.offset - r.within
	if r.times.file == nil {
		file, err := openTimes(r.dir, r.request.Stream, r.number, syscall.O_RDONLY)
		if err != nil {
			return nil
		}
		r.times = times{file: file}
	}
	buffer := make([]byte, 4096)
	for {
		n, err := r.times.file.ReadAt(buffer, r.times.read)
		n -= n % timeRecord
		for at := 0; at < n; at += timeRecord {
			offset := int64(binary.LittleEndian.Uint64(buffer[at:]))
			r.times.marks = append(r.times.marks, Mark{Offset: start + offset, At: time.Unix(0, int64(binary.LittleEndian.Uint64(buffer[at+8:])))})
		}
		r.times.read += int64(n)
		if err != nil || n == 0 || len(r.times.marks) > 2*timesMax {
			break
		}
	}
	from := 0
	for from+1 < len(r.times.marks) && r.times.marks[from+1].Offset <= r.offset {
		from++
	}
	r.times.marks = r.times.marks[from:]
	to := 0
	for to < len(r.times.marks) && r.times.marks[to].Offset < end {
		to++
	}
	return r.times.marks[:to]
}

// Stamper puts the time before every line: "2026-11-23T09:30:05.120Z step 1", or
// "- step 1" where it is not known, as of logs of older versions.
type Stamper struct {
	within bool // of a line
}

// Stamp returns the bytes of a chunk with times.
func (s *Stamper) Stamp(chunk Chunk) []byte {
	var out []byte
	data, offset, marks := chunk.Data, chunk.Offset, chunk.Marks
	for len(data) > 0 {
		if !s.within {
			for len(marks) > 1 && marks[1].Offset <= offset {
				marks = marks[1:]
			}
			if len(marks) > 0 && marks[0].Offset <= offset {
				out = marks[0].At.UTC().AppendFormat(out, TimeLayout)
			} else {
				out = append(out, noTime...)
			}
			out = append(out, ' ')
		}
		line := data
		if at := bytes.IndexByte(data, '\n'); at >= 0 {
			line = data[:at+1]
		}
		s.within = line[len(line)-1] != '\n'
		out = append(out, line...)
		data, offset = data[len(line):], offset+int64(len(line))
	}
	return out
}
