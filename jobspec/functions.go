package jobspec

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// FunctionNames lists the functions of job files in the order of the
// reference page. None of them knows the time or chance, so that a job file
// means the same whenever it is read.
func FunctionNames() []string {
	return []string{
		"format", "join", "split", "upper", "lower", "title", "trim", "trimspace", "trimprefix", "trimsuffix", "chomp",
		"replace", "substr", "length", "concat", "contains", "lookup", "merge", "keys", "values", "element", "slice",
		"reverse", "sort", "flatten", "distinct", "compact", "coalesce", "zipmap", "range", "min", "max", "abs", "ceil", "floor",
		"parseint", "jsonencode", "jsondecode", "tostring", "tonumber", "tobool", "file", "env", functionSecret,
	}
}

// errCall stops a function whose problem is told by the meter.
var errCall = errors.New("the problem is reported on its own")

// functions returns the functions of one job file.
func (p *parser) functions() map[string]function.Function {
	guarded := func(f function.Function, check func(args []cty.Value) *callProblem) function.Function {
		return function.New(&function.Spec{
			Params: f.Params(), VarParam: f.VarParam(),
			Type: func(args []cty.Value) (cty.Type, error) {
				if allKnown(args) {
					if problem := check(args); problem != nil {
						p.meter.pending = problem
						return cty.DynamicPseudoType, errCall
					}
				}
				return f.ReturnTypeForValues(args)
			},
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
		})
	}
	return map[string]function.Function{
		"format":     guarded(stdlib.FormatFunc, p.checkFormat),
		"join":       guarded(stdlib.JoinFunc, p.checkJoin),
		"split":      guarded(stdlib.SplitFunc, p.checkSplit),
		"upper":      stdlib.UpperFunc,
		"lower":      stdlib.LowerFunc,
		"title":      stdlib.TitleFunc,
		"trim":       guarded(stdlib.TrimFunc, shortText(1)),
		"trimspace":  stdlib.TrimSpaceFunc,
		"trimprefix": stdlib.TrimPrefixFunc,
		"trimsuffix": stdlib.TrimSuffixFunc,
		"chomp":      stdlib.ChompFunc,
		"replace":    guarded(stdlib.ReplaceFunc, p.checkReplace),
		"substr":     stdlib.SubstrFunc,
		"length":     lengthFunction(),
		"concat":     stdlib.ConcatFunc,
		"contains":   stdlib.ContainsFunc,
		"lookup":     stdlib.LookupFunc,
		"merge":      stdlib.MergeFunc,
		"keys":       stdlib.KeysFunc,
		"values":     stdlib.ValuesFunc,
		"element":    stdlib.ElementFunc,
		"slice":      stdlib.SliceFunc,
		"reverse":    stdlib.ReverseListFunc,
		"sort":       stdlib.SortFunc,
		"flatten":    stdlib.FlattenFunc,
		"distinct":   guarded(stdlib.DistinctFunc, p.checkDistinct),
		"compact":    stdlib.CompactFunc,
		"coalesce":   stdlib.CoalesceFunc,
		"zipmap":     stdlib.ZipmapFunc,
		"range":      stdlib.RangeFunc, // returns 1,024 numbers at most
		"min":        stdlib.MinFunc,
		"max":        stdlib.MaxFunc,
		"abs":        stdlib.AbsoluteFunc,
		"ceil":       stdlib.CeilFunc,
		"floor":      stdlib.FloorFunc,
		"parseint":   guarded(stdlib.ParseIntFunc, shortText(0)),
		"jsonencode": stdlib.JSONEncodeFunc,
		"jsondecode": guarded(stdlib.JSONDecodeFunc, p.checkJSON),
		"tostring":   stdlib.MakeToFunc(cty.String),
		"tonumber":   stdlib.MakeToFunc(cty.Number),
		"tobool":     stdlib.MakeToFunc(cty.Bool),
		"file":       p.fileFunction(),
		"env":        p.envFunction(),
		"secret":     secretFunction(),
	}
}

func allKnown(args []cty.Value) bool {
	for _, arg := range args {
		if arg.IsNull() || !arg.IsWhollyKnown() {
			return false
		}
	}
	return true
}

// spend pays in advance for text and elements that a function will make.
func (p *parser) spend(steps, text int) *callProblem {
	p.meter.steps -= steps
	p.meter.text -= text
	switch {
	case p.meter.steps < 0:
		return &callProblem{id: "jobspec.steps", hint: "jobspec.steps.hint"}
	case p.meter.text < 0:
		return &callProblem{id: "jobspec.text", hint: "jobspec.steps.hint"}
	}
	return nil
}

// shortText refuses a text argument that the function would walk over again
// and again.
func shortText(index int) func([]cty.Value) *callProblem {
	const shortTextMax = 1024
	return func(args []cty.Value) *callProblem {
		if index < len(args) && len(args[index].AsString()) > shortTextMax {
			return &callProblem{id: "jobspec.argument_size", params: []any{"max", shortTextMax}}
		}
		return nil
	}
}

// checkFormat refuses widths that make endless padding, and pays for every
// verb as if it wrote the longest argument.
func (p *parser) checkFormat(args []cty.Value) *callProblem {
	const widthMax = 3 // digits of a width or precision
	format, longest := args[0].AsString(), 0
	for _, arg := range args[1:] {
		longest = max(longest, p.textSize(arg))
	}
	digits := 0
	for i := 0; i < len(format); i++ {
		if format[i] < '0' || format[i] > '9' {
			digits = 0
			continue
		}
		if digits++; digits > widthMax {
			return &callProblem{id: "jobspec.format_width", params: []any{"max", widthMax}}
		}
	}
	return p.spend(0, strings.Count(format, "%")*(longest+1))
}

// textSize bounds the length of a value written as JSON, the longest of its
// forms.
func (p *parser) textSize(value cty.Value) int {
	const escape = 6 // bytes of one character at most, as \u0000
	probe := meter{steps: p.meter.steps, text: p.meter.text}
	probe.size(value, 0)
	const scalar = 32
	return (p.meter.text-probe.text)*escape + (p.meter.steps-probe.steps+1)*scalar
}

func (p *parser) checkJoin(args []cty.Value) *callProblem {
	elements := 0
	for _, list := range args[1:] {
		elements += list.LengthInt()
	}
	return p.spend(0, elements*len(args[0].AsString()))
}

func (p *parser) checkSplit(args []cty.Value) *callProblem {
	return p.spend(strings.Count(args[1].AsString(), args[0].AsString())+1, 0)
}

func (p *parser) checkReplace(args []cty.Value) *callProblem {
	text, old, replacement := args[0].AsString(), args[1].AsString(), args[2].AsString()
	return p.spend(0, len(text)+strings.Count(text, old)*len(replacement))
}

// checkDistinct pays for comparing all elements with each other.
func (p *parser) checkDistinct(args []cty.Value) *callProblem {
	n := args[0].LengthInt()
	return p.spend(n*n/8, 0)
}

// checkJSON refuses JSON that is nested too deeply for a reader that
// recurses, and pays for its values.
func (p *parser) checkJSON(args []cty.Value) *callProblem {
	text, depth := args[0].AsString(), 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > valueNestingMax {
			return &callProblem{id: "jobspec.value_depth"}
		}
	}
	return p.spend(len(text)/2, 0)
}

// lengthFunction counts the characters of a text or the elements of anything
// else.
func lengthFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[0].Type() == cty.String {
				return stdlib.Strlen(args[0])
			}
			return stdlib.Length(args[0])
		},
	})
}

// fileFunction reads a text file, in the command line only.
func (p *parser) fileFunction() function.Function {
	return p.outsideFunction("path", nil, func(args []cty.Value) (cty.Value, *callProblem) {
		path := args[0].AsString()
		text, err := p.opts.ReadFile(path)
		switch {
		case err != nil:
			return cty.NilVal, &callProblem{id: "jobspec.file", params: []any{"name", path, "cause", err}}
		case len(text) > p.limits.Source:
			return cty.NilVal, &callProblem{id: "jobspec.file_size", params: []any{"name", path, "size", len(text), "max", p.limits.Source}}
		case !utf8.Valid(text):
			return cty.NilVal, &callProblem{id: "jobspec.file_utf8", params: []any{"name", path}}
		}
		return cty.StringVal(string(text)), nil
	})
}

// envFunction reads a variable of the environment, in the command line only;
// a second argument stands in for one that is not set.
func (p *parser) envFunction() function.Function {
	fallback := &function.Parameter{Name: "default", Type: cty.String}
	return p.outsideFunction("name", fallback, func(args []cty.Value) (cty.Value, *callProblem) {
		name := args[0].AsString()
		for i := len(p.opts.Env) - 1; i >= 0; i-- {
			if set, value, ok := strings.Cut(p.opts.Env[i], "="); ok && set == name {
				return cty.StringVal(value), nil
			}
		}
		if len(args) > 1 {
			return args[1], nil
		}
		return cty.NilVal, &callProblem{id: "jobspec.env_unset", hint: "jobspec.env_unset.hint", params: []any{"name", name}}
	})
}

// outsideFunction makes a function of a text whose value comes from outside
// the job file.
func (p *parser) outsideFunction(parameter string, more *function.Parameter,
	get func(args []cty.Value) (cty.Value, *callProblem),
) function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: parameter, Type: cty.String}},
		VarParam: more,
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) {
			value, problem := get(args)
			if problem != nil {
				p.meter.pending = problem
				return cty.UnknownVal(want), errCall
			}
			return convert.Convert(value, want)
		},
	})
}
