package config

import (
	"embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"

	"nomadlike/internal/messages"
)

//go:generate go test -count=1 -run TestReferencePages -rewrite .

// sample is a configuration with every block and setting, for the examples of the page.
//
//go:embed reference/agent.hcl
var sample embed.FS

// sampleFile is where the sample lies in this package.
const sampleFile = "reference/agent.hcl"

// Reference is the page about the configuration of agents: every block and setting with
// its type, default, an example and its meaning. All but the meaning comes from the walk
// that reads and checks them. A setting without a text, or without an example, is an
// error.
func Reference(language messages.Language) (string, error) {
	p, err := newReferencePage(language)
	if err != nil {
		return "", err
	}
	page := p.render()
	for id := range p.said {
		if !messages.Has(language, id) {
			return "", fmt.Errorf("the catalogue has no text %s", id)
		}
	}
	return page, nil
}

// ReferenceTexts lists the ids of the texts that the page is made of.
func ReferenceTexts() ([]string, error) {
	p, err := newReferencePage(messages.English)
	if err != nil {
		return nil, err
	}
	p.render()
	return slices.Sorted(maps.Keys(p.said)), nil
}

// entry is one block or setting of the configuration.
type entry struct {
	path, name string
	label      string // of a block
	many       bool
	depth      int    // of the block, or of that of the setting
	value      *value // nil: a block
	settings   []entry
}

// describer lists the blocks that it visits, each with its settings, an outer one
// before those in it.
type describer struct {
	at   entry
	into *[]entry
}

// describe lists the blocks of a configuration; the first is the file itself. The values
// are those of the settings, of which every type of blocks that stands several times is
// looked at as a whole.
func describe(s *Settings) []entry {
	var blocks []entry
	d := &describer{into: &blocks}
	d.visit(func(v visitor) { walkSettings(v, s, new(Config)) })
	return blocks
}

// visit adds a block, and then what stands in it.
func (d *describer) visit(walks ...func(visitor)) {
	at := len(*d.into)
	*d.into = append(*d.into, d.at)
	inner := &describer{entry{path: d.at.path, depth: d.at.depth}, new([]entry)}
	for _, walk := range walks {
		walk(inner)
	}
	(*d.into)[at].settings = inner.at.settings
	for _, block := range *inner.into {
		if there := slices.IndexFunc(*d.into, func(one entry) bool { return one.path == block.path }); there < 0 {
			*d.into = append(*d.into, block)
		} else {
			for _, setting := range block.settings {
				(*d.into)[there].take(setting)
			}
		}
	}
}

func (d *describer) label(*string)        {}
func (d *describer) rule(func(*resolver)) {}

func (d *describer) setting(name string, v *value) {
	if !v.flagOnly {
		d.at.take(entry{path: below(d.at.path, name), name: name, depth: d.at.depth, value: v})
	}
}

// take adds a setting, or replaces one that says nothing.
func (e *entry) take(setting entry) {
	at := slices.IndexFunc(e.settings, func(one entry) bool { return one.path == setting.path })
	switch {
	case at < 0:
		e.settings = append(e.settings, setting)
	case setting.value.given():
		e.settings[at] = setting
	}
}

func (d *describer) block(b block) {
	inner := &describer{entry{path: below(d.at.path, b.name), name: b.name, label: b.label, many: b.many, depth: d.at.depth + 1}, d.into}
	walks := []func(visitor){b.look}
	if b.many {
		for i := range b.count {
			walks = append(walks, func(v visitor) { b.walk(v, i) })
		}
	}
	inner.visit(walks...)
}

// referencePage is the page while it is made.
type referencePage struct {
	language messages.Language
	blocks   []entry         // with the values of the sample
	said     map[string]bool // ids of texts
	out      strings.Builder
}

func newReferencePage(language messages.Language) (*referencePage, error) {
	text, err := sample.ReadFile(sampleFile)
	if err != nil {
		return nil, fmt.Errorf("read the sample of a configuration: %w", err)
	}
	l := newLoader(language)
	settings := l.layer(sampleFile, text)
	if l.diagnostics.HasErrors() {
		return nil, fmt.Errorf("read the sample of a configuration: %w", l.diagnostics)
	}
	p := &referencePage{language: language, blocks: describe(&settings), said: make(map[string]bool)}
	for _, block := range p.blocks {
		for _, setting := range block.settings {
			if !setting.value.given() {
				return nil, fmt.Errorf("the sample has no %s", setting.path)
			}
		}
	}
	return p, nil
}

// say renders a text of the page.
func (p *referencePage) say(id string, params ...any) string {
	id = "agentfile." + id
	p.said[id] = true
	return messages.Textf(p.language, id, params...)
}

// shared renders a text of all pages about files.
func (p *referencePage) shared(id string, params ...any) string {
	return messages.Textf(p.language, "jobfile."+id, params...)
}

func (p *referencePage) render() string {
	fmt.Fprintf(&p.out, "# %s\n\n%s\n", p.say("title"), p.say("intro"))
	for _, block := range p.blocks {
		p.section(block)
	}
	return p.out.String()
}

// section writes about one block: its heading, its meaning, and a table of its
// label and settings.
func (p *referencePage) section(block entry) {
	if block.path != "" {
		fmt.Fprintf(&p.out, "\n%s %s\n\n%s", strings.Repeat("#", min(block.depth, 2)+1), strings.ReplaceAll(block.path, ".", " › "), p.say("block."+block.path))
		if block.many {
			p.out.WriteString(p.shared("many"))
		}
		p.out.WriteString("\n")
	}
	header := fmt.Sprintf("\n| %s | %s | %s | %s | %s |\n|---|---|---|---|---|\n",
		p.shared("argument"), p.shared("type"), p.shared("default"), p.shared("example"), p.shared("meaning"))
	if block.label != "" {
		fmt.Fprintf(&p.out, "%s| %s | %s | | %s | %s |\n", header, p.shared("label"), p.say("kind.text"), code(strconv.Quote(p.labelOf(block))), cell(p.say("label."+block.path)))
		header = ""
	}
	for _, setting := range block.settings {
		p.out.WriteString(header)
		header = ""
		fmt.Fprintf(&p.out, "| `%s` | %s | %s | %s | %s |\n", setting.name, p.typeOf(setting.value), code(defaultOf(setting.value)), code(example(setting.value)),
			cell(p.say(setting.path)+p.marks(setting.value)))
	}
}

// labelOf is an example of a label.
func (p *referencePage) labelOf(block entry) string { return p.say("label." + block.path + ".example") }

// marks says what else there is to know about a setting.
func (p *referencePage) marks(v *value) string {
	marks := ""
	if v.flag != "" {
		marks += p.say("mark.flag", "flag", v.flag)
	}
	if v.required {
		marks += p.say("mark.required")
	}
	if v.reloadable {
		marks += p.say("mark.reloadable")
	}
	if v.secret {
		marks += p.say("mark.secret")
	}
	return marks
}

// typeOf says what a setting takes, with its choices, bounds and unit.
func (p *referencePage) typeOf(v *value) string {
	kind := p.say("kind." + string(v.kind))
	if v.unit != "" {
		kind = p.say("unit."+v.unit, "kind", kind)
	}
	if choices := slices.DeleteFunc(slices.Clone(v.words), func(word string) bool { return word == "" }); len(choices) > 0 {
		return p.shared("choice", "kind", kind, "choices", "`"+strings.Join(choices, "` `")+"`")
	}
	if !v.bounded {
		return kind
	}
	low, high := v.say(v.low), v.say(v.high)
	switch {
	case high == "" && v.low == 0 && !v.open:
	case high == "" && v.open:
		kind = p.say("above", "kind", kind, "min", low)
	case high == "":
		kind = p.say("least", "kind", kind, "min", low)
	case v.open && !v.openHigh:
		kind = p.say("above_to", "kind", kind, "min", low, "max", high)
	case v.open:
		kind = p.say("between", "kind", kind, "min", low, "max", high)
	default:
		kind = p.shared("range", "kind", kind, "min", low, "max", high)
	}
	if v.zero && v.low > 0 {
		kind += p.say("or_zero", "zero", v.say(0))
	}
	return kind
}

// cell keeps a text inside of its cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func code(text string) string {
	if text == "" {
		return ""
	}
	return cell("`" + text + "`")
}

// defaultOf is what a setting is when nobody says it, as a file would say it.
func defaultOf(v *value) string {
	switch otherwise := v.otherwise.(type) {
	case nil:
		return ""
	case string:
		return strconv.Quote(otherwise)
	}
	number, err := strconv.ParseFloat(fmt.Sprintf("%d", v.otherwise), 64)
	switch {
	case err != nil:
		return fmt.Sprint(v.otherwise)
	case v.kind == kindSize, v.kind == kindSpan:
		return strconv.Quote(v.say(number))
	}
	return v.say(number)
}

// example is the value of the sample as a file says it.
func example(v *value) string {
	of := reflect.ValueOf(v.said).Elem()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	said, ok := of.Interface().(cty.Value)
	if !ok {
		kind, err := gocty.ImpliedType(of.Interface())
		if err == nil {
			said, err = gocty.ToCtyValue(of.Interface(), kind)
		}
		if err != nil {
			return ""
		}
	}
	return strings.Join(strings.Fields(string(hclwrite.TokensForValue(said).Bytes())), " ")
}
