package history

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"

	"nomadlike/nomadlike/structs"
)

// field is how one field of a row is a column: as a whole number, or as a text.
type field struct {
	name   string
	number func(*structs.HistoryRow) int64
	text   func(*structs.HistoryRow) string
	set    func(row *structs.HistoryRow, number int64, text string)
}

// tagsSeparator stands between two tags; no tag may hold it.
const tagsSeparator = ","

// fields lists the columns of a row, in the order of its fields. A column is found by its
// name: rows of a later version may have more, and those of an earlier one fewer.
var fields = sync.OnceValue(func() []field {
	var list []field
	row := reflect.TypeFor[structs.HistoryRow]()
	for i := range row.NumField() {
		name, _, _ := strings.Cut(row.Field(i).Tag.Get("json"), ",")
		list = append(list, fieldOf(name, i, row.Field(i).Type))
	}
	return list
})

// fieldOf makes a column of one field.
func fieldOf(name string, at int, of reflect.Type) field {
	value := func(row *structs.HistoryRow) reflect.Value { return reflect.ValueOf(row).Elem().Field(at) }
	switch of.Kind() {
	case reflect.Int, reflect.Int64:
		return field{
			name:   name,
			number: func(row *structs.HistoryRow) int64 { return value(row).Int() },
			set:    func(row *structs.HistoryRow, n int64, _ string) { value(row).SetInt(n) },
		}
	case reflect.Uint64:
		return field{
			name:   name,
			number: func(row *structs.HistoryRow) int64 { return int64(value(row).Uint()) },
			set:    func(row *structs.HistoryRow, n int64, _ string) { value(row).SetUint(uint64(n)) },
		}
	case reflect.Bool:
		return field{
			name: name,
			number: func(row *structs.HistoryRow) int64 {
				if value(row).Bool() {
					return 1
				}
				return 0
			},
			set: func(row *structs.HistoryRow, n int64, _ string) { value(row).SetBool(n != 0) },
		}
	case reflect.String:
		return field{
			name: name,
			text: func(row *structs.HistoryRow) string { return value(row).String() },
			set:  func(row *structs.HistoryRow, _ int64, text string) { value(row).SetString(text) },
		}
	case reflect.Slice:
		return field{
			name: name,
			text: func(row *structs.HistoryRow) string { return strings.Join(row.Tags, tagsSeparator) },
			set: func(row *structs.HistoryRow, _ int64, text string) {
				if text != "" {
					row.Tags = strings.Split(text, tagsSeparator)
				}
			},
		}
	case reflect.Map:
		return field{
			name: name,
			text: func(row *structs.HistoryRow) string { return structs.CardsText(row.Cards) },
			set:  func(row *structs.HistoryRow, _ int64, text string) { row.Cards = structs.ParseCards(text) },
		}
	}
	panic("column of the history: no form for field " + name)
}

// fieldNamed returns the column with a name.
func fieldNamed(name string) (field, bool) {
	all := fields()
	at := slices.IndexFunc(all, func(f field) bool { return f.name == name })
	if at < 0 {
		return field{}, false
	}
	return all[at], true
}

// Texts is a column of texts: each row has a place in the list of those that there are.
type Texts struct {
	Words []string
	At    []uint32 // of each row, into Words
}

// Of returns the text of a row.
func (t *Texts) Of(row int) string { return t.Words[t.At[row]] }

var errColumn = errors.New("column is not whole")

// packNumbers writes numbers as the differences between one and the next.
func packNumbers(rows []structs.HistoryRow, f field) []byte {
	var out []byte
	last := int64(0)
	for i := range rows {
		n := f.number(&rows[i])
		out = binary.AppendVarint(out, n-last)
		last = n
	}
	return out
}

func unpackNumbers(data []byte, rows int) ([]int64, error) {
	numbers := make([]int64, rows)
	last := int64(0)
	for i := range numbers {
		n, size := binary.Varint(data)
		if size <= 0 {
			return nil, errColumn
		}
		data = data[size:]
		last += n
		numbers[i] = last
	}
	if len(data) > 0 {
		return nil, errColumn
	}
	return numbers, nil
}

// packTexts writes each text once, and then which one each row has.
func packTexts(rows []structs.HistoryRow, f field) []byte {
	places := make(map[string]uint64)
	var words, at []byte
	for i := range rows {
		text := f.text(&rows[i])
		place, known := places[text]
		if !known {
			place = uint64(len(places))
			places[text] = place
			words = binary.AppendUvarint(words, uint64(len(text)))
			words = append(words, text...)
		}
		at = binary.AppendUvarint(at, place)
	}
	out := binary.AppendUvarint(nil, uint64(len(places)))
	return append(append(out, words...), at...)
}

func unpackTexts(data []byte, rows int) (*Texts, error) {
	next := func() (uint64, bool) {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			return 0, false
		}
		data = data[size:]
		return n, true
	}
	count, ok := next()
	if !ok || count > uint64(rows) {
		return nil, errColumn
	}
	texts := &Texts{Words: make([]string, count), At: make([]uint32, rows)}
	for i := range texts.Words {
		size, ok := next()
		if !ok || size > uint64(len(data)) {
			return nil, errColumn
		}
		texts.Words[i] = string(data[:size])
		data = data[size:]
	}
	for i := range texts.At {
		place, ok := next()
		if !ok || place >= count {
			return nil, errColumn
		}
		texts.At[i] = uint32(place)
	}
	if len(data) > 0 {
		return nil, errColumn
	}
	return texts, nil
}

// deflaters are kept: one takes a megabyte to make.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		panic("compress history: " + err.Error()) // the level is one
	}
	return w
}}

// press compresses a column.
func press(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&out)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// unpress returns the size bytes of a column.
func unpress(data []byte, size int) ([]byte, error) {
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(data), nil); err != nil {
		return nil, err
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, fmt.Errorf("%w: %w", errColumn, err)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		return nil, errColumn
	}
	return out, nil
}
