package diary

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"nomadlike/nomadlike/client/store"
)

// Bounds of the file.
const (
	fileVersion = 1
	fileMax     = 256 << 20 // bytes
	idMax       = 256       // bytes of a device's id
	cellBytes   = 8 + 4*figuresKept
)

// file is what a book is between two processes of the agent.
type file struct {
	Version int        `json:"version"`
	Lines   []fileLine `json:"lines"`
}

// fileLine is one line; its cells are packed: the minute as 8 bytes, then the
// values as 4 bytes each, all little-endian.
type fileLine struct {
	ID    string `json:"id"`
	Cells []byte `json:"cells"`
}

// Open reads the book that an earlier process of the agent has written to path;
// what is older than Kept minutes is left out. Where there is none, or none
// that can be read, it is empty; the error tells of the second, and the book
// may be used all the same.
func Open(path string, now time.Time) (*Book, error) {
	b := &Book{path: path, kept: figures()}
	b.mu.lines = make(map[string]*line)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b, nil
	case err == nil && info.Size() > fileMax:
		err = fmt.Errorf("%d bytes are more than %d", info.Size(), fileMax)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err == nil {
		b.mu.lines, err = decode(data, minuteOf(now))
	}
	if err != nil {
		b.mu.lines = make(map[string]*line)
		return b, fmt.Errorf("read figures of the last day: %w", err)
	}
	return b, nil
}

// Save writes the book. What is noted afterwards is in the next Save.
func (b *Book) Save() error {
	b.mu.Lock()
	data, err := b.encodeLocked()
	b.mu.Unlock()
	if err == nil {
		err = store.WriteFile(b.path, data, 0o600, false)
	}
	if err != nil {
		return fmt.Errorf("keep figures of the last day: %w", err)
	}
	return nil
}

func (b *Book) encodeLocked() ([]byte, error) {
	out := file{Version: fileVersion}
	for _, id := range slices.Sorted(maps.Keys(b.mu.lines)) {
		cells := b.mu.lines[id].all(b.kept)
		packed := make([]byte, 0, len(cells)*cellBytes)
		for i := range cells {
			packed = binary.LittleEndian.AppendUint64(packed, uint64(cells[i].minute))
			for _, value := range cells[i].values {
				packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(value))
			}
		}
		out.Lines = append(out.Lines, fileLine{ID: id, Cells: packed})
	}
	return json.Marshal(out)
}

// decode reads what encodeLocked wrote. Minutes have to rise; those before or
// after the day that ends with now are left out.
func decode(data []byte, now int64) (map[string]*line, error) {
	var in file
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	if in.Version != fileVersion || len(in.Lines) > DevicesMax+1 {
		return nil, fmt.Errorf("version %d with %d lines", in.Version, len(in.Lines))
	}
	lines := make(map[string]*line, len(in.Lines))
	for _, packed := range in.Lines {
		if len(packed.ID) > idMax || len(packed.Cells)%cellBytes != 0 || len(packed.Cells)/cellBytes > Kept+1 {
			return nil, fmt.Errorf("line %.80q has %d bytes", packed.ID, len(packed.Cells))
		}
		l := new(line)
		for rest := packed.Cells; len(rest) > 0; rest = rest[cellBytes:] {
			c := cell{minute: int64(binary.LittleEndian.Uint64(rest))}
			for place := range c.values {
				c.values[place] = math.Float32frombits(binary.LittleEndian.Uint32(rest[8+4*place:]))
			}
			if n := len(l.cells); n > 0 && l.cells[n-1].minute >= c.minute {
				return nil, fmt.Errorf("minutes of line %.80q do not rise", packed.ID)
			}
			if c.minute > now-Kept && c.minute <= now {
				l.cells = append(l.cells, c)
			}
		}
		if len(l.cells) > 0 {
			lines[packed.ID] = l
		}
	}
	return lines, nil
}
