package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

// View is the history at one moment.
type View struct {
	store    *Store
	segments []segment
	loose    []history.Loose
	// Gaps are what is missing, Removed is the index up to which nothing is kept any more.
	Gaps    []Span
	Removed uint64
	// Through is the index up to which there are rows.
	Through uint64
}

// View returns the history as it is now.
func (s *Store) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &View{store: s, segments: slices.Clone(s.mu.segments), Removed: s.mu.removed}
	for _, p := range s.mu.parts {
		v.loose = append(v.loose, slices.Clip(p.rows))
	}
	v.Gaps = s.gapsLocked()
	v.Through = s.mu.parts[len(s.mu.parts)-1].through
	return v
}

// Gaps lists the indexes of the log whose rows this server does not have and another one
// might.
func (s *Store) Gaps() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gapsLocked()
}

func (s *Store) gapsLocked() []Span {
	var gaps []Span
	at := s.mu.removed
	cover := func(after, through uint64) {
		if after > at {
			gaps = append(gaps, Span{at, after})
		}
		at = max(at, through)
	}
	for _, g := range s.mu.segments {
		cover(g.after, g.through)
	}
	for _, p := range s.mu.parts {
		cover(p.after, p.through)
	}
	return gaps
}

// Rows is how many rows there are, and how many bytes those have that are in segments.
func (v *View) Rows() (rows int, size int64) {
	for _, g := range v.segments {
		rows, size = rows+g.rows, size+g.size
	}
	for _, l := range v.loose {
		rows += len(l)
	}
	return rows, size
}

// Since is the start of the oldest row; 0: there are none.
func (v *View) Since() structs.UnixNano {
	since := structs.UnixNano(0)
	earlier := func(begin structs.UnixNano) {
		if begin != 0 && (since == 0 || begin < since) {
			since = begin
		}
	}
	for _, g := range v.segments {
		earlier(g.begin)
	}
	for _, l := range v.loose {
		for i := range l {
			earlier(l[i].Start)
		}
	}
	return since
}

// Each calls fn with the parts of the history, in the order of the log, that have rows which
// ended behind begin and started before end; 0 for any. A segment that turns out to be
// damaged is set aside, and left out.
func (v *View) Each(ctx context.Context, begin, end structs.UnixNano, fn func(history.Columns) error) error {
	for _, g := range v.segments {
		if err := ctx.Err(); err != nil {
			return err
		}
		if g.rows == 0 || g.end <= begin || end != 0 && g.begin >= end {
			continue
		}
		if err := v.store.read(g, fn); err != nil {
			return err
		}
	}
	for _, l := range v.loose {
		if len(l) == 0 {
			continue
		}
		if err := fn(l); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) read(g segment, fn func(history.Columns) error) error {
	in, err := s.disk.open(filepath.Join(s.config.Dir, g.name()), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) && !s.has(g) {
		return nil // it was removed meanwhile
	}
	if err != nil {
		return err
	}
	defer in.Close()
	found, err := history.Open(in)
	if err == nil {
		err = fn(found)
	}
	if errors.Is(err, history.ErrDamaged) {
		return s.lose(g, err)
	}
	return err
}

func (s *Store) has(g segment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.mu.segments, g)
}

// lose sets a damaged segment aside.
func (s *Store) lose(g segment, why error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.has(g) {
		return nil
	}
	if err := s.setAside(g, why); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.segments = slices.DeleteFunc(slices.Clone(s.mu.segments), func(one segment) bool { return one == g })
	return nil
}
