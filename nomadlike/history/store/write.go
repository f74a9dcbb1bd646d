package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

// Sync has everything that was added reach the disk. The log calls it before it forgets
// entries: what fails here must keep it from that.
func (s *Store) Sync() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	err := s.write()
	s.mu.Lock()
	failed := s.mu.failed
	s.mu.failed = err != nil
	s.mu.Unlock()
	if err != nil && !failed {
		s.config.Log.Error("the history is not written: its rows wait in memory, and the log keeps their entries", logkey.Error, err)
	}
	return err
}

func (s *Store) first() *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.parts[0]
}

// write brings the parts to the disk, oldest first; all but the last become segments.
func (s *Store) write() error {
	for {
		s.mu.Lock()
		p, more := s.mu.parts[0], len(s.mu.parts) > 1
		rows, through := p.rows[p.written:], p.through
		s.mu.Unlock()
		if err := s.extend(p, rows, through); err != nil {
			return err
		}
		if more {
			if err := s.seal(p, true); err != nil {
				return err
			}
			continue
		}
		if p.written < s.most && !newMonth(p.rows[:p.written]) {
			return nil
		}
		return s.seal(p, false)
	}
}

// newMonth reports whether rows began to end in another month than the last one did.
func newMonth(rows []structs.HistoryRow) bool {
	if len(rows) == 0 {
		return false
	}
	first, last := rows[0].End.Time(), rows[len(rows)-1].End.Time()
	return first.Year() != last.Year() || first.Month() != last.Month()
}

// extend writes rows of a part, and up to where they are all. After a write that failed
// nobody knows what of the file is on the disk: then the whole of it is written anew, beside
// what there is.
func (s *Store) extend(p *part, rows []structs.HistoryRow, through uint64) error {
	if len(rows) == 0 && through == p.synced && !p.stale {
		return nil
	}
	path := filepath.Join(s.config.Dir, tailName(p.after))
	if p.stale {
		rows = p.rows[:p.written+len(rows)]
	}
	data, err := appendFrames(nil, through, rows)
	if err != nil {
		return fmt.Errorf("encode history: %w", err)
	}
	if p.out == nil {
		err = s.begin(p, path, data)
	} else {
		if _, err = p.out.Write(data); err == nil {
			err = p.out.Sync()
		}
		if err != nil {
			err = errors.Join(err, p.out.Close())
			p.out, p.stale = nil, true
		}
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	s.mu.Lock()
	if p.stale {
		p.written, p.stale = len(rows), false
	} else {
		p.written += len(rows)
	}
	p.synced = through
	s.mu.Unlock()
	return nil
}

// begin makes the file of a part with its first frames, and opens it to write on.
func (s *Store) begin(p *part, path string, data []byte) error {
	if err := s.disk.write(path, data); err != nil {
		return err
	}
	out, err := s.disk.open(path, os.O_RDWR)
	if err != nil {
		return err
	}
	if _, err := out.Seek(int64(len(data)), io.SeekStart); err != nil {
		return errors.Join(err, out.Close())
	}
	p.out = out
	return nil
}

// seal makes segments of what is on the disk of the first part. whole: nothing more comes
// to it, and it goes.
func (s *Store) seal(p *part, whole bool) error {
	rows, through := p.rows[:p.written], p.synced
	var made []segment
	after := p.after
	for after < through {
		n := cutRows(rows, s.most)
		if at := monthEnd(rows[:n]); at > 0 {
			n = at
		}
		until := through
		if n < len(rows) {
			until = rows[n-1].Index
		}
		found, err := s.makeSegment(after, until, rows[:n])
		if err != nil {
			return err
		}
		made = append(made, found)
		after, rows = until, rows[n:]
	}
	path := filepath.Join(s.config.Dir, tailName(p.after))
	s.mu.Lock()
	s.mu.segments = append(s.mu.segments, made...)
	slices.SortFunc(s.mu.segments, bySpan)
	rest := slices.Clone(p.rows[p.written:])
	if whole {
		s.mu.parts = s.mu.parts[1:]
	} else {
		next := &part{after: through, through: p.through, synced: through, rows: rest}
		s.mu.parts[0] = next
	}
	s.mu.Unlock()
	if p.out != nil {
		if err := errors.Join(p.out.Close(), s.disk.remove(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.config.Log.Warn("a tail of the history that is in segments was not removed", logkey.Error, err)
		}
	}
	return nil
}

// monthEnd is the number of rows up to the first that ended in another month, at the end of
// an entry; 0: all did in the same.
func monthEnd(rows []structs.HistoryRow) int {
	for i := 1; i < len(rows); i++ {
		if newMonth(rows[:i+1]) && rows[i].Index != rows[i-1].Index {
			return i
		}
	}
	return 0
}

func (s *Store) makeSegment(after, through uint64, rows []structs.HistoryRow) (segment, error) {
	data, err := history.Encode(after, through, rows)
	if err != nil {
		return segment{}, err
	}
	found := segment{after: after, through: through, size: int64(len(data)), rows: len(rows)}
	for i := range rows {
		if found.begin == 0 || rows[i].Start < found.begin {
			found.begin = rows[i].Start
		}
		found.end = max(found.end, rows[i].End)
	}
	if err := s.disk.write(filepath.Join(s.config.Dir, found.name()), data); err != nil {
		return segment{}, fmt.Errorf("write segment of history: %w", err)
	}
	return found, nil
}

// Expire removes segments that are older than what is kept, or that there is no room for.
func (s *Store) Expire() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	segments := slices.Clone(s.mu.segments)
	s.mu.Unlock()
	size := int64(0)
	for _, g := range segments {
		size += g.size
	}
	oldest := structs.At(s.config.Now().Add(-s.config.Keep))
	n := 0
	for n < len(segments) && (segments[n].end < oldest || size > s.config.SizeMax) {
		size -= segments[n].size
		n++
	}
	if n == 0 {
		return nil
	}
	until := segments[n-1].through
	if err := s.disk.write(filepath.Join(s.config.Dir, removedName), []byte(strconv.FormatUint(until, 10)+"\n")); err != nil {
		return fmt.Errorf("remove history: %w", err)
	}
	s.mu.Lock()
	s.mu.segments = slices.Clone(s.mu.segments[n:])
	s.mu.removed = until
	s.mu.Unlock()
	var failed error
	for _, g := range segments[:n] {
		if err := s.disk.remove(filepath.Join(s.config.Dir, g.name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("remove history: %w", err))
		}
	}
	s.config.Log.Info("old rows of the history were removed", "segments", n, "until", segments[n-1].end.Time().Format(time.DateOnly))
	return failed
}

func (s *Store) readRemoved() error {
	in, err := s.disk.open(filepath.Join(s.config.Dir, removedName), os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	if n := len(data); n > 0 && data[n-1] == '\n' {
		data = data[:n-1]
	}
	if s.mu.removed, err = strconv.ParseUint(string(data), 10, 64); err != nil {
		return fmt.Errorf("open history: file %s: %w", removedName, err)
	}
	return nil
}
