package consensus

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// LogStore is where raft keeps its entries: raft's own contract, one writer at
// a time, StoreLogs durable when it returns. Close ends its goroutines.
type LogStore interface {
	raft.LogStore
	Close() error
}

// guardedLog is the log as raft sees it: timed, with its failures fatal, its
// end watched and its newest entries cached for the followers.
type guardedLog struct {
	store LogStore
	guard *guard
	mark  *watermark                // nil in memory
	file  func(index uint64) string // names the file that holds an entry
	cache *entryCache
}

var (
	_ raft.LogStore          = (*guardedLog)(nil)
	_ raft.MonotonicLogStore = (*guardedLog)(nil)
)

// verify reads every entry once and compares the end with the watermark, so
// that corruption is found before this server speaks to anybody.
func (l *guardedLog) verify() error {
	first, err := l.store.FirstIndex()
	if err != nil {
		return fmt.Errorf("find first log entry: %w", err)
	}
	last, err := l.store.LastIndex()
	if err != nil {
		return fmt.Errorf("find last log entry: %w", err)
	}
	var entry raft.Log
	for index := first; first != 0 && index <= last; index++ {
		if err := l.read(index, &entry); err != nil {
			return err
		}
	}
	if l.mark == nil {
		return nil
	}
	if acknowledged := l.mark.at(); last < acknowledged {
		return &CorruptError{
			File:  l.file(last + 1),
			Index: last + 1,
			Err:   fmt.Errorf("log ends at %d although entries up to %d were acknowledged", last, acknowledged),
		}
	}
	return nil
}

// read gets an entry from the store and turns damage into a CorruptError.
func (l *guardedLog) read(index uint64, entry *raft.Log) error {
	err := l.store.GetLog(index, entry)
	switch {
	case err == nil && entry.Index != index:
		return &CorruptError{File: l.file(index), Index: index, Err: fmt.Errorf("entry %d lies in its place", entry.Index)}
	case err == nil, errors.Is(err, raft.ErrLogNotFound):
		return err
	}
	return &CorruptError{File: l.file(index), Index: index, Err: err}
}

// FirstIndex implements raft.LogStore.
func (l *guardedLog) FirstIndex() (uint64, error) { return l.store.FirstIndex() }

// LastIndex implements raft.LogStore.
func (l *guardedLog) LastIndex() (uint64, error) { return l.store.LastIndex() }

// IsMonotonic implements raft.MonotonicLogStore: the log has no gaps.
func (l *guardedLog) IsMonotonic() bool { return true }

// GetLog implements raft.LogStore.
func (l *guardedLog) GetLog(index uint64, entry *raft.Log) error {
	if l.cache.get(index, entry) {
		return nil
	}
	done := l.guard.watch("read log")
	err := l.read(index, entry)
	done()
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	l.guard.fail(exitStorage, "log cannot be read", logkey.Error, err)
	if l.guard.hasFailed() {
		runtime.Goexit() // only after an exit function of a test: raft would panic on the error
	}
	return err
}

// StoreLog implements raft.LogStore.
func (l *guardedLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore. A failed write or fsync is never
// repeated: the kernel may have dropped the pages and a second fsync would lie.
func (l *guardedLog) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	done := l.guard.watch("append to log")
	err := l.store.StoreLogs(entries)
	if err == nil && l.mark != nil {
		err = l.mark.raise(entries[len(entries)-1].Index)
	}
	done()
	if err == nil && l.guard.hasFailed() {
		err = errors.New("append to log: server is stopping") // stored, but nobody may learn it from here
	}
	if err != nil {
		l.guard.fail(exitStorage, "log cannot be written", logkey.Index, entries[0].Index, logkey.Error, err)
		return err
	}
	l.cache.put(entries)
	return nil
}

// DeleteRange implements raft.LogStore for prefixes and suffixes.
func (l *guardedLog) DeleteRange(from, to uint64) error {
	done := l.guard.watch("delete from log")
	err := l.deleteRange(from, to)
	done()
	if err != nil {
		l.guard.fail(exitStorage, "log cannot be truncated", logkey.Error, err)
	}
	return err
}

// deleteRange deletes what there is of a range: raft, compacting from two
// goroutines, may ask for entries that are gone already.
func (l *guardedLog) deleteRange(from, to uint64) error {
	first, err := l.store.FirstIndex()
	if err != nil {
		return err
	}
	last, err := l.store.LastIndex()
	if err != nil {
		return err
	}
	from, to = max(from, first), min(to, last)
	if last == 0 || from > to {
		return nil
	}
	l.cache.remove(from, to)
	if l.mark != nil && to == last {
		remains := uint64(0)
		if from > first {
			remains = from - 1
		}
		if err := l.mark.lower(remains); err != nil {
			return err
		}
	}
	return l.store.DeleteRange(from, to)
}

// close closes store and watermark.
func (l *guardedLog) close() error {
	err := l.store.Close()
	if l.mark != nil {
		err = errors.Join(err, l.mark.close())
	}
	return err
}
