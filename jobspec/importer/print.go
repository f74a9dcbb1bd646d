package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"nomadlike/jobspec"
)

// finish prints the draft and parses what it printed, as whoever runs it will.
func (d *draft) finish() (*Result, jobspec.Diagnostics) {
	file := d.print()
	_, _, diagnostics := jobspec.Parse(d.src.name, file, jobspec.Options{})
	var problems jobspec.Diagnostics
	for _, one := range diagnostics {
		if one.Severity != jobspec.SeverityError {
			continue
		}
		from := d.places[one.Range.Start.Line]
		problem := d.src.problem(from.line, one.ID, one.HintID)
		problem.Params, problem.Path = one.Params, one.Path
		problems = append(problems, problem)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	result := &Result{Format: d.format, File: file}
	for _, one := range d.notes {
		switch one.kind {
		case lost:
			result.Lost++
		case changed, check:
			result.Changed++
		}
	}
	return result, nil
}

// printer writes the lines of a job file and remembers where each came from.
type printer struct {
	d      *draft
	out    strings.Builder
	line   int
	places map[int]origin
}

func (p *printer) write(from origin, text string) {
	for _, line := range strings.Split(text, "\n") {
		p.line++
		p.places[p.line] = from
		p.out.WriteString(line + "\n")
	}
}

func (d *draft) print() []byte {
	p := &printer{d: d, places: make(map[int]origin)}
	d.places = p.places
	p.head()
	p.block(d.job)
	text := []byte(p.out.String())
	if formatted, problems := jobspec.Format(d.src.name, text); !problems.HasErrors() {
		return formatted
	}
	return text // what is wrong with it is told when it is parsed
}

// head is the comment in front of the job.
func (p *printer) head() {
	d := p.d
	p.comment(d.text("import.head", "source", quoted(d.src.name, quoteMax), "what", d.text("import.what_"+string(d.format))))
	titles := [kinds]string{"import.title_lost", "import.title_changed", "import.title_check", "import.title_needless"}
	for k := range kinds {
		var of []note
		for _, one := range d.notes {
			if one.kind == k {
				of = append(of, one)
			}
		}
		if len(of) == 0 {
			continue
		}
		slices.SortStableFunc(of, func(a, b note) int { return cmp.Compare(a.from.line, b.from.line) })
		p.comment("")
		p.comment(d.text(titles[k]))
		for _, one := range of {
			p.comment("  " + p.d.place(one.from) + one.text)
		}
	}
	p.write(origin{}, "")
}

// place is the beginning of a comment about a part of the source.
func (d *draft) place(from origin) string {
	switch {
	case from.line == 0:
		return ""
	case from.text == "":
		return d.text("import.line", "line", from.line) + " "
	}
	return d.text("import.line", "line", from.line) + " " + quoted(from.text, quoteMax) + "  "
}

// commentMax is where a comment is broken, at a blank.
const commentMax = 118 // characters

func (p *printer) comment(text string) {
	text = strings.ReplaceAll(text, "\n", " ")
	indent := ""
	for {
		head, rest := broken(text, commentMax-len(indent))
		p.write(origin{}, strings.TrimRight("# "+indent+head, " "))
		if rest == "" {
			return
		}
		text, indent = rest, "      "
	}
}

// broken parts a text at the last blank that leaves the head short enough.
func broken(text string, most int) (head, rest string) {
	count, blank := 0, -1
	for i, r := range text {
		if count++; count > most && blank > 0 {
			return text[:blank], strings.TrimLeft(text[blank:], " ")
		}
		if r == ' ' && strings.TrimSpace(text[:i]) != "" {
			blank = i
		}
	}
	return text, ""
}

func (p *printer) block(b *block) {
	head := b.name
	if b.label != "" {
		head += " " + literal(b.label)
	}
	for _, line := range b.before {
		p.comment(line)
	}
	if len(b.arguments)+len(b.blocks) == 0 {
		p.write(b.from, head+" {}"+p.tail([]origin{b.from}))
		return
	}
	p.write(b.from, head+" {"+p.tail([]origin{b.from}))
	slices.SortStableFunc(b.arguments, func(x, y argument) int { return cmp.Compare(orders(x.name), orders(y.name)) })
	slices.SortStableFunc(b.blocks, func(x, y *block) int { return cmp.Compare(orders(x.name), orders(y.name)) })
	for _, a := range b.arguments {
		p.argument(&a)
	}
	for i, inner := range b.blocks {
		if i > 0 && b.name == "job" || len(b.arguments) > 0 && i == 0 {
			p.write(origin{}, "")
		}
		p.block(inner)
	}
	p.write(origin{}, "}")
}

func (p *printer) argument(a *argument) {
	for _, line := range a.before {
		p.comment(line)
	}
	first := origin{}
	if len(a.from) > 0 {
		first = a.from[0]
	}
	tail := p.tail(a.from)
	if strings.Contains(a.value, "\n") { // a comment cannot stand behind a heredoc
		if tail != "" {
			p.write(first, strings.TrimSpace(tail))
		}
		tail = ""
	}
	p.write(first, fmt.Sprintf("%s = %s%s", a.name, a.value, tail))
}

// tail is the comment behind an argument: where it came from.
func (p *printer) tail(from []origin) string {
	var parts []string
	for _, one := range from {
		if one.line > 0 {
			parts = append(parts, strings.TrimSpace(p.d.place(one)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " # " + strings.Join(parts, "; ")
}
