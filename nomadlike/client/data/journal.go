package data

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"time"
)

// A journal has a header, the boot in which it was written, and records of one
// size: which chunk of which file is in the copy, with its digest. A record is
// written after the chunk. What a crash of the machine makes of a record is
// found by its checksum.
const (
	recordBytes  = 4 + 4 + sha256.Size + 4
	journalFlush = 50 * time.Millisecond
)

type record struct {
	file   uint32
	chunk  uint32
	digest [sha256.Size]byte
}

func (r *record) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, r.file)
	b = binary.LittleEndian.AppendUint32(b, r.chunk)
	b = append(b, r.digest[:]...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func decodeRecord(b []byte) (r record, ok bool) {
	if len(b) != recordBytes || crc32.ChecksumIEEE(b[:recordBytes-4]) != binary.LittleEndian.Uint32(b[recordBytes-4:]) {
		return r, false
	}
	r.file, r.chunk = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	copy(r.digest[:], b[8:])
	return r, true
}

// header is the boot, as a digest of its id.
func header(bootID string) []byte {
	sum := sha256.Sum256([]byte(bootID))
	return sum[:]
}

// readJournal returns the records of a journal up to the first that is not whole,
// and reports how long that part is. sameBoot reports whether the machine has run
// since: otherwise what the records say may not have reached the disk.
func readJournal(path, bootID string, yield func(*record) error) (sameBoot bool, good int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	head := make([]byte, sha256.Size)
	if _, err := io.ReadFull(r, head); err != nil {
		return true, 0, nil // a journal that was only begun
	}
	good = sha256.Size
	b := make([]byte, recordBytes)
	for {
		if _, err := io.ReadFull(r, b); err != nil {
			break
		}
		one, ok := decodeRecord(b)
		if !ok {
			break
		}
		if err := yield(&one); err != nil {
			return false, 0, err
		}
		good += recordBytes
	}
	return string(head) == string(header(bootID)), good, nil
}

// journal is being written. Records wait a moment, so that thousands of small
// files are few writes: what is lost with them is copied again.
type journal struct {
	mu struct {
		sync.Mutex
		w       *bufio.Writer
		flushed time.Time
	}
	file *os.File
}

// openJournal goes on with a journal of which good bytes count, or begins one.
func openJournal(path, bootID string, good int64) (*journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if good < sha256.Size {
		good = 0
	}
	if err := f.Truncate(good); err != nil {
		f.Close()
		return nil, err
	}
	// The boot is this one from now on: what was not was verified.
	if _, err := f.WriteAt(header(bootID), 0); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		f.Close()
		return nil, err
	}
	j := &journal{file: f}
	j.mu.w = bufio.NewWriterSize(f, 1<<14)
	return j, nil
}

// add notes a chunk. Of a large one the note is worth a write of its own: the
// next may be long in coming.
func (j *journal) add(r *record, now time.Time, large bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.mu.w.Write(r.encode()); err != nil {
		return err
	}
	if !large && now.Sub(j.mu.flushed) < journalFlush {
		return nil
	}
	j.mu.flushed = now
	return j.mu.w.Flush()
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.mu.w.Flush(), j.file.Close())
}
