package consensus

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
)

const (
	watermarkFile = "watermark"
	watermarkSlot = 512 // one sector each, so that a write tears neither the other slot nor itself
	watermarkSize = 8 + 8 + 4
)

// watermark remembers the last log index that was acknowledged as durable. It
// is written after each append without waiting for the disk, so it may be
// behind, but never ahead: a log that ends before it has lost acknowledged
// entries. raft-wal alone takes a damaged last batch, and a lost last file, for
// a torn write that nobody was told about.
type watermark struct {
	mu struct {
		sync.Mutex
		sequence uint64
		index    uint64
	}
	file *os.File
}

// openWatermark opens or creates the file. Slots that fail their checksum are
// ignored: the watermark is a tripwire, not the truth.
func openWatermark(path string) (*watermark, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open watermark: %w", err)
	}
	w := &watermark{file: file}
	for slot := range int64(2) {
		var data [watermarkSize]byte
		if _, err := file.ReadAt(data[:], slot*watermarkSlot); err != nil {
			continue // a new file
		}
		sequence, index := binary.LittleEndian.Uint64(data[0:]), binary.LittleEndian.Uint64(data[8:])
		if crcOf(data[:16]) == binary.LittleEndian.Uint32(data[16:]) && sequence > w.mu.sequence {
			w.mu.sequence, w.mu.index = sequence, index
		}
	}
	return w, nil
}

// at is the last index known as acknowledged.
func (w *watermark) at() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.index
}

// raise notes that everything up to index is durable.
func (w *watermark) raise(index uint64) error { return w.write(index, false) }

// lower must be called before entries after index are deleted; it returns when
// the disk knows, or the deletion could look like a loss after a power cut.
func (w *watermark) lower(index uint64) error { return w.write(index, true) }

func (w *watermark) write(index uint64, sync bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var data [watermarkSize]byte
	sequence := w.mu.sequence + 1
	binary.LittleEndian.PutUint64(data[0:], sequence)
	binary.LittleEndian.PutUint64(data[8:], index)
	binary.LittleEndian.PutUint32(data[16:], crcOf(data[:16]))
	if _, err := w.file.WriteAt(data[:], int64(sequence%2)*watermarkSlot); err != nil {
		return fmt.Errorf("write watermark: %w", err)
	}
	w.mu.sequence, w.mu.index = sequence, index
	if !sync {
		return nil
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("sync watermark: %w", err)
	}
	return nil
}

func (w *watermark) close() error { return w.file.Close() }
