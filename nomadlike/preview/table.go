package preview

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// table is the beginning of lines with columns, the first of which names them. What
// cannot be read so, or has one column, is no table: it is shown as text.
func table(text string, comma rune, cut bool) (Shown, bool) {
	if comma == ',' && strings.Count(firstLine(text), ";") > strings.Count(firstLine(text), ",") {
		comma = ';' // as programs write where the comma divides numbers
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comma, reader.FieldsPerRecord, reader.LazyQuotes, reader.ReuseRecord = comma, -1, true, true
	shown := Shown{Kind: KindTable, Rows: [][]string{}}
	for len(shown.Rows) < RowsMax {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			shown.More = cut
			break
		}
		if err != nil {
			return Shown{}, false
		}
		if reader.InputOffset() == int64(len(text)) && cut && shown.Columns != nil {
			break // the last record may be half a one
		}
		if shown.Columns == nil {
			if len(record) < 2 {
				return Shown{}, false
			}
			for _, name := range record[:min(len(record), ColumnsMax)] {
				shown.Columns = append(shown.Columns, TableColumn{Name: clip(name)})
			}
			continue
		}
		row := make([]string, 0, min(len(record), ColumnsMax))
		for _, cell := range record[:min(len(record), ColumnsMax)] {
			row = append(row, clip(cell))
		}
		shown.Rows = append(shown.Rows, row)
	}
	shown.More = shown.More || cut || reader.InputOffset() < int64(len(text))
	return shown, shown.Columns != nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// clip bounds what is shown of a cell.
func clip(text string) string {
	if utf8.RuneCountInString(text) <= CellMax {
		return text
	}
	return string([]rune(text)[:CellMax]) + "…"
}
