package history

import "nomadlike/nomadlike/structs"

// Columns is a part of the history, column by column.
type Columns interface {
	// Len is the number of rows.
	Len() int
	// Numbers and Texts read a column; one that is not there has zeros, or empty texts.
	Numbers(name string) ([]int64, error)
	Texts(name string) (*Texts, error)
}

var (
	_ Columns = (*Segment)(nil)
	_ Columns = Loose(nil)
)

// Len implements Columns.
func (s *Segment) Len() int { return s.Rows }

// Loose is rows that are in no segment yet.
type Loose []structs.HistoryRow

// Len implements Columns.
func (l Loose) Len() int { return len(l) }

// Numbers implements Columns.
func (l Loose) Numbers(name string) ([]int64, error) {
	numbers := make([]int64, len(l))
	if f, known := fieldNamed(name); known && f.number != nil {
		for i := range l {
			numbers[i] = f.number(&l[i])
		}
	}
	return numbers, nil
}

// Texts implements Columns.
func (l Loose) Texts(name string) (*Texts, error) {
	texts := &Texts{At: make([]uint32, len(l))}
	f, known := fieldNamed(name)
	if !known || f.text == nil {
		texts.Words = []string{""}
		return texts, nil
	}
	places := make(map[string]uint32)
	for i := range l {
		text := f.text(&l[i])
		place, there := places[text]
		if !there {
			place = uint32(len(texts.Words))
			places[text] = place
			texts.Words = append(texts.Words, text)
		}
		texts.At[i] = place
	}
	return texts, nil
}
