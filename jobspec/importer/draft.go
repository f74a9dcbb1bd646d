package importer

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"nomadlike/internal/messages"
	"nomadlike/jobspec"
	"nomadlike/nomadlike/structs"
)

// kind is what became of a part of the source.
type kind int

const (
	lost     kind = iota // could not be kept
	changed              // is kept, and means something else
	check                // somebody has to look at it
	needless             // has no meaning here
	kinds
)

// origin is a place of the source.
type origin struct {
	line int
	text string // as it was written there; "" for a whole that has no one place
}

// note is a comment on a part of the source.
type note struct {
	kind kind
	from origin
	text string
}

// draft is a job file that is being made.
type draft struct {
	src      *source
	format   Format
	opts     Options
	job      *block
	notes    []note
	problems jobspec.Diagnostics
	places   map[int]origin // of the lines of the printed file
}

func newDraft(src *source, format Format, opts Options) *draft {
	if opts.Language == "" {
		opts.Language = messages.English
	}
	d := &draft{src: src, format: format, opts: opts, job: &block{name: "job"}}
	d.name(opts.Name, origin{})
	if opts.Name == "" {
		base := path.Base(strings.ReplaceAll(src.name, `\`, "/"))
		d.job.label = nameOf(strings.TrimSuffix(base, path.Ext(base)))
	}
	return d
}

// name sets the job's name, made legal where it is not.
func (d *draft) name(text string, from origin) {
	if text == "" {
		return
	}
	d.job.label = nameOf(text)
	d.job.from = from
	if d.job.label != text && from.line > 0 {
		d.say(changed, from, "import.name", "name", d.job.label)
	}
}

// project sets whose job it is.
func (d *draft) project(text string, from origin) {
	if text != "" && text[0] >= '0' && text[0] <= '9' {
		text = "project-" + text
	}
	name := nameOf(text)
	d.job.set("project", literal(name), from)
	d.say(check, from, "import.project", "name", name)
}

// say notes what became of a part of the source.
func (d *draft) say(k kind, from origin, id string, params ...any) {
	for i := 1; i < len(params); i += 2 {
		params[i] = quoted(fmt.Sprint(params[i]), 3*quoteMax)
	}
	one := note{k, from, messages.Textf(d.opts.Language, id, params...)}
	if !slices.Contains(d.notes, one) {
		d.notes = append(d.notes, one)
	}
}

// refuse notes what keeps the file from being imported at all.
func (d *draft) refuse(line int, id string, params ...any) {
	d.problems = append(d.problems, d.src.problem(line, id, id+".hint", params...))
}

func (d *draft) text(id string, params ...any) string {
	return messages.Textf(d.opts.Language, id, params...)
}

// block is a block of the job file.
type block struct {
	name, label string
	from        origin
	arguments   []argument
	blocks      []*block
	before      []string // comments in front of it
}

// argument is one argument, with what it came from.
type argument struct {
	name, value string // value in HCL
	from        []origin
	before      []string // comments in front of it
}

// set sets an argument once more, or for the first time.
func (b *block) set(name, value string, from ...origin) {
	for i := range b.arguments {
		if b.arguments[i].name == name {
			b.arguments[i].value, b.arguments[i].from = value, from
			return
		}
	}
	b.arguments = append(b.arguments, argument{name: name, value: value, from: from})
}

func (b *block) has(name string) bool {
	return slices.ContainsFunc(b.arguments, func(a argument) bool { return a.name == name })
}

// inner is the block of that name and label, which is made if there is none.
func (b *block) inner(name, label string) *block {
	for _, one := range b.blocks {
		if one.name == name && one.label == label {
			return one
		}
	}
	made := &block{name: name, label: label}
	b.blocks = append(b.blocks, made)
	return made
}

// orders are the places of a job's arguments and blocks, as people expect them.
func orders(name string) int {
	order := []string{
		"project", "type", "description", "priority", "preemptible", "nodes", "time_limit", "begin", "deadline", "max_queue_time", "stop_grace",
		"workdir", "meta", "after", "batch", "distributed", "resources", "placement", "task", "algorithm", "dataset", "model", "volume", "mount", "output",
		"restart", "elastic", "checkpoint", "notify",
	}
	if at := slices.Index(order, name); at >= 0 {
		return at
	}
	return len(order)
}

// literal is a text in HCL.
func literal(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && strings.HasPrefix(text[i+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func literals(words []string) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = literal(word)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// table is an object in HCL, one entry on a line.
func table(pairs [][2]string) string {
	var b strings.Builder
	b.WriteString("{\n")
	for _, pair := range pairs {
		name := pair[0]
		if !isWord(name) {
			name = literal(name)
		}
		b.WriteString(name + " = " + literal(pair[1]) + "\n")
	}
	b.WriteString("}")
	return b.String()
}

// isWord reports whether a text is a name that needs no quotes in HCL.
func isWord(text string) bool {
	for i, r := range text {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return text != ""
}

// heredoc is a text of several lines in HCL, as it stands.
func heredoc(text string) string {
	end := "SCRIPT"
	for strings.Contains(text, end) {
		end += "_"
	}
	escaped := strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strings.TrimSuffix(text, "\n"))
	return "<<" + end + "\n" + escaped + "\n" + end
}

// nameOf makes a legal name of a text.
func nameOf(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			if b.Len() == 0 && r <= '9' {
				b.WriteString("job-")
			}
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := b.String()
	name = strings.Trim(name[:min(len(name), structs.NameLengthMax)], "-")
	if structs.NameProblem(name) != "" {
		return "imported"
	}
	return name
}

// size is an amount of memory in HCL.
func size(bytes int64) string { return literal(structs.FormatSize(bytes)) }

// number is a number in HCL.
func number(n int) string { return strconv.Itoa(n) }
