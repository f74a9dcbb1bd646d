package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

const (
	frameRowsMax = 1000 // of one frame, and those of the same entry
	frameHead    = 8    // length and CRC
	frameMax     = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is rows of the tail: all of them behind the frame before, and up to an index.
type frame struct {
	Through uint64               `json:"through"`
	Rows    []structs.HistoryRow `json:"rows,omitempty"`
}

// appendFrames writes rows as frames, none of which ends within an entry.
func appendFrames(out []byte, through uint64, rows []structs.HistoryRow) ([]byte, error) {
	for {
		f := frame{Through: through, Rows: rows}
		n := cutRows(rows, frameRowsMax)
		if n < len(rows) {
			f = frame{Through: rows[n-1].Index, Rows: rows[:n]}
		}
		data, err := wire.Marshal(&f)
		if err != nil {
			return nil, err
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(data, castagnoli))
		out = append(out, data...)
		if rows = rows[n:]; len(rows) == 0 {
			return out, nil
		}
	}
}

// cutRows is the number of rows to take so that there are about most, and all of each entry.
func cutRows(rows []structs.HistoryRow, most int) int {
	if len(rows) <= most {
		return len(rows)
	}
	n := most
	for n < len(rows) && rows[n].Index == rows[n-1].Index {
		n++
	}
	return n
}

// readFrames reads frames up to the first that is not whole, and returns how many bytes
// were.
func readFrames(data []byte, after uint64) (rows []structs.HistoryRow, through uint64, good int64) {
	through = after
	for {
		rest := data[good:]
		if len(rest) < frameHead {
			return rows, through, good
		}
		size := binary.LittleEndian.Uint32(rest)
		if size > frameMax || int(size) > len(rest)-frameHead {
			return rows, through, good
		}
		body := rest[frameHead : frameHead+int(size)]
		var f frame
		if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(rest[4:]) || wire.Unmarshal(body, &f) != nil || f.Through < through {
			return rows, through, good
		}
		rows, through = append(rows, f.Rows...), f.Through
		good += frameHead + int64(size)
	}
}

func tailName(after uint64) string { return fmt.Sprintf("%020d%s", after, tailSuffix) }

// openTail opens a tail to write on; what is no whole frame at its end is cut off. It
// returns how much that was.
func (s *Store) openTail(after uint64) (p *part, cut int64, err error) {
	path := filepath.Join(s.config.Dir, tailName(after))
	out, err := s.disk.open(path, os.O_RDWR)
	if err != nil {
		return nil, 0, fmt.Errorf("open history: %w", err)
	}
	data, err := io.ReadAll(out)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("read history: %w", err), out.Close())
	}
	rows, through, good := readFrames(data, after)
	if cut = int64(len(data)) - good; cut > 0 {
		if kept := s.keepDamaged(path, data[good:]); kept != nil {
			return nil, 0, errors.Join(kept, out.Close())
		}
		if err := out.Truncate(good); err != nil {
			return nil, 0, errors.Join(fmt.Errorf("cut history: %w", err), out.Close())
		}
	}
	if _, err := out.Seek(good, io.SeekStart); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open history: %w", err), out.Close())
	}
	if err := out.Sync(); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("sync history: %w", err), out.Close())
	}
	return &part{after: after, through: through, synced: through, rows: rows, written: len(rows), out: out}, cut, nil
}

// keepDamaged keeps what is cut off from a tail if it is more than the last write that
// did not end: a byte that changed on the disk makes frames behind it unreadable.
func (s *Store) keepDamaged(path string, data []byte) error {
	if !bytes.ContainsFunc(data, func(r rune) bool { return r != 0 }) {
		return nil
	}
	if err := s.disk.write(path+damagedSuffix, data); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keep damaged end of history: %w", err)
	}
	return nil
}
