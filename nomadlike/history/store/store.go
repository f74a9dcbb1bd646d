package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

const (
	tailSuffix    = ".tail"
	segmentSuffix = ".seg"
	damagedSuffix = ".damaged"
	tempSuffix    = ".tmp"
	removedName   = "removed"

	writeAfter  = 100 * time.Millisecond // what is added within it reaches the disk together
	retryAfter  = 2 * time.Second        // a write that failed
	expireEvery = time.Hour
)

// Config is what a store is made from.
type Config struct {
	Dir     string        // made with mode 0700 when missing
	Keep    time.Duration // rows that ended longer ago are removed, a segment at a time
	SizeMax int64         // bytes of all segments; then the oldest are removed
	Now     func() time.Time
	Log     *slog.Logger
}

// Store is the history as one server has it. Add and Restored are the log's, called one at
// a time; everything else may be called from any goroutine.
type Store struct {
	config Config
	disk   disk
	wake   chan struct{} // something waits for the disk
	most   int           // rows of a segment, about

	writing sync.Mutex // one that changes files at a time; before mu

	mu struct {
		sync.Mutex
		segments []segment // in the order of the log
		parts    []*part   // the first has the tail's file; the last one grows
		removed  uint64    // rows up to this index were removed because they are not kept any more
		failed   bool      // the last write failed
	}
}

// segment is a file of rows that does not change any more.
type segment struct {
	after, through uint64
	size           int64
	begin, end     structs.UnixNano
	rows           int
}

func (g segment) name() string {
	return fmt.Sprintf("%020d-%020d%s", g.after, g.through, segmentSuffix)
}

// part is rows that are in no segment: all those behind an index and up to another.
type part struct {
	after, through uint64
	rows           []structs.HistoryRow // only ever appended to
	written        int                  // rows that are on the disk
	synced         uint64               // up to where all is
	out            file                 // nil: it has no file yet
	stale          bool                 // a write failed: its file is written anew
}

// Span is indexes of the log: those behind After, up to Until.
type Span struct{ After, Until uint64 }

// Open opens the history in a directory.
func Open(config Config) (*Store, error) { return open(config, osDisk{}) }

func open(config Config, on disk) (*Store, error) {
	s := &Store{config: config, disk: on, wake: make(chan struct{}, 1), most: history.SegmentRowsMax}
	sizes, err := s.disk.list(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	var tails []uint64
	for name, size := range sizes {
		if strings.HasSuffix(name, tempSuffix) {
			if err := s.disk.remove(filepath.Join(config.Dir, name)); err != nil {
				return nil, fmt.Errorf("open history: %w", err)
			}
		}
		if after, ok := indexIn(name, tailSuffix); ok {
			tails = append(tails, after)
		}
		if name == removedName {
			if err := s.readRemoved(); err != nil {
				return nil, err
			}
		}
		after, through, is := spanIn(name)
		if !is {
			continue
		}
		found := segment{after: after, through: through, size: size}
		if err := s.describe(&found); errors.Is(err, history.ErrDamaged) {
			if err := s.setAside(found, err); err != nil {
				return nil, err
			}
			continue
		} else if err != nil {
			return nil, err
		}
		s.mu.segments = append(s.mu.segments, found)
	}
	slices.SortFunc(s.mu.segments, bySpan)
	if err := s.dropDoubles(); err != nil {
		return nil, err
	}
	return s, s.openTails(tails)
}

func bySpan(x, y segment) int {
	return cmp.Or(cmp.Compare(x.after, y.after), cmp.Compare(y.through, x.through))
}

// dropDoubles removes segments that lie within another: a crash left both.
func (s *Store) dropDoubles() error {
	end := uint64(0)
	for i := 0; i < len(s.mu.segments); i++ {
		found := s.mu.segments[i]
		if i > 0 && found.through <= end {
			if err := s.disk.remove(filepath.Join(s.config.Dir, found.name())); err != nil {
				return fmt.Errorf("open history: %w", err)
			}
			s.mu.segments = slices.Delete(s.mu.segments, i, i+1)
			i--
			continue
		}
		end = found.through
	}
	return nil
}

// openTails opens the tails. One whose rows are all in segments is removed; of one that was
// only begun to be made into segments, those are.
func (s *Store) openTails(tails []uint64) error {
	slices.Sort(tails)
	for _, after := range tails {
		p, cut, err := s.openTail(after)
		if err != nil {
			return err
		}
		if cut > 0 {
			s.config.Log.Warn("the end of the history was not whole and was cut off", "bytes", cut, "after", p.through)
		}
		newest := s.newest()
		if p.through <= newest || p.through == after {
			if err := errors.Join(p.out.Close(), s.disk.remove(filepath.Join(s.config.Dir, tailName(after)))); err != nil {
				return fmt.Errorf("open history: %w", err)
			}
			continue
		}
		for n := len(s.mu.segments); n > 0 && s.mu.segments[n-1].through > after; n-- {
			if err := s.disk.remove(filepath.Join(s.config.Dir, s.mu.segments[n-1].name())); err != nil {
				return fmt.Errorf("open history: %w", err)
			}
			s.mu.segments = s.mu.segments[:n-1]
		}
		s.mu.parts = append(s.mu.parts, p)
	}
	if len(s.mu.parts) == 0 {
		newest := max(s.newest(), s.mu.removed)
		s.mu.parts = []*part{{after: newest, through: newest, synced: newest}}
	}
	return nil
}

// newest is the index up to which there are segments.
func (s *Store) newest() uint64 {
	if n := len(s.mu.segments); n > 0 {
		return s.mu.segments[n-1].through
	}
	return 0
}

func indexIn(name, suffix string) (uint64, bool) {
	text, is := strings.CutSuffix(name, suffix)
	if !is || len(text) != 20 {
		return 0, false
	}
	index, err := strconv.ParseUint(text, 10, 64)
	return index, err == nil
}

func spanIn(name string) (after, through uint64, is bool) {
	text, is := strings.CutSuffix(name, segmentSuffix)
	first, last, two := strings.Cut(text, "-")
	if !is || !two {
		return 0, 0, false
	}
	after, ok := indexIn(first, "")
	through, also := indexIn(last, "")
	return after, through, ok && also && after < through
}

// describe reads the header of a segment.
func (s *Store) describe(found *segment) error {
	in, err := s.disk.open(filepath.Join(s.config.Dir, found.name()), os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	defer in.Close()
	read, err := history.Open(in)
	if err != nil {
		return err
	}
	if read.After != found.after || read.Through != found.through {
		return fmt.Errorf("%w: it is another one than its name says", history.ErrDamaged)
	}
	found.begin, found.end, found.rows = read.Begin, read.End, read.Rows
	return nil
}

// setAside keeps a damaged segment under another name: its rows are a gap from now on.
func (s *Store) setAside(found segment, why error) error {
	s.config.Log.Error("a segment of the history is damaged: its rows are fetched from another server", "file", found.name(), logkey.Error, why)
	path := filepath.Join(s.config.Dir, found.name())
	if err := s.disk.rename(path, path+damagedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set damaged segment aside: %w", err)
	}
	return nil
}

// Add implements state.History.
func (s *Store) Add(index uint64, rows []structs.HistoryRow) {
	s.mu.Lock()
	last := s.mu.parts[len(s.mu.parts)-1]
	if index <= last.through {
		s.mu.Unlock()
		return // an entry that is applied anew after a start
	}
	first := 0
	for first < len(rows) && rows[first].Index <= last.through {
		first++
	}
	last.rows = append(last.rows, rows[first:]...)
	last.through = index
	s.mu.Unlock()
	if len(rows) > first {
		s.wakeUp()
	}
}

// Restored implements state.History.
func (s *Store) Restored(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.mu.parts[len(s.mu.parts)-1]
	if index <= last.through {
		return
	}
	if last.after == last.through && last.out == nil {
		last.after, last.through, last.synced = index, index, index
		return
	}
	s.mu.parts = append(s.mu.parts, &part{after: index, through: index, synced: index})
	s.wakeUp()
}

func (s *Store) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run writes what is added until ctx ends, and removes what is not kept any more.
func (s *Store) Run(ctx context.Context) {
	expire := time.NewTicker(expireEvery)
	defer expire.Stop()
	write := time.NewTimer(0)
	defer write.Stop()
	soon := true // the timer runs
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			if !soon {
				write.Reset(writeAfter)
				soon = true
			}
		case <-write.C:
			if soon = s.Sync() != nil; soon {
				write.Reset(retryAfter)
			}
		case <-expire.C:
			if err := s.Expire(); err != nil {
				s.config.Log.Warn("old rows of the history were not removed", logkey.Error, err)
			}
		}
	}
}

// Close has everything reach the disk.
func (s *Store) Close() error {
	err := s.Sync()
	s.writing.Lock()
	defer s.writing.Unlock()
	if first := s.first(); first.out != nil {
		err = errors.Join(err, first.out.Close())
		first.out, first.stale = nil, true // who adds more after all writes it anew
	}
	return err
}
