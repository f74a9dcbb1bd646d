package jobspec

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// local is one argument of a locals block.
type local struct {
	attribute *hclsyntax.Attribute
	state     localState
	value     cty.Value
}

type localState byte

const (
	localNew localState = iota
	localOpen
	localDone
)

// locals evaluates the arguments of locals blocks, each after those that it
// refers to.
func (p *parser) locals() {
	for _, block := range p.root.body.Blocks {
		if block.Type != "locals" {
			continue
		}
		p.reader(block, "locals", "").noLabels()
		for _, inner := range block.Body.Blocks {
			p.fail(p.root, inner.TypeRange, "jobspec.block_unknown", "", "name", inner.Type, "parent", "locals")
		}
		for _, name := range slices.Sorted(maps.Keys(block.Body.Attributes)) {
			attribute := block.Body.Attributes[name]
			if p.named[name] != nil {
				p.fail(p.root, attribute.NameRange, "jobspec.local_twice", "", "name", name)
				continue
			}
			p.named[name] = &local{attribute: attribute, value: cty.DynamicVal}
		}
	}
	p.localOrder = slices.Sorted(maps.Keys(p.named))
	for _, name := range p.localNames() {
		p.resolve(name, nil)
	}
	p.publishLocals(p.localNames())
}

// localNames lists the locals in order, once all are known.
func (p *parser) localNames() []string { return p.localOrder }

// resolve evaluates one local after those it needs; trail are the names on
// the way to it.
func (p *parser) resolve(name string, trail []string) {
	l := p.named[name]
	switch l.state {
	case localDone:
		return
	case localOpen:
		p.fail(p.root, l.attribute.NameRange, "jobspec.local_cycle", "", "trail", strings.Join(append(trail, name), " -> "))
		return
	}
	if len(trail) > localTrailMax {
		p.fail(p.root, l.attribute.NameRange, "jobspec.local_deep", "", "max", localTrailMax)
		l.state = localDone
		return
	}
	l.state = localOpen
	needed := localsOf(l.attribute.Expr)
	for _, other := range needed {
		if p.named[other] != nil {
			p.resolve(other, append(slices.Clip(trail), name))
		}
	}
	if l.state == localOpen { // not ended by a cycle through it
		p.publishLocals(needed)
		if value, ok := p.evaluate(p.root, l.attribute.Expr, scopeJob); ok {
			l.value = value
		}
	}
	l.state = localDone
}

// localTrailMax bounds how deep locals may rest on one another.
const localTrailMax = 256

// publishLocals makes the values of the named locals visible to expressions.
func (p *parser) publishLocals(names []string) {
	values := make(map[string]cty.Value, len(names))
	for _, name := range names {
		if l := p.named[name]; l != nil {
			values[name] = l.value
		}
	}
	p.context.Variables["local"] = cty.ObjectVal(values)
}

// localsOf lists the locals that an expression refers to.
func localsOf(expr hclsyntax.Expression) []string {
	var names []string
	for _, traversal := range expr.Variables() {
		if traversal.RootName() == "local" {
			names = append(names, stepName(traversal))
		}
	}
	return names
}

// stepName is the name behind the root of a reference such as local.x or
// local["x"]; "" when there is none.
func stepName(traversal hcl.Traversal) string {
	if len(traversal) < 2 {
		return ""
	}
	switch step := traversal[1].(type) {
	case hcl.TraverseAttr:
		return step.Name
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String {
			return step.Key.AsString()
		}
	}
	return ""
}
