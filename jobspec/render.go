package jobspec

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"nomadlike/internal/messages"
)

// Style is how diagnostics are shown.
type Style struct {
	Language messages.Language
	Color    bool // with ANSI colours, for terminals
}

// ANSI sequences of a coloured rendering.
const (
	ansiReset  = "\x1b[0m"
	ansiBold   = "\x1b[1m"
	ansiRed    = "\x1b[1;31m"
	ansiYellow = "\x1b[1;33m"
	ansiCyan   = "\x1b[36m"
	ansiDim    = "\x1b[2m"
)

// Render writes the diagnostics for people: for each what is wrong, the file
// and line with the part in question underlined, and a hint; then how many
// there were. Nothing is written when there are none.
func (d Diagnostics) Render(w io.Writer, style Style) error {
	out := bufio.NewWriter(w)
	r := renderer{out: out, style: style}
	for i, one := range d {
		if i > 0 {
			fmt.Fprintln(out)
		}
		r.diagnostic(one)
	}
	if len(d) > 1 {
		fmt.Fprintln(out)
		fmt.Fprintln(out, messages.Textf(style.Language, "jobspec.render.count",
			"errors", d.Count(SeverityError), "warnings", d.Count(SeverityWarning)))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write diagnostics: %w", err)
	}
	return nil
}

type renderer struct {
	out   *bufio.Writer
	style Style
}

func (r *renderer) diagnostic(d *Diagnostic) {
	title, color := "jobspec.render.error", ansiRed
	if d.Severity == SeverityWarning {
		title, color = "jobspec.render.warning", ansiYellow
	}
	fmt.Fprintf(r.out, "%s%s\n",
		r.paint(color, messages.Text(r.style.Language, title, nil)), r.paint(ansiBold, printableText(d.Text(r.style.Language))))
	r.place(d)
	if hint := d.Hint(r.style.Language); hint != "" {
		label := messages.Text(r.style.Language, "jobspec.render.hint", nil)
		lines := strings.Split(printableText(hint), "\n")
		fmt.Fprintf(r.out, "\n  %s%s\n", r.paint(ansiCyan, label), lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(r.out, "  %s\n", line)
		}
	}
}

// place shows the file, the line and what is underlined in it.
func (r *renderer) place(d *Diagnostic) {
	if d.Range.File == "" {
		return
	}
	id := "jobspec.render.line"
	switch {
	case d.Range.Start.Line == 0:
		id = "jobspec.render.source"
	case d.Context != "":
		id = "jobspec.render.line_in"
	}
	fmt.Fprintf(r.out, "\n  %s\n", messages.Textf(r.style.Language, id,
		"source", printableText(d.Range.File), "number", d.Range.Start.Line, "context", printableText(d.Context)))
	if d.Range.Start.Line == 0 {
		return
	}
	number := strconv.Itoa(d.Range.Start.Line)
	gutter := strings.Repeat(" ", len(number))
	fmt.Fprintf(r.out, "  %s %s\n", r.paint(ansiDim, number+" │"), d.Snippet.Text)
	color := ansiRed
	if d.Severity == SeverityWarning {
		color = ansiYellow
	}
	fmt.Fprintf(r.out, "  %s %s%s\n", r.paint(ansiDim, gutter+" │"),
		strings.Repeat(" ", d.Snippet.Column), r.paint(color, strings.Repeat("^", d.Snippet.Width)))
}

func (r *renderer) paint(color, text string) string {
	if !r.style.Color {
		return text
	}
	return color + text + ansiReset
}

// printableText makes a text that may hold values from outside safe for a
// terminal; line breaks stay.
func printableText(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c == '\n' {
			b.WriteRune(c)
			continue
		}
		shown, _ := printableRune(c)
		b.WriteString(shown)
	}
	return b.String()
}
