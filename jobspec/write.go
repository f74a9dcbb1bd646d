package jobspec

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"nomadlike/nomadlike/structs"
)

// Write renders a job as a job file: what Parse makes of it, with the same
// name, is the same job. Variables, locals and functions of the file that the
// job came from are gone, their values are written out; so anybody can change
// and submit it again. What was fixed at admission is left out. Pure; any
// goroutine may call it.
func Write(job *structs.Job) []byte {
	if job.Elastic == nil && job.ElasticRule() != nil { // of protocol 15 and before
		today := *job
		today.Elastic = job.ElasticRule()
		job = &today
	}
	file := hclwrite.NewEmptyFile()
	walkJob(writer{file.Body().AppendNewBlock("job", nil)}, job)
	return hclwrite.Format(file.Bytes())
}

// writer writes the arguments and blocks of one block: the visitor that takes a
// noun's fields out. Values that mean "not said" are left out.
type writer struct{ to *hclwrite.Block }

func (w writer) label(_ string, from *string, optional bool) {
	if *from != "" || !optional {
		w.to.SetLabels([]string{*from})
	}
}

func (w writer) argument(name string, v value) {
	if !v.left {
		v.write(w, name)
	}
}

// block writes blocks, each after an empty line.
func (w writer) block(b block) {
	for index := range b.count {
		inner := writer{hclwrite.NewBlock(b.name, nil)}
		b.walk(inner, index)
		if b.slack && inner.empty() {
			continue
		}
		if !w.empty() {
			w.to.Body().AppendNewline()
		}
		w.to.Body().AppendBlock(inner.to)
	}
}

func (w writer) empty() bool {
	return len(w.to.Body().Attributes())+len(w.to.Body().Blocks()) == 0
}

func (w writer) set(name string, value cty.Value) { w.to.Body().SetAttributeValue(name, value) }

func (w writer) text(name, value string) {
	if value != "" {
		w.set(name, cty.StringVal(value))
	}
}

func (w writer) whole(name string, value int) {
	if value != 0 {
		w.number(name, value)
	}
}

// number is whole of a number that is said when it is 0.
func (w writer) number(name string, value int) { w.set(name, cty.NumberIntVal(int64(value))) }

func (w writer) fraction(name string, value float64) {
	if value != 0 {
		w.set(name, cty.NumberFloatVal(value))
	}
}

func (w writer) flag(name string, value bool) {
	if value {
		w.set(name, cty.True)
	}
}

// maybe writes a flag that is said.
func (w writer) maybe(name string, value *bool) {
	if value != nil {
		w.set(name, cty.BoolVal(*value))
	}
}

func (w writer) size(name string, bytes int64) {
	if bytes != 0 {
		w.text(name, structs.FormatSize(bytes))
	}
}

func (w writer) span(name string, value structs.Duration) {
	if value != 0 {
		w.text(name, structs.FormatDuration(value))
	}
}

func (w writer) words(name string, words []string) {
	if len(words) == 0 {
		return
	}
	values := make([]cty.Value, len(words))
	for i, word := range words {
		values[i] = cty.StringVal(word)
	}
	w.set(name, cty.TupleVal(values))
}

// table writes an object, one entry a line. Keys that are no identifiers are
// quoted.
func (w writer) table(name string, table map[string]string) { w.environment(name, table, nil) }

// environment is table, with variables that are secrets.
func (w writer) environment(name string, table map[string]string, uses []structs.SecretUse) {
	values := valueTokens(table)
	for _, use := range uses {
		if use.Var != "" {
			values[use.Var] = secretTokens(use.Name)
		}
	}
	if len(values) > 0 {
		w.to.Body().SetAttributeRaw(name, objectTokens(values))
	}
}

func secretTokens(name string) hclwrite.Tokens {
	return hclwrite.TokensForFunctionCall(functionSecret, hclwrite.TokensForValue(cty.StringVal(name)))
}

func tableTokens(table map[string]string) hclwrite.Tokens { return objectTokens(valueTokens(table)) }

func valueTokens(table map[string]string) map[string]hclwrite.Tokens {
	values := make(map[string]hclwrite.Tokens, len(table))
	for key, text := range table {
		values[key] = hclwrite.TokensForValue(cty.StringVal(text))
	}
	return values
}

func objectTokens(values map[string]hclwrite.Tokens) hclwrite.Tokens {
	entries := make([]hclwrite.ObjectAttrTokens, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		quoted := hclwrite.TokensForValue(cty.StringVal(key))
		if hclsyntax.ValidIdentifier(key) {
			quoted = hclwrite.TokensForIdentifier(key)
		}
		entries = append(entries, hclwrite.ObjectAttrTokens{Name: quoted, Value: values[key]})
	}
	return hclwrite.TokensForObject(entries)
}
