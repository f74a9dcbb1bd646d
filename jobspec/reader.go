package jobspec

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"nomadlike/nomadlike/structs"
)

// reader takes one block apart: the visitor that fills a noun from a file. The
// walk asks for the arguments and blocks that may stand there; what was not
// asked for is unknown, and the names that were are what might have been meant.
type reader struct {
	p      *parser
	syntax *hclsyntax.Block
	name   string // of the block's type, for messages
	path   string // of its fields, "" for the noun itself
	named  func() // called once the label is read; nil: nobody asks

	arguments []string // asked for
	blocks    []string // asked for
	labelled  bool     // a label was asked for
	listed    bool     // the names that are known have been told
}

func (p *parser) reader(block *hclsyntax.Block, name, path string) *reader {
	if path != "" {
		p.places.note(path, block.DefRange())
	}
	return &reader{p: p, syntax: block, name: name, path: path}
}

// field is the path of one of the block's fields; "" means the block's own.
func (r *reader) field(name string) string { return fieldPath(r.path, name) }

// read reads a whole block, the label included, as the walk says.
func (r *reader) read(walk func(visitor)) {
	walk(r)
	if !r.labelled {
		r.noLabels()
	}
	r.finish()
}

func (r *reader) argument(name string, v value) { v.read(r, name) }

func (r *reader) block(b block) {
	if b.many {
		r.every(b)
		return
	}
	r.single(b.name, func(inner *reader) {
		attribute := r.syntax.Body.Attributes[b.name]
		if attribute != nil && slices.Contains(r.arguments, b.name) {
			r.p.fail(r.p.root, attribute.NameRange, "jobspec.block_twice", "", "name", b.name, "before", r.p.root.src.rangeOf(inner.syntax.TypeRange).Start.Line)
		}
		inner.read(func(v visitor) { b.walk(v, 0) })
	})
}

// oneLabel reads the one label of the block; false when there is not exactly
// one, which is reported.
func (r *reader) oneLabel() (string, bool) {
	labels := r.syntax.Labels
	switch {
	case len(labels) == 0:
		r.p.fail(r.p.root, r.syntax.TypeRange, "jobspec.label_missing", "jobspec.label_missing.hint", "name", r.name)
		return "", false
	case len(labels) > 1:
		r.p.fail(r.p.root, r.syntax.LabelRanges[1], "jobspec.label_extra", "", "name", r.name)
		return "", false
	}
	if part, ok := r.p.root.src.evaluated(r.p.root.src.origin(r.syntax.LabelRanges[0].Start.Byte)); ok {
		return r.evaluated(part)
	}
	return labels[0], true
}

// evaluated is the value of a label that names variables or calls functions.
func (r *reader) evaluated(label part) (string, bool) {
	at, scope := r.syntax.LabelRanges[0], scopePath
	if r.name == "variable" {
		scope = scopeConstant
	}
	expr, diags := hclsyntax.ParseExpression([]byte(r.p.root.src.text[label.start:label.end]), at.Filename, at.Start)
	if diags.HasErrors() {
		r.p.failHCL(r.p.root, diags)
		return "", false
	}
	value, ok := r.p.evaluate(r.p.root, expr, scope)
	if !ok {
		return "", false
	}
	converted, err := convert.Convert(value, cty.String)
	if err != nil || converted.IsNull() {
		r.p.fail(r.p.root, at, "jobspec.want_text", "", "path", r.name, "got", typeName(value.Type()))
		return "", false
	}
	return converted.AsString(), true
}

// label reads the one label into target, the field called name.
func (r *reader) label(name string, target *string, optional bool) {
	r.labelled = true
	if optional && len(r.syntax.Labels) == 0 {
		return
	}
	label, ok := r.oneLabel()
	if ok {
		*target = label
		r.p.places.note(r.field(name), r.syntax.LabelRanges[0])
	} else {
		r.p.spoil(r.field(name))
	}
	if r.named != nil {
		r.named()
	}
}

func (r *reader) noLabels() {
	if len(r.syntax.Labels) > 0 {
		r.p.fail(r.p.root, r.syntax.LabelRanges[0], "jobspec.label_none", "", "name", r.name)
	}
}

// attribute asks for an argument and notes its place as the field path; nil
// when it is not set.
func (r *reader) attribute(name, path string) *hclsyntax.Attribute {
	r.arguments = append(r.arguments, name)
	attribute := r.syntax.Body.Attributes[name]
	if attribute != nil && path != "" {
		r.p.places.note(path, attribute.Expr.Range())
	}
	return attribute
}

// every reads the blocks of a type, each with its own reader; the fields of the
// one with index i are at path[i].
func (r *reader) every(b block) {
	r.blocks = append(r.blocks, b.name)
	index := 0
	for _, syntax := range r.syntax.Body.Blocks {
		if syntax.Type != b.name {
			continue
		}
		if index == blocksMax {
			r.p.fail(r.p.root, syntax.TypeRange, "jobspec.blocks", "", "name", b.name, "max", blocksMax)
			return
		}
		inner := r.p.reader(syntax, b.name, structs.IndexedPath(r.field(b.name), index))
		inner.read(func(v visitor) { b.walk(v, index) })
		index++
	}
}

// blocksMax bounds the blocks of one type in one block; it is the widest limit
// that Validate knows.
const blocksMax = 10_000

// single asks for a block that may stand once.
func (r *reader) single(name string, read func(*reader)) {
	r.blocks = append(r.blocks, name)
	var first *hclsyntax.Block
	for _, block := range r.syntax.Body.Blocks {
		if block.Type != name {
			continue
		}
		if first != nil {
			r.p.fail(r.p.root, block.DefRange(), "jobspec.block_twice", "", "name", name, "before", r.p.root.src.rangeOf(first.TypeRange).Start.Line)
			continue
		}
		first = block
		read(r.p.reader(block, name, r.field(name)))
	}
}

// finish reports what nobody asked for.
func (r *reader) finish() {
	body := r.syntax.Body
	for _, name := range slices.Sorted(maps.Keys(body.Attributes)) {
		if !slices.Contains(r.arguments, name) {
			r.unknownArgument(body.Attributes[name])
		}
	}
	for _, block := range body.Blocks {
		if !slices.Contains(r.blocks, block.Type) {
			r.unknownBlock(block)
		}
	}
}

func (r *reader) unknownArgument(attribute *hclsyntax.Attribute) {
	name, at := attribute.Name, attribute.NameRange
	switch {
	case slices.Contains(r.blocks, name):
		r.p.fail(r.p.root, at, "jobspec.argument_is_block", "jobspec.argument_is_block.hint", "name", name)
		r.p.spoil(r.field(name))
	default:
		r.unknown(at, "jobspec.argument_unknown", name, false, append(slices.Clone(r.arguments), r.blocks...))
	}
}

func (r *reader) unknownBlock(block *hclsyntax.Block) {
	name, at := block.Type, block.DefRange()
	switch {
	case slices.Contains(r.arguments, name):
		r.p.fail(r.p.root, at, "jobspec.block_is_argument", "jobspec.block_is_argument.hint", "name", name)
		r.p.spoil(r.field(name))
	default:
		r.unknown(at, "jobspec.block_unknown", name, true, append(slices.Clone(r.blocks), r.arguments...))
	}
}

// unknown reports a name that has no meaning here: what other systems' words are
// called here, where it belongs, or what was meant.
func (r *reader) unknown(at hcl.Range, id, name string, isBlock bool, known []string) {
	fail := func(hint string, params ...any) {
		r.p.fail(r.p.root, at, id, hint, append([]any{"name", name, "parent", r.name}, params...)...)
	}
	if now := movedFrom(r.name, name); now != "" {
		fail("jobspec.moved.hint", "now", now)
	} else if now := renamedFrom(r.name, name); now != "" {
		fail("jobspec.renamed.hint", "now", now)
		r.p.spoil(r.field(now))
	} else if absent := absentHint(r.name, name); absent != "" {
		fail(absent)
	} else if ours := oursFor(name); ours != "" {
		fail("jobspec.ours.hint", "ours", ours)
	} else if homes := r.p.homes.of(name, isBlock); len(homes) == 1 {
		fail("jobspec.home.hint", "home", homes[0])
	} else if len(homes) > 1 {
		fail("jobspec.homes.hint", "homes", joinWords(homes))
	} else if nearest := r.p.nearest(name, known); nearest != "" {
		fail("job.nearest.hint", "suggestion", nearest)
	} else if r.listed {
		fail("")
	} else {
		r.listed = true
		slices.Sort(known)
		fail("jobspec.known.hint", "known", joinWords(slices.Compact(known)))
	}
}
