package jobspec

import (
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"nomadlike/nomadlike/structs"
)

// Parse reads one job file. filename is what diagnostics call it; nothing is
// opened. When there are errors the job and the map are nil and the
// diagnostics name everything that could be found; otherwise they hold
// warnings at most, the job is valid, and the map leads its fields to their
// lines. The job holds what its author wrote: the caller still sets its
// defaults. Pure but for Options.ReadFile; any goroutine may call it.
func Parse(filename string, src []byte, opts Options) (*structs.Job, *SourceMap, Diagnostics) {
	p := newParser(opts)
	diags := p.read(filename, src, jobNoun, func(block *hclsyntax.Block) {
		p.readJob(block)
		p.validate()
	})
	if p.errors > 0 {
		return nil, nil, diags
	}
	return p.job, p.places, diags
}

func newParser(opts Options) *parser {
	p := &parser{
		opts:     opts,
		limits:   opts.Limits.withDefaults(),
		declared: make(map[string]*variable),
		named:    make(map[string]*local),
		spoiled:  make(map[string]bool),
		context:  &hcl.EvalContext{Variables: make(map[string]cty.Value)},
	}
	p.meter = &meter{steps: p.limits.Steps, text: p.limits.Text}
	p.context.Functions = p.functions()
	return p
}

// read parses a source and passes its one block, of the noun, to take.
func (p *parser) read(filename string, src []byte, of noun, take func(*hclsyntax.Block)) Diagnostics {
	p.root = p.parseFile(filename, src)
	if p.root != nil {
		p.homes = homesOf(of)
		p.places = newSourceMap(p.root, p.limits)
		p.file(of, take)
	}
	return p.diags.sorted(p.limits.Diagnostics, p.dropped)
}

// top is the reader of the one block of a file.
func (p *parser) top(of noun, block *hclsyntax.Block) *reader {
	p.places.note("", block.DefRange())
	return p.reader(block, of.kind, "")
}

// readJob reads the job block. What expressions may say of the job is known as
// soon as its label is read.
func (p *parser) readJob(block *hclsyntax.Block) {
	p.job = &structs.Job{}
	r := p.top(jobNoun, block)
	r.named = func() {
		p.rename(p.job)
		p.publishJob()
	}
	r.read(func(v visitor) { walkJob(v, p.job) })
}

// rename sets the job's name, and the ending of it, to those that it is read with.
func (p *parser) rename(job *structs.Job) {
	if p.opts.Name != "" {
		job.Name = p.opts.Name
	}
	if ending := p.opts.NameEnding; ending != "" {
		job.Name = structs.NameWithEnding(job.Name, ending)
	}
}

// parser is the reading of one job file.
type parser struct {
	opts    Options
	limits  Limits
	diags   Diagnostics
	errors  int // reported, told in full or not
	dropped int // reported but not told

	suggestions   int      // looked for
	variableOrder []string // names of declared, sorted
	localOrder    []string // names of named, sorted

	root     *file
	meter    *meter
	context  *hcl.EvalContext
	declared map[string]*variable
	named    map[string]*local

	job     *structs.Job
	homes   homes // of the names that this kind of file knows
	places  *SourceMap
	spoiled map[string]bool // fields whose value was refused: Validate need not complain again
}

// file reads the top level: variables, locals and the one block.
func (p *parser) file(top noun, take func(*hclsyntax.Block)) {
	body := p.root.body
	for _, name := range sortedAttributes(body) {
		p.fail(p.root, body.Attributes[name].NameRange, "jobspec.top_argument", "jobspec.top_argument.hint", "name", name, "block", top.kind)
	}
	var chosen *hclsyntax.Block
	for _, block := range body.Blocks {
		switch block.Type {
		case "variable", "locals":
		case top.kind:
			if chosen != nil {
				p.fail(p.root, block.DefRange(), top.twice, top.twice+".hint", "before", p.root.src.rangeOf(chosen.TypeRange).Start.Line)
				continue
			}
			chosen = block
		default:
			p.unknownTop(top.kind, block)
		}
	}
	p.variables()
	p.locals()
	if chosen == nil {
		if p.errors == 0 {
			p.report(p.root, SeverityError, p.root.src.span(0, 0), top.missing, top.missing+".hint")
		}
		return
	}
	take(chosen)
}

func (p *parser) unknownTop(kind string, block *hclsyntax.Block) {
	known := []string{kind, "variable", "locals"}
	homes := p.homes.of(block.Type, true)
	switch nearest := p.nearest(block.Type, known); {
	case len(homes) == 1:
		p.fail(p.root, block.DefRange(), "jobspec.top_block", "jobspec.home.hint", "name", block.Type, "home", homes[0])
	case len(homes) > 1:
		p.fail(p.root, block.DefRange(), "jobspec.top_block", "jobspec.homes.hint", "name", block.Type, "homes", joinWords(homes))
	case nearest != "":
		p.fail(p.root, block.DefRange(), "jobspec.top_block", "job.nearest.hint", "name", block.Type, "suggestion", nearest)
	default:
		p.fail(p.root, block.DefRange(), "jobspec.top_block", "jobspec.known.hint", "name", block.Type, "known", joinWords(known))
	}
}

func sortedAttributes(body *hclsyntax.Body) []string {
	names := make([]string, 0, len(body.Attributes))
	for name := range body.Attributes {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// spoil marks a field that was refused already.
func (p *parser) spoil(path string) { p.spoiled[path] = true }

// isSpoiled reports whether a field, or one that it is part of, was refused.
func (p *parser) isSpoiled(path string) bool {
	for path != "" {
		if p.spoiled[path] {
			return true
		}
		path = parentPath(path)
	}
	return false
}

// validate checks the job as admission will, with its defaults, and leads
// what is wrong to its lines.
func (p *parser) validate() {
	job := p.job.Copy()
	job.SetDefaults()
	p.problems(job.Validate())
	var warnings []structs.Problem
	for _, warning := range job.Warnings() {
		if !p.isSpoiled(warning.Path) {
			warnings = append(warnings, warning)
		}
	}
	p.diags = append(p.diags, p.places.Diagnose(warnings, SeverityWarning)...)
}

// problems leads what is wrong to its lines, fields that were refused aside.
func (p *parser) problems(all []structs.Problem) {
	var told []structs.Problem
	for _, problem := range all {
		if !p.isSpoiled(problem.Path) {
			told = append(told, problem)
		}
	}
	found := p.places.Diagnose(told, SeverityError)
	p.errors += found.Count(SeverityError)
	p.diags = append(p.diags, found...)
}
