package jobspec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// meter bounds the evaluation of all expressions of one file. HCL has loops
// and sharing, so a short text can ask for work and text without end; every
// expression therefore pays for the value that it returns, at its full size as
// if nothing were shared, before anything can be built from it.
type meter struct {
	steps, text int  // left
	spent       bool // no value is given any more
	overrun     func(r hcl.Range, problem callProblem)
	pending     *callProblem // what the function that just ran could not do
}

// callProblem is a text of the catalogue that tells what went wrong.
type callProblem struct {
	id, hint string
	params   []any
}

// Bounds of single values.
const (
	numberBitsMax   = 4096 // binary exponent of a number; wider ones have endless texts
	numericTextMax  = 1024 // bytes of a text that could be converted to a number
	valueNestingMax = 64   // collections inside one another
)

// metered is an expression that pays for its values.
type metered struct {
	hclsyntax.Expression
	meter *meter
}

// Value evaluates the expression. Once the meter has run out it returns unknown
// values and no complaints, so that loops that are still open end at once.
func (e metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if e.meter.spent {
		return cty.DynamicVal, nil
	}
	value, diags := e.Expression.Value(ctx)
	problem := e.meter.pending
	if problem == nil && !e.meter.spent {
		if id := e.meter.charge(value); id != "" {
			problem = &callProblem{id: id, hint: "jobspec.steps.hint"}
		}
	}
	if problem != nil {
		e.meter.pending, e.meter.spent = nil, true
		e.meter.overrun(e.Range(), *problem)
		return cty.DynamicVal, nil
	}
	return value, diags
}

// charge pays for one value; it returns the message id of what is too much, or "".
func (m *meter) charge(value cty.Value) string {
	m.steps--
	return m.size(value, 0)
}

func (m *meter) size(value cty.Value, depth int) string {
	if m.steps < 0 {
		return "jobspec.steps"
	}
	if depth > valueNestingMax {
		return "jobspec.value_depth"
	}
	if value.IsNull() || !value.IsKnown() {
		return ""
	}
	switch t := value.Type(); {
	case t == cty.String:
		text := value.AsString()
		m.text -= len(text)
		if m.text < 0 {
			return "jobspec.text"
		}
		if len(text) > numericTextMax && numeric(text) {
			return "jobspec.number_size"
		}
	case t == cty.Number:
		number := value.AsBigFloat()
		if number.IsInf() || number.MantExp(nil) > numberBitsMax || number.MantExp(nil) < -numberBitsMax {
			return "jobspec.number_size"
		}
	case t.IsCollectionType(), t.IsTupleType(), t.IsObjectType():
		m.steps -= value.LengthInt()
		if m.steps < 0 {
			return "jobspec.steps"
		}
		for it := value.ElementIterator(); it.Next(); {
			key, element := it.Element()
			if key.Type() == cty.String {
				m.text -= len(key.AsString())
			}
			if id := m.size(element, depth+1); id != "" {
				return id
			}
		}
	}
	return ""
}

// numeric reports whether a text could be read as a number.
func numeric(text string) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= '0' && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return false
		}
	}
	return true
}

// put returns expr with itself and everything in it on the meter. It changes
// the tree in place. Calls of functions are handed to call on the way.
func (m *meter) put(expr hclsyntax.Expression, call func(*hclsyntax.FunctionCallExpr)) hclsyntax.Expression {
	each := func(children ...*hclsyntax.Expression) {
		for _, child := range children {
			if *child != nil {
				*child = m.put(*child, call)
			}
		}
	}
	switch e := expr.(type) {
	case metered, *hclsyntax.LiteralValueExpr:
		return expr // literals are bounded by the survey
	case *hclsyntax.ParenthesesExpr:
		each(&e.Expression)
	case *hclsyntax.TemplateExpr:
		for i := range e.Parts {
			each(&e.Parts[i])
		}
	case *hclsyntax.TemplateWrapExpr:
		each(&e.Wrapped)
	case *hclsyntax.TemplateJoinExpr:
		each(&e.Tuple)
	case *hclsyntax.RelativeTraversalExpr:
		each(&e.Source)
	case *hclsyntax.FunctionCallExpr:
		call(e)
		for i := range e.Args {
			each(&e.Args[i])
		}
	case *hclsyntax.ConditionalExpr:
		each(&e.Condition, &e.TrueResult, &e.FalseResult)
	case *hclsyntax.IndexExpr:
		each(&e.Collection, &e.Key)
	case *hclsyntax.TupleConsExpr:
		for i := range e.Exprs {
			each(&e.Exprs[i])
		}
	case *hclsyntax.ObjectConsExpr:
		for i := range e.Items {
			if key, ok := e.Items[i].KeyExpr.(*hclsyntax.ObjectConsKeyExpr); ok && hcl.ExprAsKeyword(key.Wrapped) == "" {
				each(&key.Wrapped)
			}
			each(&e.Items[i].ValueExpr)
		}
	case *hclsyntax.ForExpr:
		each(&e.CollExpr, &e.KeyExpr, &e.ValExpr, &e.CondExpr)
	case *hclsyntax.SplatExpr:
		each(&e.Source, &e.Each)
	case *hclsyntax.BinaryOpExpr:
		each(&e.LHS, &e.RHS)
	case *hclsyntax.UnaryOpExpr:
		each(&e.Val)
	}
	return metered{Expression: expr, meter: m}
}
