package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

const (
	fileSuffix = ".jsonl"
	markEvery  = 64 << 10 // bytes of the newest file between places that are remembered
)

// chain is the record of one server on this one's disk.
type chain struct {
	dir    string
	server string
	bounds audit.Bounds

	mu struct {
		sync.Mutex
		files   []audit.File // oldest first; the last one is written to
		out     *os.File     // the last of them; nil: there is none yet
		head    audit.Head   // last line that was written
		synced  audit.Head   // last line that is on the disk
		marks   []mark       // places in the last file
		failure error        // a write failed and could not be taken back
	}
}

// mark is where a line begins in the newest file.
type mark struct {
	seq uint64
	at  int64
}

// cut is what was taken from the end of a chain because it was not whole.
type cut struct {
	bytes int64
	hash  string // of them
}

func fileName(first uint64) string { return fmt.Sprintf("%020d%s", first, fileSuffix) }

// openChain opens the chain in a directory, which it makes. Of the last file it
// cuts off what is no line.
func openChain(dir, server string, bounds audit.Bounds) (*chain, cut, error) {
	c := &chain{dir: dir, server: server, bounds: bounds}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, cut{}, fmt.Errorf("open audit record: %w", err)
	}
	names, err := fileNames(dir)
	if err != nil {
		return nil, cut{}, err
	}
	for i, first := range names {
		file, err := describe(filepath.Join(dir, fileName(first)), first, i == len(names)-1)
		if err != nil {
			return nil, cut{}, err
		}
		c.mu.files = append(c.mu.files, file)
	}
	taken := cut{}
	for len(c.mu.files) > 0 {
		more, err := c.openLast()
		if err != nil {
			return nil, cut{}, err
		}
		if more.bytes > 0 {
			taken = more
		}
		if c.mu.head.Seq > 0 {
			break
		}
		// Nothing of it was whole: the one before is the last.
		empty := c.mu.files[len(c.mu.files)-1]
		c.mu.files = c.mu.files[:len(c.mu.files)-1]
		if err := errors.Join(c.mu.out.Close(), os.Remove(filepath.Join(dir, fileName(empty.First)))); err != nil {
			return nil, cut{}, fmt.Errorf("open audit record: %w", err)
		}
		c.mu.out = nil
	}
	c.mu.synced = c.mu.head // openLast has made sure
	return c, taken, nil
}

// fileNames lists the numbers of the first lines of a chain's files, in order.
func fileNames(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list audit record: %w", err)
	}
	var firsts []uint64
	for _, entry := range entries {
		text, is := strings.CutSuffix(entry.Name(), fileSuffix)
		if first, err := strconv.ParseUint(text, 10, 64); is && err == nil && len(text) == 20 {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts, nil
}

// describe finds out about a file by its first and last records; of the last
// file of a chain only its first, since its end may not be whole.
func describe(path string, first uint64, last bool) (audit.File, error) {
	file := audit.File{First: first}
	in, err := os.Open(path)
	if err != nil {
		return file, fmt.Errorf("open audit record: %w", err)
	}
	defer in.Close()
	stat, err := in.Stat()
	if err != nil {
		return file, fmt.Errorf("open audit record: %w", err)
	}
	file.Size = stat.Size()
	head := make([]byte, min(file.Size, audit.LineMax))
	if _, err := in.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return file, fmt.Errorf("read audit record: %w", err)
	}
	if line, _, whole := bytes.Cut(head, []byte{'\n'}); whole {
		if r, err := audit.Parse(line); err == nil {
			file.Begun, file.Newest = r.Time, r.Time
		}
	}
	if last {
		return file, nil
	}
	for line, err := range backward(in, file.Size) {
		if err != nil {
			return file, err
		}
		if r, err := audit.Parse(line); err == nil {
			file.Newest = max(file.Newest, r.Time)
		}
		break
	}
	return file, nil
}

// openLast opens the last file to write on, and cuts off its end from behind
// the last line that is one. What was read is then on the disk.
func (c *chain) openLast() (cut, error) {
	file := &c.mu.files[len(c.mu.files)-1]
	out, err := os.OpenFile(filepath.Join(c.dir, fileName(file.First)), os.O_RDWR, 0o600)
	if err != nil {
		return cut{}, fmt.Errorf("open audit record: %w", err)
	}
	c.mu.out = out
	data, err := io.ReadAll(out)
	if err != nil {
		return cut{}, fmt.Errorf("read audit record: %w", err)
	}
	c.mu.head, c.mu.marks = audit.Head{}, nil
	good, at := int64(0), int64(0)
	for line := range bytes.Lines(data) {
		end := at + int64(len(line))
		if r, err := audit.Parse(line); err == nil && line[len(line)-1] == '\n' {
			c.markLocked(r.Seq, at)
			c.mu.head, good = audit.Head{Seq: r.Seq, Hash: audit.HashLine(line)}, end
			file.Newest = max(file.Newest, r.Time)
		}
		at = end
	}
	taken := cut{}
	if rest := data[good:]; len(rest) > 0 {
		taken = cut{int64(len(rest)), audit.HashLine(rest)}
		if err := out.Truncate(good); err != nil {
			return cut{}, fmt.Errorf("cut audit record: %w", err)
		}
	}
	file.Size = good
	if _, err := out.Seek(good, io.SeekStart); err != nil {
		return cut{}, fmt.Errorf("open audit record: %w", err)
	}
	if err := out.Sync(); err != nil {
		return cut{}, fmt.Errorf("sync audit record: %w", err)
	}
	return taken, nil
}

func (c *chain) markLocked(seq uint64, at int64) {
	if n := len(c.mu.marks); n == 0 || at-c.mu.marks[n-1].at >= markEvery {
		c.mu.marks = append(c.mu.marks, mark{seq, at})
	}
}

// add writes a record as the next line. It does not wait for the disk.
func (c *chain) add(r audit.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Seq, r.Server, r.Prev = c.mu.head.Seq+1, c.server, c.mu.head.Hash
	line, err := audit.Encode(r)
	if err != nil {
		return err
	}
	return c.writeLocked(r.Seq, r.Time, line)
}

// addLines writes lines that another server made, which must follow. It returns
// how many did.
func (c *chain) addLines(lines []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := 0
	for line := range bytes.Lines(lines) {
		at := audit.Chain{Server: c.server, Head: c.mu.head}
		if r, err := audit.Parse(line); err == nil && r.Seq <= c.mu.head.Seq {
			continue // another server was faster to offer it
		}
		r, err := at.Next(line)
		if err != nil {
			return added, err
		}
		if err := c.writeLocked(r.Seq, r.Time, line); err != nil {
			return added, err
		}
		added++
	}
	return added, nil
}

func (c *chain) writeLocked(seq uint64, at structs.UnixNano, line []byte) error {
	if c.mu.failure != nil {
		if err := c.repairLocked(); err != nil {
			return err
		}
	}
	if err := c.rotateLocked(seq, at); err != nil {
		return err
	}
	file := &c.mu.files[len(c.mu.files)-1]
	if _, err := c.mu.out.Write(line); err != nil {
		c.mu.failure = err
		return errors.Join(fmt.Errorf("write audit record: %w", err), c.repairLocked())
	}
	c.markLocked(seq, file.Size)
	if file.Begun == 0 {
		file.Begun = at
	}
	file.Size += int64(len(line))
	file.Newest = max(file.Newest, at)
	c.mu.head = audit.Head{Seq: seq, Hash: audit.HashLine(line)}
	return nil
}

// repairLocked takes back the part of a line that a failed write has left.
func (c *chain) repairLocked() error {
	size := c.mu.files[len(c.mu.files)-1].Size
	if err := c.mu.out.Truncate(size); err != nil {
		return fmt.Errorf("cut audit record: %w", err)
	}
	if _, err := c.mu.out.Seek(size, io.SeekStart); err != nil {
		return fmt.Errorf("cut audit record: %w", err)
	}
	c.mu.failure = nil
	return nil
}

// rotateLocked begins a new file when the last one is full, or there is none.
func (c *chain) rotateLocked(seq uint64, at structs.UnixNano) error {
	if n := len(c.mu.files); n > 0 && !c.bounds.Full(c.mu.files[n-1], at) {
		return nil
	}
	if c.mu.out != nil {
		if err := c.mu.out.Sync(); err != nil {
			return &SyncError{err}
		}
		c.mu.synced = c.mu.head
	}
	next, err := os.OpenFile(filepath.Join(c.dir, fileName(seq)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("begin file of audit record: %w", err)
	}
	if err := syncDir(c.dir); err != nil {
		return errors.Join(&SyncError{err}, next.Close())
	}
	if c.mu.out != nil {
		_ = c.mu.out.Close() // it was synced
	}
	c.mu.out, c.mu.marks = next, nil
	c.mu.files = append(c.mu.files, audit.File{First: seq})
	return nil
}

// SyncError says that the disk did not take what was written. What it has of it
// is not known, and another try would not tell.
type SyncError struct{ Err error }

func (e *SyncError) Error() string { return "sync audit record: " + e.Err.Error() }
func (e *SyncError) Unwrap() error { return e.Err }

func syncDir(dir string) error {
	in, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(in.Sync(), in.Close())
}

// sync has what was written reach the disk, and reports whether that is more
// than before.
func (c *chain) sync() (bool, error) {
	c.mu.Lock()
	out, head, synced := c.mu.out, c.mu.head, c.mu.synced
	c.mu.Unlock()
	if head == synced {
		return false, nil
	}
	err := out.Sync()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.synced.Seq >= head.Seq { // a new file was begun meanwhile, and this one synced and closed
		return true, nil
	}
	if err != nil {
		return false, &SyncError{err}
	}
	c.mu.synced = head
	return true, nil
}

// expire removes the files that are not kept any more, and returns the number of
// the first line that is left, 0 when nothing was removed.
func (c *chain) expire(now structs.UnixNano) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.bounds.Expired(c.mu.files, now)
	for _, file := range c.mu.files[:n] {
		if err := os.Remove(filepath.Join(c.dir, fileName(file.First))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("remove audit record: %w", err)
		}
	}
	if n == 0 {
		return 0, nil
	}
	c.mu.files = slices.Clone(c.mu.files[n:])
	return c.mu.files[0].First, nil
}

// span returns the files, and the last line that is on the disk.
func (c *chain) span() ([]audit.File, audit.Head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.files), c.mu.synced
}

// written returns the files, and the last line that was written.
func (c *chain) written() ([]audit.File, audit.Head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.files), c.mu.head
}

// after returns whole lines that are on the disk, from behind a number on, and
// about so many bytes of them.
func (c *chain) after(seq uint64, most int) ([]byte, error) {
	files, synced := c.span()
	if seq >= synced.Seq || len(files) == 0 {
		return nil, nil
	}
	at, exact := slices.BinarySearchFunc(files, seq+1, func(f audit.File, want uint64) int { return cmp.Compare(f.First, want) })
	if !exact && at > 0 {
		at--
	}
	var lines []byte
	for ; at < len(files) && len(lines) < most; at++ {
		more, whole, err := c.fileAfter(files[at], seq, synced.Seq, most-len(lines))
		if err != nil {
			return nil, err
		}
		if lines = append(lines, more...); !whole {
			break
		}
	}
	return lines, nil
}

// fileAfter reads lines of one file, and reports whether it came to its end.
func (c *chain) fileAfter(file audit.File, seq, last uint64, most int) (lines []byte, whole bool, err error) {
	in, err := os.Open(filepath.Join(c.dir, fileName(file.First)))
	if err != nil {
		return nil, false, fmt.Errorf("read audit record: %w", err)
	}
	defer in.Close()
	reader := io.NewSectionReader(in, c.markBefore(file, seq), file.Size)
	for line, err := range forward(reader) {
		if err != nil {
			return nil, false, err
		}
		r, err := audit.Parse(line)
		switch {
		case err != nil: // what is damaged is told by a check; it is not passed on
			return lines, false, nil
		case r.Seq > last, len(lines) > 0 && len(lines)+len(line) > most:
			return lines, false, nil
		case r.Seq > seq:
			lines = append(lines, line...)
		}
	}
	return lines, true, nil
}

// markBefore is a place in a file from which to read for the line behind seq.
func (c *chain) markBefore(file audit.File, seq uint64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.files) == 0 || c.mu.files[len(c.mu.files)-1].First != file.First {
		return 0
	}
	at := int64(0)
	for _, m := range c.mu.marks {
		if m.seq <= seq {
			at = m.at
		}
	}
	return at
}

func (c *chain) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.out == nil {
		return nil
	}
	out := c.mu.out
	return errors.Join(out.Sync(), out.Close())
}
