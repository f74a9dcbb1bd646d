package jobspec

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// variable is one variable block.
type variable struct {
	name       string
	header     hcl.Range
	want       cty.Type // what values are converted to; DynamicPseudoType when anything goes
	value      cty.Value
	given      bool // value was set by a default, a flag, a file or the environment
	unreadable bool // something about it was reported: its value is unknown
}

// given is one value for a variable from outside the job file.
type given struct {
	name, text string
	source     string    // how to call the place it comes from
	value      cty.Value // when it comes from a -var-file; else text is read by the variable's type
	file       *file     // -var-file: where it stands
	at         hcl.Range
}

// variables reads variable blocks and sets their values: the default,
// then the environment, then files, then flags; the last one wins.
func (p *parser) variables() {
	for _, block := range p.root.body.Blocks {
		if block.Type == "variable" {
			p.declare(block)
		}
	}
	p.variableOrder = slices.Sorted(maps.Keys(p.declared))
	for _, one := range p.environment() {
		if v := p.declared[one.name]; v != nil {
			p.give(v, one)
		}
	}
	for _, one := range append(p.varFiles(), p.varFlags()...) {
		v := p.declared[one.name]
		if v != nil {
			p.give(v, one)
			continue
		}
		severity, id := SeverityError, "jobspec.var_undeclared"
		if one.file != nil {
			severity = SeverityWarning // one file may serve several jobs
		}
		if nearest := p.nearest(one.name, p.variableNames()); nearest != "" {
			p.reportGiven(one, severity, id, "job.nearest.hint", "name", one.name, "suggestion", nearest)
		} else {
			p.reportGiven(one, severity, id, "jobspec.var_undeclared.hint", "name", one.name)
		}
	}
	values := make(map[string]cty.Value, len(p.declared))
	for _, name := range p.variableNames() {
		v := p.declared[name]
		if !v.given && !v.unreadable {
			p.fail(p.root, v.header, "jobspec.var_missing", "jobspec.var_missing.hint", "name", name, "env", EnvPrefix+name)
			v.unreadable = true
		}
		if v.unreadable {
			v.value = cty.DynamicVal
		}
		values[name] = v.value
	}
	p.context.Variables["var"] = cty.ObjectVal(values)
}

// variableNames lists the variables in order, once all are declared.
func (p *parser) variableNames() []string { return p.variableOrder }

// declare reads one variable block.
func (p *parser) declare(block *hclsyntax.Block) {
	r := p.reader(block, "variable", "")
	name, ok := r.oneLabel()
	r.attribute("type", "")
	r.attribute("default", "")
	r.attribute("description", "")
	r.finish()
	if !ok {
		return
	}
	if !hclsyntax.ValidIdentifier(name) {
		p.fail(p.root, block.LabelRanges[0], "jobspec.identifier", "", "name", name)
		return
	}
	if p.declared[name] != nil {
		p.fail(p.root, block.LabelRanges[0], "jobspec.var_twice", "", "name", name)
		return
	}
	v := &variable{name: name, header: block.DefRange(), want: cty.DynamicPseudoType}
	p.declared[name] = v
	typed := block.Body.Attributes["type"]
	if typed != nil {
		want, diags := typeexpr.TypeConstraint(typed.Expr)
		if diags.HasErrors() {
			p.fail(p.root, typed.Expr.Range(), "jobspec.var_type", "jobspec.var_type.hint")
			v.unreadable = true
			return
		}
		v.want = want
	}
	fallback := block.Body.Attributes["default"]
	if fallback == nil {
		return
	}
	value, ok := p.evaluate(p.root, fallback.Expr, scopeConstant)
	if !ok {
		v.unreadable = true
		return
	}
	if typed == nil && value.Type().IsPrimitiveType() && !value.IsNull() {
		v.want = value.Type() // so that -var sets a number where the default is one
	}
	p.set(v, given{file: p.root, at: fallback.Expr.Range()}, value)
}

// give sets a variable from outside. Texts are read as the type says: as they
// are for a string, as HCL for lists and maps.
func (p *parser) give(v *variable, one given) {
	if one.file != nil {
		p.set(v, one, one.value)
		return
	}
	if len(one.text) > p.limits.Source {
		p.reportGiven(one, SeverityError, "jobspec.too_large", "", "size", len(one.text), "max", p.limits.Source)
		v.unreadable = true
		return
	}
	if v.want == cty.DynamicPseudoType || v.want.IsPrimitiveType() {
		p.set(v, one, cty.StringVal(strings.ToValidUTF8(one.text, "\uFFFD")))
		return
	}
	value, ok := p.expressionText(one)
	if !ok {
		v.unreadable = true
		return
	}
	p.set(v, one, value)
}

// expressionText reads a text such as ["a", "b"] as an expression.
func (p *parser) expressionText(one given) (cty.Value, bool) {
	f := &file{src: newSource(one.source, []byte(one.text))}
	if _, _, refused := survey(f.src, p.limits); refused != nil {
		p.reportGiven(one, SeverityError, refused.id, refused.hint, refused.params...)
		return cty.DynamicVal, false
	}
	expr, diags := hclsyntax.ParseExpression([]byte(one.text), one.source, hcl.InitialPos)
	if diags.HasErrors() {
		p.reportGiven(one, SeverityError, "jobspec.var_expression", "jobspec.var_expression.hint", "name", one.name)
		return cty.DynamicVal, false
	}
	return p.evaluate(f, expr, scopeConstant)
}

// set converts a value to the type of its variable and keeps it.
func (p *parser) set(v *variable, one given, value cty.Value) {
	if id := p.meter.charge(value); id != "" {
		p.reportGiven(one, SeverityError, id, "jobspec.steps.hint")
		v.unreadable = true
		return
	}
	converted, err := convert.Convert(value, v.want)
	if err != nil || !converted.IsWhollyKnown() {
		p.reportGiven(one, SeverityError, "jobspec.var_value", "", "name", v.name, "want", v.want.FriendlyName(), "got", typeName(value.Type()))
		v.unreadable = true
		return
	}
	v.value, v.given = converted, true
}

// reportGiven reports a problem of a value from outside, at its line when it
// stands in a file.
func (p *parser) reportGiven(one given, severity Severity, id, hint string, params ...any) {
	if one.file != nil {
		p.report(one.file, severity, one.file.src.rangeOf(one.at), id, hint, params...)
		return
	}
	p.report(&file{src: newSource("", nil)}, severity, Range{File: one.source}, id, hint, params...)
}

// environment lists the values of NOMADLIKE_VAR_<name>.
func (p *parser) environment() []given {
	var found []given
	for _, entry := range p.opts.Env {
		name, value, ok := strings.Cut(entry, "=")
		if name, prefixed := strings.CutPrefix(name, EnvPrefix); ok && prefixed {
			found = append(found, given{name: name, text: value, source: EnvPrefix + name})
		}
	}
	return found
}

// varFlags lists the values of -var flags.
func (p *parser) varFlags() []given {
	var found []given
	for _, flag := range p.opts.Vars {
		name, value, ok := strings.Cut(flag, "=")
		one := given{name: strings.TrimSpace(name), text: value, source: "-var " + shorten(flag)}
		if !ok || one.name == "" {
			p.reportGiven(one, SeverityError, "jobspec.var_flag", "jobspec.var_flag.hint")
			continue
		}
		found = append(found, one)
	}
	return found
}

// varFiles lists the assignments of -var-file files.
func (p *parser) varFiles() []given {
	var found []given
	for _, source := range p.opts.VarFiles {
		f := p.parseFile(source.Name, source.Source)
		if f == nil {
			continue
		}
		for _, block := range f.body.Blocks {
			p.fail(f, block.TypeRange, "jobspec.var_file_block", "jobspec.var_file_block.hint", "name", block.Type)
		}
		for _, name := range slices.Sorted(maps.Keys(f.body.Attributes)) {
			attribute := f.body.Attributes[name]
			if value, ok := p.evaluate(f, attribute.Expr, scopeConstant); ok {
				found = append(found, given{name: name, source: source.Name, value: value, file: f, at: attribute.Expr.Range()})
			}
		}
	}
	return found
}
