package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver/tasklog"
)

// Bounds of one call of ReadLogs and ReadEvents.
const (
	logBytesMax      = 4 << 20  // of each stream
	eventBytesMax    = 4 << 20  // of each file
	scalarRecordMax  = 1 << 20  // larger records hold no scalars and are passed over
	eventEntriesMax  = 10_000   // names looked at
	eventFilesMax    = 64       // files read
	eventDepthMax    = 8        // directories below the first
	savedBytesMax    = 64 << 20 // of the file that Save writes
	eventTimeSlack   = 2 * time.Second
	modifiedSlack    = 10 * time.Minute // clocks of storages differ
	sourceEvents     = "events"
	eventFilePattern = "tfevents"
)

// Collector holds the figures of one allocation. Its methods may be called from
// any goroutine.
type Collector struct {
	file  string
	rules scanner
	began time.Time

	mu struct {
		sync.Mutex
		set
		streams map[string]*stream
		files   map[string]*eventFile
		changed bool
	}
}

// stream is how far a log was read. Rest is the beginning of a line whose end
// is not there yet.
type stream struct {
	Offset int64 `json:"offset"`         // of Rest
	Long   bool  `json:"long,omitempty"` // what follows up to the next end of a line is skipped
	rest   []byte
}

// eventFile is how far an event file was read.
type eventFile struct {
	Offset  int64 `json:"offset"`
	Damaged bool  `json:"damaged,omitempty"`
}

// saved is the form of the file.
type saved struct {
	Began   time.Time             `json:"began"`
	Series  []*series             `json:"series"`
	LeftOut int                   `json:"left_out,omitempty"`
	Streams map[string]*stream    `json:"streams,omitempty"`
	Files   map[string]*eventFile `json:"files,omitempty"`
}

// Open goes on with what file holds, or begins anew when there is none, or one
// that cannot be read. now is when the task was started, if it begins anew.
func Open(file string, patterns []string, now time.Time) *Collector {
	c := &Collector{file: file, rules: newScanner(patterns), began: now}
	c.mu.series, c.mu.streams, c.mu.files = make(map[seriesKey]*series), make(map[string]*stream), make(map[string]*eventFile)
	if was, err := load(file); err == nil {
		c.began, c.mu.leftOut = was.Began, was.LeftOut
		for _, s := range was.Series[:min(len(was.Series), SeriesMax)] {
			c.mu.series[seriesKey{s.Name, s.Source}] = s
		}
		for name, s := range was.Streams {
			c.mu.streams[name] = s
		}
		for name, f := range was.Files {
			c.mu.files[name] = f
		}
	}
	return c
}

func load(file string) (*saved, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, savedBytesMax))
	if err != nil {
		return nil, err
	}
	was := new(saved)
	if err := json.Unmarshal(text, was); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	if slices.Contains(was.Series, nil) {
		return nil, errors.New("read metrics: empty series")
	}
	return was, nil
}

// Read returns what Save has written to file, for an allocation that has no
// Collector any more. Without a file there are no series.
func Read(file string, names []string, points int) (series []structs.MetricSeries, leftOut int) {
	if _, err := os.Stat(file); err != nil {
		return nil, 0
	}
	return Open(file, nil, time.Time{}).Series(names, points)
}

// Series returns the series of some names, or all, with at most so many points each.
func (c *Collector) Series(names []string, points int) (series []structs.MetricSeries, leftOut int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.mu.sorted() {
		if len(names) == 0 || slices.Contains(names, one.Name) {
			series = append(series, one.shown(points))
		}
	}
	return series, c.mu.leftOut
}

// Save writes what has changed since it was called last.
func (c *Collector) Save() error {
	c.mu.Lock()
	if !c.mu.changed {
		c.mu.Unlock()
		return nil
	}
	text, err := json.Marshal(saved{Began: c.began, Series: c.mu.sorted(), LeftOut: c.mu.leftOut, Streams: c.mu.streams, Files: c.mu.files})
	c.mu.changed = false
	c.mu.Unlock()
	if err != nil {
		return err
	}
	part := c.file + ".new"
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return os.Rename(part, c.file)
}

// ReadLogs takes what is new in the logs of a directory, at most logBytesMax of
// each. over says that nothing more comes: a line without an end counts too.
func (c *Collector) ReadLogs(ctx context.Context, dir string, now time.Time, over bool) error {
	var all error
	for _, name := range []string{tasklog.Stdout, tasklog.Stderr} {
		c.mu.Lock()
		s := c.mu.streams[name]
		if s == nil {
			s = &stream{}
			c.mu.streams[name] = s
		}
		from := s.Offset + int64(len(s.rest))
		c.mu.Unlock()
		err := tasklog.Read(ctx, tasklog.Request{Dir: dir, Stream: name, Offset: from, Limit: logBytesMax}, func(chunk tasklog.Chunk) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.feedLocked(s, chunk, structs.At(now))
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
		if over {
			c.mu.Lock()
			c.lineLocked(s, string(s.rest), structs.At(now))
			s.Offset, s.rest = s.Offset+int64(len(s.rest)), nil
			c.mu.Unlock()
		}
	}
	return all
}

// feedLocked takes a piece of a log. Progress bars end lines with a carriage
// return.
func (c *Collector) feedLocked(s *stream, chunk tasklog.Chunk, at structs.UnixNano) {
	c.mu.changed = true
	if chunk.Lost > 0 {
		s.rest, s.Long = nil, true // the rest of a line whose beginning is gone
	}
	data := chunk.Data
	for len(data) > 0 {
		end := slices.IndexFunc(data, func(b byte) bool { return b == '\n' || b == '\r' })
		if end < 0 {
			break
		}
		line := append(s.rest, data[:end]...)
		c.lineLocked(s, string(line), at)
		s.rest, s.Long, data = nil, false, data[end+1:]
	}
	switch {
	case s.Long:
		data = nil
	case len(s.rest)+len(data) > LineMax: // its beginning counts, what follows does not
		c.lineLocked(s, string(append(s.rest, data...)), at)
		s.rest, s.Long, data = nil, true, nil
	}
	s.rest = append(s.rest, data...)
	s.Offset = chunk.Offset + int64(len(chunk.Data)) - int64(len(s.rest))
}

func (c *Collector) lineLocked(s *stream, line string, at structs.UnixNano) {
	if s.Long || line == "" {
		return
	}
	for _, o := range c.rules.scan(line) {
		c.mu.add(structs.MetricFromLog, at, o)
	}
}

// ReadEvents takes what is new in the event files below a directory. What was
// written before the task began belongs to earlier attempts.
func (c *Collector) ReadEvents(ctx context.Context, root *os.Root) error {
	names, err := c.findEvents(ctx, root)
	if err != nil {
		return err
	}
	var all error
	for _, name := range names {
		if err := c.readEventFile(root, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, fmt.Errorf("read event file %s: %w", name, err))
		}
	}
	return all
}

// findEvents lists the event files that may hold something of this attempt.
func (c *Collector) findEvents(ctx context.Context, root *os.Root) (names []string, err error) {
	seen := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		seen++
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == ".":
			return err
		case err != nil:
			return fs.SkipDir
		case seen > eventEntriesMax || len(names) == eventFilesMax:
			return fs.SkipAll
		case entry.IsDir() && strings.Count(name, "/") >= eventDepthMax:
			return fs.SkipDir
		case !entry.Type().IsRegular() || !strings.Contains(entry.Name(), eventFilePattern):
			return nil
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(c.began.Add(-modifiedSlack)) {
			names = append(names, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) { // not made yet
		return nil, nil
	}
	return names, err
}

// readEventFile reads the records that are new in a file.
func (c *Collector) readEventFile(root *os.Root, name string) error {
	c.mu.Lock()
	at := c.mu.files[name]
	if at == nil {
		if len(c.mu.files) >= eventFilesMax {
			c.mu.Unlock()
			return nil
		}
		at = &eventFile{}
		c.mu.files[name] = at
	}
	offset, damaged := at.Offset, at.Damaged
	c.mu.Unlock()
	if damaged {
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() <= offset || !info.Mode().IsRegular() {
		return err
	}
	data := make([]byte, min(info.Size()-offset, eventBytesMax))
	n, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	used, events, err := eventsIn(data[:n])
	source := sourceEvents
	if dir := path.Dir(name); dir != "." {
		source += "/" + dir
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at.Offset, at.Damaged = offset+used, err != nil
	c.mu.changed = c.mu.changed || used > 0 || err != nil
	for i := range events {
		c.addEventLocked(source, &events[i])
	}
	return err
}

func (c *Collector) addEventLocked(source string, e *event) {
	if math.IsNaN(e.WallTime) || math.Abs(e.WallTime) > 1<<33 {
		return
	}
	when := time.Unix(0, int64(e.WallTime*1e9))
	if when.Before(c.began.Add(-eventTimeSlack)) {
		return
	}
	for _, o := range e.Values {
		c.mu.add(source, structs.At(when), o)
	}
}

// eventsIn decodes the records that are whole in data. used may go beyond data:
// then a record that holds no scalars is passed over.
func eventsIn(data []byte) (used int64, events []event, err error) {
	for {
		rest := data[used:]
		if len(rest) >= recordHeadBytes {
			length, err := recordLength(rest[:recordHeadBytes])
			if err != nil {
				return used, events, err
			}
			if length > scalarRecordMax {
				used += recordHeadBytes + int64(length) + recordTailBytes
				if used >= int64(len(data)) {
					return used, events, nil
				}
				continue
			}
		}
		record, size, err := nextRecord(rest)
		if err != nil || size == 0 {
			return used, events, err
		}
		e, err := decodeEvent(record)
		if err != nil {
			return used, events, err
		}
		used += int64(size)
		if len(e.Values) > 0 {
			events = append(events, e)
		}
	}
}
