package jobspec

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// Position is a place in a file.
type Position struct {
	Line   int `json:"line"`   // from 1
	Column int `json:"column"` // in characters, from 1
	Byte   int `json:"byte"`   // from 0
}

// Range is a part of a file; End is behind its last character. The zero Range
// is nowhere. A Range without lines names a source that is no file, such as a
// -var flag.
type Range struct {
	File  string   `json:"file"`
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Snippet is the line that a range begins on, made safe for a terminal: tabs
// and control characters are replaced, long lines are cut around the range.
type Snippet struct {
	Text   string `json:"text"`
	Column int    `json:"column"` // where the range begins, in terminal cells from 0
	Width  int    `json:"width"`  // of the range within the line, in terminal cells
}

// source is the text of one file with its lines, and the edits that made the
// text that the parser saw out of it.
type source struct {
	name    string
	text    string
	lines   []int  // byte offset of the start of each line
	inserts []int  // offsets in the edited text that hold an inserted line break, ascending
	labels  []part // labels that are to be evaluated, with their quotes, ascending
}

// part is a part of the author's text, by its offsets.
type part struct{ start, end int }

// evaluated is the part of a label that is to be evaluated and begins at an
// offset of the author's text.
func (s *source) evaluated(start int) (part, bool) {
	i, found := sort.Find(len(s.labels), func(i int) int { return start - s.labels[i].start })
	if !found {
		return part{}, false
	}
	return s.labels[i], true
}

func newSource(name string, text []byte) *source {
	lines := make([]int, 1, bytes.Count(text, []byte{'\n'})+1)
	s := &source{name: name, text: string(text), lines: lines}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// origin maps an offset in the edited text to the author's text.
func (s *source) origin(offset int) int {
	return min(offset-sort.SearchInts(s.inserts, offset), len(s.text))
}

// position finds the line and column of an offset in the author's text.
func (s *source) position(offset int) Position {
	offset = max(0, min(offset, len(s.text)))
	line := sort.SearchInts(s.lines, offset+1) - 1
	return Position{
		Line:   line + 1,
		Column: utf8.RuneCountInString(s.text[s.lines[line]:offset]) + 1,
		Byte:   offset,
	}
}

// span is the range between two offsets in the author's text.
func (s *source) span(start, end int) Range {
	return Range{File: s.name, Start: s.position(start), End: s.position(max(start, end))}
}

// rangeOf maps what the parser calls a range.
func (s *source) rangeOf(r hcl.Range) Range {
	return s.span(s.origin(r.Start.Byte), s.origin(r.End.Byte))
}

// Bounds of a snippet, in characters.
const (
	snippetMax    = 120 // shown of one line
	snippetBefore = 40  // shown before the range when the line is cut
	tabCells      = 4
)

// snippet shows the line on which r begins; the zero Snippet when r lies
// nowhere in s.
func (s *source) snippet(r Range) Snippet {
	if r.Start.Line < 1 || r.Start.Line > len(s.lines) {
		return Snippet{}
	}
	start := s.lines[r.Start.Line-1]
	end := len(s.text)
	if r.Start.Line < len(s.lines) {
		end = s.lines[r.Start.Line] - 1
	}
	line := strings.TrimSuffix(s.text[start:end], "\r")
	from, to := min(r.Start.Byte-start, len(line)), min(r.End.Byte-start, len(line))
	if r.End.Line > r.Start.Line {
		to = len(strings.TrimRight(line, " \t"))
	}
	var out Snippet
	var b strings.Builder
	first := cutBefore(line, from)
	if first > 0 {
		b.WriteString("…")
	}
	cells, shown := utf8.RuneCountInString(b.String()), 0
	for i, r := range line[first:] {
		i += first
		if i == from {
			out.Column = cells
		}
		if shown == snippetMax {
			b.WriteString("…")
			break
		}
		text, width := printableRune(r)
		b.WriteString(text)
		if i >= from && i < to {
			out.Width += width
		}
		cells += width
		shown++
	}
	if from >= len(line) {
		out.Column = cells
	}
	out.Text, out.Width = b.String(), max(1, out.Width)
	return out
}

// cutBefore is where a line that is too long to be shown whole is shown from.
func cutBefore(line string, from int) int {
	if utf8.RuneCountInString(line) <= snippetMax {
		return 0
	}
	for range snippetBefore {
		if from == 0 {
			return 0
		}
		_, size := utf8.DecodeLastRuneInString(line[:from])
		from -= size
	}
	return from
}

// printableRune returns what a terminal may be shown for r, and how many cells
// that takes.
func printableRune(r rune) (string, int) {
	switch {
	case r == '\t':
		return strings.Repeat(" ", tabCells), tabCells
	case r < 0x20 || r == 0x7f || r == utf8.RuneError:
		return "\uFFFD", 1
	case r >= 0x80 && r < 0xa0, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r == 0xfeff:
		text := fmt.Sprintf("<%04x>", r) // invisible, or turns the direction of the text
		return text, len(text)
	case wide(r):
		return string(r), 2
	}
	return string(r), 1
}

// wide reports whether a character takes two cells: East Asian wide and
// full-width characters, and emoji.
func wide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	return false
}
