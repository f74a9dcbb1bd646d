package history

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"nomadlike/nomadlike/structs"
)

// A segment is
//
//	magic │ length of the header, 4 bytes │ its CRC, 4 bytes │ header, JSON │ columns, packed
//
// Numbers are little-endian, sums CRC-32C.
const magic = "nlhist1\n"

// Bounds of a segment.
const (
	SegmentRowsMax = 8192 // that are written
	rowsLimit      = 1 << 20
	headerMax      = 1 << 20
	columnMax      = 256 << 20
)

// ErrDamaged is matched by errors about a segment that is not what was written.
var ErrDamaged = errors.New("segment of the history is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header says what a segment holds.
type Header struct {
	After   uint64           `json:"after"`   // it holds all rows behind this index of the log
	Through uint64           `json:"through"` // and up to this one
	Rows    int              `json:"rows"`
	Begin   structs.UnixNano `json:"begin"` // earliest start of a row
	End     structs.UnixNano `json:"end"`   // latest end
	Columns []columnHeader   `json:"columns"`
}

type columnHeader struct {
	Name string `json:"name"`
	Text bool   `json:"text,omitempty"`
	At   int64  `json:"at"` // behind the header
	Size int    `json:"size"`
	Raw  int    `json:"raw"` // bytes before they were packed
	CRC  uint32 `json:"crc"` // of what is packed
}

// Encode makes a segment of the rows behind an index and up to another one.
func Encode(after, through uint64, rows []structs.HistoryRow) ([]byte, error) {
	header := Header{After: after, Through: through, Rows: len(rows)}
	for i := range rows {
		if row := &rows[i]; header.Begin == 0 || row.Start < header.Begin {
			header.Begin = row.Start
		}
		header.End = max(header.End, rows[i].End)
	}
	var body []byte
	for _, f := range fields() {
		var raw []byte
		if f.text != nil {
			raw = packTexts(rows, f)
		} else {
			raw = packNumbers(rows, f)
		}
		packed, err := press(raw)
		if err != nil {
			return nil, fmt.Errorf("pack column %s: %w", f.name, err)
		}
		header.Columns = append(header.Columns, columnHeader{
			Name: f.name, Text: f.text != nil, At: int64(len(body)), Size: len(packed), Raw: len(raw), CRC: crc32.Checksum(packed, castagnoli),
		})
		body = append(body, packed...)
	}
	head, err := json.Marshal(&header)
	if err != nil {
		return nil, fmt.Errorf("encode segment: %w", err)
	}
	out := append([]byte(nil), magic...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(head, castagnoli))
	return append(append(out, head...), body...), nil
}

// Segment reads one.
type Segment struct {
	Header
	from io.ReaderAt
	body int64 // where the columns begin
}

// Open reads the header of a segment.
func Open(from io.ReaderAt) (*Segment, error) {
	begin := make([]byte, len(magic)+8)
	if _, err := from.ReadAt(begin, 0); err != nil {
		return nil, damaged("header", err)
	}
	size, sum := binary.LittleEndian.Uint32(begin[len(magic):]), binary.LittleEndian.Uint32(begin[len(magic)+4:])
	if !bytes.HasPrefix(begin, []byte(magic)) || size > headerMax {
		return nil, damaged("header", nil)
	}
	head := make([]byte, size)
	if _, err := from.ReadAt(head, int64(len(begin))); err != nil {
		return nil, damaged("header", err)
	}
	if crc32.Checksum(head, castagnoli) != sum {
		return nil, damaged("header", nil)
	}
	s := &Segment{from: from, body: int64(len(begin)) + int64(size)}
	if err := json.Unmarshal(head, &s.Header); err != nil {
		return nil, damaged("header", err)
	}
	if s.Rows < 0 || s.Rows > rowsLimit || s.Through < s.After {
		return nil, damaged("header", nil)
	}
	return s, nil
}

func damaged(what string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: %s", ErrDamaged, what)
	}
	return fmt.Errorf("%w: %s: %w", ErrDamaged, what, err)
}

// column reads the bytes of a column; nil when the segment has none of that name and
// form.
func (s *Segment) column(name string, text bool) ([]byte, error) {
	for _, c := range s.Columns {
		if c.Name != name || c.Text != text {
			continue
		}
		if c.Size < 0 || c.Size > columnMax || c.Raw < 0 || c.Raw > columnMax || c.At < 0 {
			return nil, damaged(name, nil)
		}
		packed := make([]byte, c.Size)
		if _, err := s.from.ReadAt(packed, s.body+c.At); err != nil {
			return nil, damaged(name, err)
		}
		if crc32.Checksum(packed, castagnoli) != c.CRC {
			return nil, damaged(name, nil)
		}
		raw, err := unpress(packed, c.Raw)
		if err != nil {
			return nil, damaged(name, err)
		}
		return raw, nil
	}
	return nil, nil
}

// Numbers reads a column of numbers; zeros where the segment is older than the column.
func (s *Segment) Numbers(name string) ([]int64, error) {
	raw, err := s.column(name, false)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return make([]int64, s.Rows), nil
	}
	numbers, err := unpackNumbers(raw, s.Rows)
	if err != nil {
		return nil, damaged(name, err)
	}
	return numbers, nil
}

// Texts reads a column of texts; empty ones where the segment is older than the column.
func (s *Segment) Texts(name string) (*Texts, error) {
	raw, err := s.column(name, true)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return &Texts{Words: []string{""}, At: make([]uint32, s.Rows)}, nil
	}
	texts, err := unpackTexts(raw, s.Rows)
	if err != nil {
		return nil, damaged(name, err)
	}
	return texts, nil
}

// All reads the rows whole.
func (s *Segment) All() ([]structs.HistoryRow, error) {
	rows := make([]structs.HistoryRow, s.Rows)
	for _, c := range s.Columns {
		f, known := fieldNamed(c.Name)
		if !known || c.Text != (f.text != nil) {
			continue // of a later version
		}
		if c.Text {
			texts, err := s.Texts(c.Name)
			if err != nil {
				return nil, err
			}
			for i := range rows {
				f.set(&rows[i], 0, texts.Of(i))
			}
			continue
		}
		numbers, err := s.Numbers(c.Name)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			f.set(&rows[i], numbers[i], "")
		}
	}
	return rows, nil
}
