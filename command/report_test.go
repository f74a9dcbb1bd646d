package command

import (
	"bytes"
	"encoding/csv"
	"testing"
)

// No cell of a report is a formula to a spreadsheet, whatever a name says.
func TestNoFormulas(t *testing.T) {
	var out bytes.Buffer
	row := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "'x", "|calc", "plain", "a=b", "1.5", "", "中文"}
	if err := writeCSV(&out, [][]string{row}); err != nil {
		t.Fatal(err)
	}
	cells, err := csv.NewReader(&out).Read()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"'=1+1", "'+1", "'-1", "'@SUM(A1)", `\u0009x`, `\u000dx`, "''x", "'|calc", "plain", "a=b", "1.5", "", "中文"}
	for i, cell := range cells {
		if cell != want[i] {
			t.Errorf("%q is written as %q, want %q", row[i], cell, want[i])
		}
	}
}
