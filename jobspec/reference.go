package jobspec

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

//go:generate go test -count=1 -run TestReferencePages -rewrite .

// samples are files with every block and argument, for the examples of the
// pages.
//
//go:embed reference
var samples embed.FS

// Kinds lists the kinds of files, by the type of their one block.
func Kinds() []string {
	var kinds []string
	for _, n := range nouns() {
		kinds = append(kinds, n.kind)
	}
	return kinds
}

// Reference is the page about the files of a kind: every block and argument with
// its type, default, an example and its meaning. All but the meaning comes from
// the walk, the defaults and the checks. An unknown kind is a CodeNotFound error, and
// a field without a text is an error.
func Reference(kind string, language messages.Language) (string, error) {
	for _, n := range nouns() {
		if n.kind != kind {
			continue
		}
		p, err := newReferencePage(n, language)
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
	return "", structs.NewError(structs.CodeNotFound, "jobspec.file_kind", "name", kind, "choices", strings.Join(Kinds(), ", "))
}

// ReferenceTexts lists the ids of the texts that the pages are made of.
func ReferenceTexts() ([]string, error) {
	all := make(map[string]bool)
	for _, n := range nouns() {
		p, err := newReferencePage(n, messages.English)
		if err != nil {
			return nil, err
		}
		p.render()
		maps.Copy(all, p.said)
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// referencePage is one page while it is made.
type referencePage struct {
	noun     noun
	language messages.Language
	entries  []entry           // with the values of the sample
	labels   map[string]string // of the sample's blocks, by the path of the label
	foreign  map[string]bool   // paths of arguments that blocks like theirs may have and theirs may not
	said     map[string]bool   // ids of texts
	out      strings.Builder
}

func newReferencePage(n noun, language messages.Language) (*referencePage, error) {
	text, err := samples.ReadFile("reference/" + n.kind + ".hcl")
	if err != nil {
		return nil, fmt.Errorf("read the sample of a %s: %w", n.kind, err)
	}
	of, p := n.empty(), newParser(Options{})
	diagnostics := p.read(n.kind+".hcl", text, n, func(block *hclsyntax.Block) { p.top(n, block).read(of.walk) })
	if diagnostics.HasErrors() {
		return nil, errors.New(diagnostics[0].Text(messages.English))
	}
	page := &referencePage{
		noun: n, language: language, entries: describe(n, of),
		labels: make(map[string]string), foreign: make(map[string]bool), said: make(map[string]bool),
	}
	for _, one := range page.entries {
		if one.form == formLabel {
			page.labels[one.path] = labelOf(one)
		}
	}
	for _, problem := range of.validate() {
		if slices.Contains(refusalsOfKind(), problem.ID) {
			page.foreign[withoutIndexes(problem.Path)] = true
		}
	}
	return page, nil
}

// refusalsOfKind are problems that say of an argument that its sort of block never
// has it: one walk serves algorithms, datasets, models and volumes, and one serves
// the devices of jobs and of pools.
func refusalsOfKind() []string {
	return []string{"job.prepare", "job.from", "job.annotations", "job.volume_version", "job.data_unnamed", "pool.sku_ids"}
}

// labelOf is the value of a label.
func labelOf(one entry) string {
	if label, ok := one.value.to[0].(*string); ok {
		return *label
	}
	return ""
}

// say renders a text of the pages.
func (p *referencePage) say(id string, params ...any) string {
	p.said["jobfile."+id] = true
	return messages.Textf(p.language, "jobfile."+id, params...)
}

// alike are blocks whose arguments mean what those of another block do; texts of
// their own go first.
func alike() map[string]string {
	return map[string]string{
		"job.dataset.": "job.algorithm.", "job.model.": "job.algorithm.", "job.volume.": "job.algorithm.",
		"pool.sku.device.": "job.resources.device.", "project.defaults.": "pool.defaults.", "project.ceilings.": "pool.ceilings.",
	}
}

// meaning is the text about one entry.
func (p *referencePage) meaning(path string) string {
	id := strings.TrimSuffix(p.noun.kind+"."+path, ".")
	for block, other := range alike() {
		if rest, ok := strings.CutPrefix(id, block); ok && !messages.Has(p.language, "jobfile."+id) {
			id = other + rest
		}
	}
	return p.say(id)
}

func (p *referencePage) render() string {
	fmt.Fprintf(&p.out, "# %s\n\n%s\n", p.say("title."+p.noun.kind), p.say("intro."+p.noun.kind))
	p.section("", p.noun.kind, 0, false)
	for _, one := range p.entries {
		if one.form == formBlock {
			p.section(one.path, one.path, one.depth+1, one.many && !p.onlyOnce(one))
		}
	}
	return p.out.String()
}

// section writes about one block: its heading, its meaning, and a table of its
// label and arguments.
func (p *referencePage) section(path, title string, depth int, many bool) {
	about := path
	if messages.Has(p.language, "jobfile."+p.noun.kind+"."+path+".block") {
		about += ".block" // an argument has the same name
	}
	fmt.Fprintf(&p.out, "\n%s %s\n\n%s", strings.Repeat("#", min(depth, 2)+2), strings.ReplaceAll(title, ".", " › "), p.meaning(about))
	if many {
		p.out.WriteString(p.say("many"))
	}
	p.out.WriteString("\n")
	header := fmt.Sprintf("\n| %s | %s | %s | %s | %s |\n|---|---|---|---|---|\n", p.say("argument"), p.say("type"), p.say("default"), p.say("example"), p.say("meaning"))
	for _, one := range p.entries {
		if one.form == formBlock || one.block != path || p.foreign[one.path] {
			continue
		}
		p.out.WriteString(header)
		header = ""
		name := "`" + one.name + "`"
		if one.form == formLabel {
			name = p.say("label")
			if one.optional {
				name = p.say("label_optional")
			}
		}
		fmt.Fprintf(&p.out, "| %s | %s | %s | %s | %s |\n", name, p.typeOf(one), code(p.defaultOf(one)), code(example(one)), cell(p.meaning(labelPath(one))))
	}
}

// onlyOnce reports whether the checks refuse the second of blocks that a file may
// name several of.
func (p *referencePage) onlyOnce(one entry) bool {
	of := p.noun.empty()
	of.walk(&bare{page: p, path: one.path, twice: true})
	of.defaults()
	return slices.ContainsFunc(of.validate(), func(problem structs.Problem) bool {
		return strings.HasSuffix(problem.Path, structs.IndexedPath(one.name, 1))
	})
}

// labelPath is where the text of an entry stands: that of a label that is the
// block itself has a name of its own beside the block's.
func labelPath(one entry) string {
	if one.form == formLabel && one.name == "" {
		return one.path + ".label"
	}
	return one.path
}

// cell keeps a text inside of its cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func code(text string) string {
	if text == "" {
		return ""
	}
	return cell("`" + text + "`")
}

// typeOf says what an argument takes, with its choices or bounds where the checks
// of the noun name them.
func (p *referencePage) typeOf(one entry) string {
	kind := p.say("kind." + string(one.value.kind))
	choices, low, high := p.refused(one)
	switch {
	case len(choices) > 0:
		return p.say("choice", "kind", kind, "choices", "`"+strings.Join(choices, "` `")+"`")
	case high == "":
		return kind
	}
	if isZero(low) && one.value.least != "" {
		low = one.value.least
	}
	if isZero(low) {
		return p.say("most", "kind", kind, "max", high)
	}
	return p.say("range", "kind", kind, "min", low, "max", high)
}

func isZero(bound string) bool { return bound == "0" || bound == "0s" || bound == "0B" }

// refused sets a value that cannot be in a noun that contains nothing else, and returns
// the choices and bounds that the checks name.
func (p *referencePage) refused(one entry) (choices []string, low, high string) {
	for _, with := range surroundings() {
		of := p.noun.empty()
		of.walk(&bare{page: p, path: one.path, with: with, wrong: true})
		of.defaults()
		for _, problem := range of.validate() {
			if withoutIndexes(problem.Path) != one.path {
				continue
			}
			if high == "" && problem.ID == "job.range" && !isZero(problem.Params["max"]) {
				low, high = plain(problem.Params["min"]), plain(problem.Params["max"])
			}
			for choice := range strings.SplitSeq(problem.Params["choices"], ", ") {
				if choice != "" && !slices.Contains(choices, choice) {
					choices = append(choices, choice)
				}
			}
		}
	}
	return choices, low, high
}

// surrounding is what the checks of an argument may depend on.
type surrounding struct {
	nodes        int
	mode, driver string
}

// surroundings are the widest job and the smallest one in every mode and driver.
func surroundings() []surrounding {
	var all []surrounding
	for _, nodes := range []int{structs.NodesMax, 1} {
		for _, mode := range structs.Modes() {
			for _, driver := range []string{structs.DriverExec, structs.DriverDocker} {
				all = append(all, surrounding{nodes, string(mode), driver})
			}
		}
	}
	return all
}

// plain writes a large number without an exponent.
func plain(bound string) string {
	if number, err := strconv.ParseFloat(bound, 64); err == nil {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return bound
}

// defaultOf is what an argument has when its block stands and it does not, as a
// file would say it.
func (p *referencePage) defaultOf(one entry) string {
	if one.form == formLabel {
		return ""
	}
	of := p.noun.empty()
	of.walk(&bare{page: p, path: one.path, with: surrounding{mode: p.labels["distributed.mode"]}})
	for _, chosen := range of.defaults() {
		if withoutIndexes(chosen.Path) != one.path {
			continue
		}
		switch one.value.kind {
		case kindText, kindPlace, kindSize, kindSpan:
			return strconv.Quote(chosen.Value)
		}
		return chosen.Value
	}
	return ""
}

var indexes = regexp.MustCompile(`\[\d+\]`)

func withoutIndexes(path string) string { return indexes.ReplaceAllString(path, "") }

// example is the value of the sample as a file says it.
func example(one entry) string {
	scratch := writer{hclwrite.NewBlock("x", nil)}
	one.value.write(scratch, "x")
	written := scratch.to.Body().GetAttribute("x")
	if written == nil {
		return ""
	}
	return strings.Join(strings.Fields(string(written.Expr().BuildTokens(nil).Bytes())), " ")
}

// bare fills a noun with the blocks on the way to a path, their labels and, when
// it is to be wrong, a value there that nobody can want.
type bare struct {
	page  *referencePage
	at    string // path of the block that it is in
	path  string
	with  surrounding // nodes and driver only when the value is to be wrong
	wrong bool
	twice bool // the block at the path stands twice
}

func (b *bare) label(name string, to *string, _ bool) {
	path := fieldPath(b.at, name)
	*to = b.page.labels[path]
	switch {
	case b.wrong && path == b.path:
		*to = "?"
	case path == "distributed.mode":
		*to = b.with.mode
	}
}

func (b *bare) argument(name string, v value) {
	path := fieldPath(b.at, name)
	switch to := v.to[0].(type) {
	case *int:
		if b.wrong && path == "nodes" && b.page.noun == jobNoun {
			*to = b.with.nodes
		}
	case *string:
		if b.wrong && path == "task.driver" {
			*to = b.with.driver
		}
	}
	if !b.wrong || path != b.path {
		return
	}
	switch to := v.to[0].(type) {
	case *string:
		*to = "?"
	case *int:
		*to = 1 << 40
	case **int:
		tooMany := 1 << 40
		*to = &tooMany
	case *float64:
		*to = 1 << 40
	case *int64:
		*to = 1 << 62
	case *structs.Duration:
		*to = 1 << 62
	}
}

func (b *bare) block(inner block) {
	path := fieldPath(b.at, inner.name)
	if b.path == path || strings.HasPrefix(b.path, path+".") {
		below := *b
		below.at = path
		inner.walk(&below, 0)
		if b.twice && b.path == path {
			inner.walk(&below, 1)
		}
	}
}
