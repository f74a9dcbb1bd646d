package history

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
	cellBytes   = 8 + 4*gaugesKept
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
// that can be read, it is empty; the error reports the second, and the book
// may be used all the same.
func Open(path string, now time.Time) (*Book, error) {
	b := &Book{path: path, kept: gauges()}
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
		out.Lines = append(out.Lines, fileLine{ID: id, Cells: pack(b.mu.lines[id].all(b.kept))})
	}
	return json.Marshal(out)
}

func pack(cells []cell) []byte {
	packed := make([]byte, 0, len(cells)*cellBytes)
	for i := range cells {
		packed = binary.LittleEndian.AppendUint64(packed, uint64(cells[i].at))
		for _, value := range cells[i].values {
			packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(value))
		}
	}
	return packed
}

// unpack reads what pack wrote. Times have to rise.
func unpack(packed []byte) ([]cell, error) {
	if len(packed)%cellBytes != 0 || len(packed)/cellBytes > Kept+1 {
		return nil, fmt.Errorf("%d bytes", len(packed))
	}
	cells := make([]cell, 0, len(packed)/cellBytes)
	for ; len(packed) > 0; packed = packed[cellBytes:] {
		c := cell{at: int64(binary.LittleEndian.Uint64(packed))}
		for place := range c.values {
			c.values[place] = math.Float32frombits(binary.LittleEndian.Uint32(packed[8+4*place:]))
		}
		if n := len(cells); n > 0 && cells[n-1].at >= c.at {
			return nil, errors.New("times do not rise")
		}
		cells = append(cells, c)
	}
	return cells, nil
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
		cells, err := unpack(packed.Cells)
		if err == nil && len(packed.ID) > idMax {
			err = errors.New("too long a name")
		}
		if err != nil {
			return nil, fmt.Errorf("line %.80q: %w", packed.ID, err)
		}
		l := new(line)
		for _, c := range cells {
			if c.at > now-Kept && c.at <= now {
				l.cells = append(l.cells, c)
			}
		}
		if len(l.cells) > 0 {
			lines[packed.ID] = l
		}
	}
	return lines, nil
}
