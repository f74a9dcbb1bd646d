package jobspec

import (
	"errors"
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"nomadlike/nomadlike/structs"
)

// value evaluates an argument; false when it is not set, null or wrong.
func (r *reader) value(name string) (cty.Value, hcl.Range, bool) {
	return r.valueIn(name, scopeJob)
}

// valueIn is value for an argument that may refer to what scope says.
func (r *reader) valueIn(name string, scope scope) (cty.Value, hcl.Range, bool) {
	attribute := r.attribute(name, r.field(name))
	if attribute == nil {
		return cty.NilVal, hcl.Range{}, false
	}
	value, ok := r.p.evaluate(r.p.root, attribute.Expr, scope)
	if !ok {
		r.p.spoil(r.field(name))
	}
	return value, attribute.Expr.Range(), ok && !value.IsNull()
}

// typeName is what the job file calls a type.
func typeName(t cty.Type) string {
	switch {
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return "list"
	case t.IsObjectType() || t.IsMapType():
		return "map"
	}
	return t.FriendlyName()
}

// wrong reports that the value of an argument cannot be used.
func (r *reader) wrong(name string, at hcl.Range, id, hint string, params ...any) {
	r.p.wrongAt(r.field(name), at, id, hint, params...)
}

func (p *parser) wrongAt(path string, at hcl.Range, id, hint string, params ...any) {
	p.fail(p.root, at, id, hint, append([]any{"path", path}, params...)...)
	p.spoil(path)
}

// text reads an argument that is a text. Numbers and truth values become text
// as they are written.
func (r *reader) text(name string, target *string) { r.textIn(name, target, scopeJob) }

// place reads an argument that is a path, which may name what is known of the
// job only later.
func (r *reader) place(name string, target *string) { r.textIn(name, target, scopePath) }

// spoken reads an argument that a rank reads, which may name parameters of a sweep.
func (r *reader) spoken(name string, target *string) { r.textIn(name, target, scopeRank) }

func (r *reader) textIn(name string, target *string, scope scope) {
	value, at, ok := r.valueIn(name, scope)
	if !ok {
		return
	}
	converted, err := convert.Convert(value, cty.String)
	if err != nil {
		r.wrong(name, at, "jobspec.want_text", "", "got", typeName(value.Type()))
		return
	}
	*target = converted.AsString()
}

// number reads an argument that is a number, or a text that holds one.
func (r *reader) number(name string) (*big.Float, hcl.Range, bool) {
	value, at, ok := r.value(name)
	if !ok {
		return nil, at, false
	}
	converted, err := convert.Convert(value, cty.Number)
	if err != nil {
		r.wrong(name, at, "jobspec.want_number", "", "got", typeName(value.Type()))
		return nil, at, false
	}
	return converted.AsBigFloat(), at, true
}

// whole reads an argument that is a whole number. A 0 that would stand for the
// default is refused when least is above it.
func (r *reader) whole(name string, target *int, least int) {
	number, at, ok := r.number(name)
	if !ok {
		return
	}
	value, accuracy := number.Int64()
	switch {
	case !number.IsInt():
		r.wrong(name, at, "jobspec.want_whole", "", "value", number.Text('g', 10))
	case accuracy != big.Exact:
		r.wrong(name, at, "jobspec.too_wide", "", "value", number.Text('g', 10))
	case value == 0 && least > 0:
		r.wrong(name, at, "jobspec.least", "", "value", value, "min", least)
	default:
		*target = int(value)
	}
}

// countAll is what a job file says for every device of a node.
const countAll = "all"

// count reads how many devices: a whole number from 1 on, or "all".
func (r *reader) count(name string, target *int) {
	value, _, ok := r.value(name)
	if ok && value.Type() == cty.String && value.IsKnown() && value.AsString() == countAll {
		*target = structs.DevicesAll
		return
	}
	r.whole(name, target, 1)
}

// wholeOrNone is whole for a number of which 0 says something else than none.
func (r *reader) wholeOrNone(name string, target **int) {
	const unset = math.MinInt
	value := unset
	r.whole(name, &value, 0)
	if value != unset {
		*target = &value
	}
}

// fraction reads an argument that is a number with decimals.
func (r *reader) fraction(name string, target *float64, least float64) {
	number, at, ok := r.number(name)
	if !ok {
		return
	}
	value, _ := number.Float64()
	if value == 0 && least > 0 {
		r.wrong(name, at, "jobspec.least", "", "value", number.Text('g', 10), "min", least)
		return
	}
	*target = value
}

// flag reads an argument that is true or false.
func (r *reader) flag(name string, target *bool) {
	value, at, ok := r.value(name)
	if !ok {
		return
	}
	converted, err := convert.Convert(value, cty.Bool)
	if err != nil {
		r.wrong(name, at, "jobspec.want_flag", "", "got", typeName(value.Type()))
		return
	}
	*target = converted.True()
}

// maybe reads a yes or no that need not be said.
func (r *reader) maybe(name string, target **bool) {
	var value bool
	_, said := r.syntax.Body.Attributes[name]
	r.flag(name, &value)
	if said {
		*target = &value
	}
}

// size reads an amount of memory such as "2GiB".
func (r *reader) size(name string, target *int64, least int64) {
	value, at, ok := r.value(name)
	if !ok {
		return
	}
	if value.Type() != cty.String {
		if value.Type() == cty.Number {
			r.wrong(name, at, "jobspec.size_unit", "jobspec.size_unit.hint", "value", value.AsBigFloat().Text('g', 10))
		} else {
			r.wrong(name, at, "jobspec.want_size", "jobspec.want_size.hint", "got", typeName(value.Type()))
		}
		return
	}
	written := value.AsString()
	bytes, err := structs.ParseSize(written)
	switch {
	case errors.Is(err, structs.ErrUnitDecimal):
		r.wrong(name, at, "jobspec.size_decimal", "jobspec.size_decimal.hint", "value", written, "suggestion", binaryUnit(written))
	case errors.Is(err, structs.ErrUnitMissing):
		r.wrong(name, at, "jobspec.size_unit", "jobspec.size_unit.hint", "value", written)
	case err != nil:
		r.wrong(name, at, "jobspec.size", "jobspec.want_size.hint", "value", written)
	case bytes == 0 && least > 0:
		r.wrong(name, at, "jobspec.least", "", "value", written, "min", structs.FormatSize(least))
	default:
		*target = bytes
	}
}

// binaryUnit writes a size such as "2GB" or "2g" with its IEC unit.
func binaryUnit(written string) string {
	end := 0
	for end < len(written) && (written[end] >= '0' && written[end] <= '9' || written[end] == '.') {
		end++
	}
	for _, unit := range []byte(written[end:]) {
		switch unit | 0x20 {
		case 'k':
			return written[:end] + "KiB"
		case 'm':
			return written[:end] + "MiB"
		case 'g':
			return written[:end] + "GiB"
		case 't':
			return written[:end] + "TiB"
		case 'p':
			return written[:end] + "PiB"
		}
	}
	return written[:end] + "MiB"
}

// span reads a span of time such as "6h30m".
func (r *reader) span(name string, target *structs.Duration, least structs.Duration) {
	value, at, ok := r.value(name)
	if !ok {
		return
	}
	if value.Type() != cty.String {
		if value.Type() == cty.Number {
			r.wrong(name, at, "jobspec.span_unit", "jobspec.span_unit.hint", "value", value.AsBigFloat().Text('g', 10))
		} else {
			r.wrong(name, at, "jobspec.want_span", "jobspec.want_span.hint", "got", typeName(value.Type()))
		}
		return
	}
	written := value.AsString()
	span, err := structs.ParseDuration(written)
	switch {
	case errors.Is(err, structs.ErrUnitMissing):
		r.wrong(name, at, "jobspec.span_unit", "jobspec.span_unit.hint", "value", written)
	case err != nil:
		r.wrong(name, at, "jobspec.span", "jobspec.want_span.hint", "value", written)
	case span == 0 && least > 0:
		r.wrong(name, at, "jobspec.least", "", "value", written, "min", structs.FormatDuration(least))
	default:
		*target = span
	}
}

// words reads an argument that is a list of texts.
func (r *reader) words(name string, target *[]string) {
	attribute := r.syntax.Body.Attributes[name]
	if attribute != nil {
		if list, ok := attribute.Expr.(*hclsyntax.TupleConsExpr); ok {
			for i, element := range list.Exprs {
				r.p.places.note(structs.IndexedPath(r.field(name), i), element.Range())
			}
		}
	}
	value, at, ok := r.value(name)
	if !ok {
		return
	}
	list, err := convert.Convert(value, cty.List(cty.String))
	if err != nil || value.Type() == cty.String {
		r.wrong(name, at, "jobspec.want_list", "jobspec.want_list.hint", "got", typeName(value.Type()))
		return
	}
	words := make([]string, 0, list.LengthInt())
	for i, element := range list.AsValueSlice() {
		if element.IsNull() {
			r.p.wrongAt(structs.IndexedPath(r.field(name), i), at, "jobspec.null", "")
			continue
		}
		words = append(words, element.AsString())
	}
	*target = words
}

// table reads names and texts, written as an argument, env = { A = "b" }, or
// as a block, env { A = "b" }. A null leaves its name out.
func (r *reader) table(name string, target *map[string]string) {
	r.tableWith(name, target, scopeJob, nil)
}

// tableWith is table, of which takes may take entries out before they are evaluated.
func (r *reader) tableWith(name string, target *map[string]string, scope scope, takes func(key string, value hclsyntax.Expression) bool) {
	if attribute := r.syntax.Body.Attributes[name]; attribute != nil {
		if object, ok := attribute.Expr.(*hclsyntax.ObjectConsExpr); ok {
			for _, item := range object.Items {
				if key := literalKey(item.KeyExpr); key != "" {
					r.p.places.note(structs.KeyedPath(r.field(name), key), item.ValueExpr.Range())
				}
			}
			if takes != nil {
				object.Items = slices.DeleteFunc(object.Items, func(item hclsyntax.ObjectConsItem) bool {
					key := literalKey(item.KeyExpr)
					return key != "" && takes(key, item.ValueExpr)
				})
			}
		}
	}
	value, at, ok := r.valueIn(name, scope)
	if ok {
		if t := value.Type(); !t.IsObjectType() && !t.IsMapType() {
			r.wrong(name, at, "jobspec.want_table", "jobspec.want_table.hint", "got", typeName(t))
		} else {
			*target = make(map[string]string, value.LengthInt())
			for it := value.ElementIterator(); it.Next(); {
				key, element := it.Element()
				r.entry(name, key.AsString(), element, at, *target)
			}
		}
	}
	r.single(name, func(inner *reader) {
		inner.noLabels()
		if *target != nil {
			r.p.fail(r.p.root, inner.syntax.DefRange(), "jobspec.table_twice", "", "name", name)
		}
		*target = make(map[string]string, len(inner.syntax.Body.Attributes))
		for _, key := range slices.Sorted(maps.Keys(inner.syntax.Body.Attributes)) {
			attribute := inner.attribute(key, structs.KeyedPath(inner.path, key))
			if takes != nil && takes(key, attribute.Expr) {
				continue
			}
			if value, ok := r.p.evaluate(r.p.root, attribute.Expr, scope); ok {
				r.entry(name, key, value, attribute.Expr.Range(), *target)
			} else {
				r.p.spoil(structs.KeyedPath(inner.path, key))
			}
		}
		inner.finish()
	})
}

// literalKey is the key of an object's item as it is written, or "" when it
// must be evaluated.
func literalKey(expr hclsyntax.Expression) string {
	key, ok := expr.(*hclsyntax.ObjectConsKeyExpr)
	if !ok {
		return ""
	}
	if word := hcl.ExprAsKeyword(key.Wrapped); word != "" {
		return word
	}
	if template, ok := key.Wrapped.(*hclsyntax.TemplateExpr); ok && template.IsStringLiteral() {
		value, _ := template.Value(nil)
		return value.AsString()
	}
	return ""
}

// entry puts one entry of a table into the map.
func (r *reader) entry(name, key string, value cty.Value, at hcl.Range, into map[string]string) {
	path := structs.KeyedPath(r.field(name), key)
	if place, ok := r.p.places.places[path]; ok {
		at = place
	}
	if value.IsNull() {
		return
	}
	converted, err := convert.Convert(value, cty.String)
	if err != nil {
		r.p.wrongAt(path, at, "jobspec.want_text", "", "got", typeName(value.Type()))
		return
	}
	into[key] = converted.AsString()
}
