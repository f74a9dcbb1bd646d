package importer

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"nomadlike/jobspec"
)

// source is the text of the file of another system, in UTF-8 with line feeds.
type source struct {
	name  string
	text  string
	lines []string
	crlf  bool // lines ended with carriage returns
	bom   bool // it began with a byte order mark
}

// Bounds of a line's quotation.
const (
	quoteMax   = 80  // characters of a line in a comment
	snippetMax = 100 // characters of a line under a diagnostic
)

// newSource looks at the encoding: what is no UTF-8 is refused with the line.
func newSource(name string, text []byte) (*source, *jobspec.Diagnostic) {
	src := &source{name: name}
	if len(text) > jobspec.SourceSizeMax {
		return nil, src.problem(0, "import.too_long", "import.too_long.hint", "max", jobspec.SourceSizeMax)
	}
	if bytes.HasPrefix(text, []byte{0xFF, 0xFE}) || bytes.HasPrefix(text, []byte{0xFE, 0xFF}) {
		return nil, src.problem(1, "import.utf16", "import.utf8.hint")
	}
	text, src.bom = bytes.CutPrefix(text, []byte("\ufeff"))
	src.lines = strings.Split(string(text), "\n") // for what is wrong with one
	for number, line := range bytes.Split(text, []byte("\n")) {
		switch {
		case bytes.IndexByte(line, 0) >= 0:
			return nil, src.problem(number+1, "import.nul", "import.nul.hint")
		case !utf8.Valid(line):
			return nil, src.problem(number+1, "import.utf8", "import.utf8.hint")
		}
	}
	src.text = string(text)
	if src.crlf = strings.Contains(src.text, "\r\n"); src.crlf {
		src.text = strings.ReplaceAll(src.text, "\r\n", "\n")
	}
	src.lines = strings.Split(src.text, "\n")
	if strings.TrimSpace(src.text) == "" {
		return nil, src.problem(1, "import.empty", "import.empty.hint")
	}
	return src, nil
}

// problem is a diagnostic at a line, or at the file for line 0.
func (s *source) problem(line int, id, hint string, params ...any) *jobspec.Diagnostic {
	d := &jobspec.Diagnostic{
		Severity: jobspec.SeverityError, ID: id, HintID: hint, Params: make(map[string]string),
		Range: jobspec.Range{File: s.name},
	}
	for i := 0; i+1 < len(params); i += 2 {
		d.Params[fmt.Sprint(params[i])] = quoted(fmt.Sprint(params[i+1]), 3*quoteMax)
	}
	if line < 1 {
		return d
	}
	line = min(line, max(len(s.lines), 1)) // parsers name the line behind the last
	text := ""
	if line <= len(s.lines) {
		text = s.lines[line-1]
	}
	shown := quoted(text, snippetMax)
	d.Range.Start = jobspec.Position{Line: line, Column: 1}
	d.Range.End = jobspec.Position{Line: line, Column: utf8.RuneCountInString(text) + 1}
	d.Snippet = jobspec.Snippet{Text: shown, Width: utf8.RuneCountInString(shown)}
	return d
}

// quoted is a text of the source as it may stand in a comment or a message: one
// line, printable, and not too long.
func quoted(text string, most int) string {
	var b strings.Builder
	count := 0
	for _, r := range strings.TrimSpace(text) {
		switch {
		case count == most:
			return b.String() + "…"
		case r == '\t' || r == '\n':
			r = ' '
		case !unicode.IsPrint(r):
			r = '\uFFFD'
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}
