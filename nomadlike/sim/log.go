package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"nomadlike/plugins/driver/tasklog"
)

// This file plays the logs of ranks, in a true file system, by the production writer
// and reader of log files: ranks write, files rotate, supervisors come back,
// machines lose power and with it what their kernel had not written yet. People
// follow the logs over connections that break, and compare.

// What ranks write, and how it is kept.
const (
	logFiles   = 3
	logBytes   = 512 // of a file
	logPiece   = 200 // bytes that a rank writes at a time, at most
	tailsEvery = 4   // of so many readings one looks at the end only
)

// errBroken ends a reading whose connection breaks.
var errBroken = errors.New("the connection breaks")

// stream is the log of one rank.
type stream struct {
	m      *machine
	alloc  string
	dir    string
	handle *os.File
	writer *tasklog.Writer // nil: nobody writes any more
	truth  []byte          // all that the rank has written
	torn   bool            // the machine lost power while it was written
	swept  bool
}

// chanceOf and between draw for logs: their numbers are drawn apart, so that a
// seed stays the history that it is without them.
func (w *Cluster) chanceOf(p float64) bool { return w.dice.Float64() < p }

func (w *Cluster) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.dice.Int64N(int64(high-low)+1))
}

// openLog begins the log of a rank that starts.
func (m *machine) openLog(id string, p *process) {
	w := m.w
	s := &stream{m: m, alloc: id, dir: filepath.Join(w.disk, fmt.Sprintf("%s-%d", m.id, len(w.streams)))}
	w.streams = append(w.streams, s)
	m.streams[id] = s
	if s.open(); s.writer == nil {
		return
	}
	w.after(w.between(time.Millisecond, time.Second), func() { s.goOn(p) })
	w.after(w.between(time.Millisecond, 3*time.Second), func() { s.follow(0) })
}

// open opens the writer, as a supervisor does when it begins and when it
// comes back.
func (s *stream) open() {
	files := logFiles
	if s.m.w.config.Break == PlantGreedyRotation {
		files--
	}
	handle, fresh, err := tasklog.PrepareDir(s.dir)
	if err == nil {
		s.handle = handle
		s.writer, err = tasklog.NewWriter(handle, fresh, tasklog.Stdout, files, logBytes)
	}
	if err != nil {
		s.m.w.fail("open log of %s: %v", s.alloc, err)
	}
}

// close ends the writing.
func (s *stream) close() {
	if s.writer != nil {
		_, _ = s.writer.Close(), s.handle.Close() // nothing is buffered in them
		s.writer = nil
	}
}

// goOn lets a rank write for as long as it runs. Its supervisor comes back now
// and then.
func (s *stream) goOn(p *process) {
	w := s.m.w
	if s.m.processes[s.alloc] != p || s.writer == nil {
		return
	}
	if !w.config.Calm && !w.healed && w.chanceOf(0.05) {
		s.close()
		if w.config.Break == PlantRewrittenLog {
			newest := (len(s.truth) - 1) / logBytes
			_ = os.Truncate(filepath.Join(s.dir, fmt.Sprintf("%s.%d", tasklog.Stdout, newest)), 0) // perhaps there is none yet
		}
		s.open()
	}
	s.write()
	w.after(w.between(50*time.Millisecond, 2*time.Second), func() { s.goOn(p) })
}

func (s *stream) write() {
	if s.writer == nil {
		return
	}
	piece := make([]byte, 1+s.m.w.dice.IntN(logPiece))
	for i := range piece {
		piece[i] = byte('a' + s.m.w.dice.IntN(26))
		if s.m.w.dice.IntN(20) == 0 {
			piece[i] = '\n'
		}
	}
	s.truth = append(s.truth, piece...)
	_, _ = s.writer.Write(piece) // says that all was written, always
}

// tear is what a loss of power leaves of a log that is being written: of each
// file some of what the kernel had not written to the disk yet is gone.
func (s *stream) tear() {
	if s.writer == nil {
		return
	}
	s.close()
	s.torn = true
	files, err := filepath.Glob(filepath.Join(s.dir, tasklog.Stdout+".*[0-9]"))
	if err != nil {
		s.m.w.fail("list logs: %v", err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err == nil && info.Size() > 0 && s.m.w.chanceOf(0.5) {
			err = os.Truncate(file, s.m.w.dice.Int64N(info.Size()))
		}
		if err != nil {
			s.m.w.fail("tear log: %v", err)
		}
	}
}

// sweep takes the log away with everything else of its allocation.
func (s *stream) sweep() {
	s.close()
	s.swept = true
	if err := os.RemoveAll(s.dir); err != nil {
		s.m.w.fail("sweep log: %v", err)
	}
}

// follow reads what is new from next on, again and again until all was read of
// a log that is not written any more.
func (s *stream) follow(next int64) {
	w := s.m.w
	if s.swept {
		return
	}
	over := s.writer == nil
	if !s.m.reachable() {
		w.after(w.between(time.Second, 5*time.Second), func() { s.follow(next) })
		return
	}
	if w.dice.IntN(tailsEvery) == 0 {
		s.tail()
	}
	next, err := s.read(next, w.chanceOf(0.3) && !w.healed)
	if err == nil && over {
		return
	}
	w.after(w.between(100*time.Millisecond, 3*time.Second), func() { s.follow(next) })
}

// read reads from an offset, over a connection that may break after any byte,
// and returns the offset from which to go on. Ranks write meanwhile.
func (s *stream) read(next int64, breaks bool) (int64, error) {
	w := s.m.w
	left := len(s.truth) + 1
	if breaks {
		left = w.dice.IntN(2 * logBytes)
	}
	err := tasklog.Read(context.Background(), tasklog.Request{Dir: s.dir, Stream: tasklog.Stdout, Offset: next}, func(c tasklog.Chunk) error {
		s.plant(&c)
		s.checkChunk(&c)
		if c.Offset-c.Lost != next {
			w.fail("I23: %s: a reader has %d bytes, the next is number %d and %d are said to be lost", s.alloc, next, c.Offset, c.Lost)
		}
		taken := min(len(c.Data), left)
		left -= taken
		next = c.Offset + int64(taken)
		if w.chanceOf(0.1) {
			s.write()
		}
		if taken < len(c.Data) {
			return errBroken
		}
		return nil
	})
	if err != nil && !errors.Is(err, errBroken) && !errors.Is(err, fs.ErrNotExist) {
		w.fail("I23: %s cannot be read: %v", s.alloc, err)
	}
	return next, err
}

// tail looks at the end of the log.
func (s *stream) tail() {
	request := tasklog.Request{Dir: s.dir, Stream: tasklog.Stdout, TailBytes: 1 + s.m.w.dice.Int64N(3*logBytes)}
	if s.m.w.chanceOf(0.5) {
		request.TailBytes, request.TailLines = 0, 1+s.m.w.dice.IntN(40)
	}
	err := tasklog.Read(context.Background(), request, func(c tasklog.Chunk) error {
		s.plant(&c)
		s.checkChunk(&c)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.m.w.fail("I23: the end of %s cannot be read: %v", s.alloc, err)
	}
}

// plant is a planted defect: a node counts from the oldest byte that it has.
func (s *stream) plant(c *tasklog.Chunk) {
	if s.m.w.config.Break == PlantShiftedLog {
		c.Offset, c.Lost = max(c.Offset-s.kept(), 0), 0
	}
}

// kept is the oldest byte that the policy of rotation keeps.
func (s *stream) kept() int64 {
	newest := max(int64(len(s.truth))-1, 0) / logBytes
	return max(newest-(logFiles-1), 0) * logBytes
}

// checkChunk is I23: what a reader is given is what was written there, and
// nothing is lost that the policy keeps, but by a loss of power.
func (s *stream) checkChunk(c *tasklog.Chunk) {
	w, end := s.m.w, c.Offset+int64(len(c.Data))
	switch {
	case c.Offset < 0 || end > int64(len(s.truth)):
		w.fail("I23: %s: bytes %d to %d are read of %d", s.alloc, c.Offset, end, len(s.truth))
	case !bytes.Equal(c.Data, s.truth[c.Offset:end]):
		w.fail("I23: %s: bytes %d to %d are not what was written there", s.alloc, c.Offset, end)
	case c.Lost > 0 && !s.torn && c.Offset > s.kept():
		w.fail("I23: %s: bytes before %d are lost, and those from %d on are to be kept", s.alloc, c.Offset, s.kept())
	}
}

// checkLogs is I23 for logs at rest: all that is to be kept can be read.
func (w *Cluster) checkLogs() {
	for _, s := range w.streams {
		if s.swept || s.torn || len(w.outcome.Problems) >= problemsMax {
			continue
		}
		s.close()
		if next, err := s.read(s.kept(), false); err != nil || next != int64(len(s.truth)) {
			w.fail("I23: %s can be read to %d of %d: %v", s.alloc, next, len(s.truth), err)
		}
	}
}
