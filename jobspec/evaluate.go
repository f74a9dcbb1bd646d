package jobspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"nomadlike/nomadlike/structs"
)

// file is one parsed source: the job file or a -var-file.
type file struct {
	src    *source
	edited []byte // the text with its line breaks added
	body   *hclsyntax.Body
}

// diagnostic makes a problem at a place of the file.
func (f *file) diagnostic(severity Severity, at Range, id, hint string, params map[string]string) *Diagnostic {
	return &Diagnostic{
		Severity: severity, ID: id, HintID: hint, Params: params,
		Range: at, Context: f.context(at), Snippet: f.src.snippet(at),
	}
}

// written is the label of a block as its author wrote it, with its quotes.
func (f *file) written(block *hclsyntax.Block) string {
	if label, ok := f.src.evaluated(f.src.origin(block.LabelRanges[0].Start.Byte)); ok {
		return shorten(f.src.text[label.start:label.end])
	}
	return fmt.Sprintf("%q", block.Labels[0])
}

// context names the blocks around a place: job "digits" > task.
func (f *file) context(at Range) string {
	var names []string
	body := f.body
	for body != nil {
		var inner *hclsyntax.Body
		for _, block := range body.Blocks {
			start, end := f.src.origin(block.OpenBraceRange.Start.Byte), f.src.origin(block.CloseBraceRange.End.Byte)
			if at.Start.Byte <= start || at.Start.Byte >= end {
				continue
			}
			name := block.Type
			if len(block.Labels) > 0 {
				name += " " + f.written(block)
			}
			names = append(names, name)
			inner = block.Body
			break
		}
		body = inner
	}
	return strings.Join(names, " > ")
}

// parseFile surveys and parses one source. The file is nil when it must not be
// looked at.
func (p *parser) parseFile(name string, text []byte) *file {
	f := &file{src: newSource(name, nil)}
	if len(text) > p.limits.Source { // not looked at, not even for a snippet
		p.report(f, SeverityError, Range{File: name}, "jobspec.too_large", "jobspec.too_large.hint", "size", len(text), "max", p.limits.Source)
		return nil
	}
	f.src = newSource(name, text)
	edited, seen, refused := survey(f.src, p.limits)
	if refused != nil {
		p.report(f, SeverityError, f.src.span(refused.start, refused.end), refused.id, refused.hint, refused.params...)
		return nil
	}
	f.edited = edited
	parsed, diags := hclsyntax.ParseConfig(seen, name, hcl.InitialPos)
	if body, ok := parsed.Body.(*hclsyntax.Body); ok {
		f.body = body
	}
	if diags.HasErrors() {
		p.failHCL(f, diags)
		return nil
	}
	return f
}

// report notes a problem; params are pairs of name and value.
func (p *parser) report(f *file, severity Severity, at Range, id, hint string, params ...any) {
	if !p.room(severity) {
		return
	}
	texts := make(map[string]string, len(params)/2)
	for i := 0; i+1 < len(params); i += 2 {
		texts[fmt.Sprint(params[i])] = shorten(fmt.Sprint(params[i+1]))
	}
	p.diags = append(p.diags, f.diagnostic(severity, at, id, hint, texts))
}

// room counts a problem and reports whether it may be told in full: past a
// bound, finding its line would cost more than its reader gains.
func (p *parser) room(severity Severity) bool {
	if severity == SeverityError {
		p.errors++
	}
	const toldMax = 4 // times what is shown, because places are sorted later
	if len(p.diags) < toldMax*p.limits.Diagnostics {
		return true
	}
	p.dropped++
	return false
}

// fail reports an error at a range of the parser's.
func (p *parser) fail(f *file, at hcl.Range, id, hint string, params ...any) {
	if len(p.diags) >= 4*p.limits.Diagnostics {
		p.room(SeverityError)
		return
	}
	p.report(f, SeverityError, f.src.rangeOf(at), id, hint, params...)
}

// shorten bounds a value for use in a message.
func shorten(value string) string {
	const valueMax = 400 // bytes
	if len(value) > valueMax {
		value = strings.ToValidUTF8(value[:valueMax], "") + "…"
	}
	return value
}

// scope is what an expression may refer to.
type scope byte

const (
	scopeConstant scope = iota // nothing but itself and functions
	scopeJob                   // variables and locals too
	scopeRank                  // and the parameters of the sweep
	scopePath                  // and what is known of the job only when it is submitted or starts
)

// evaluate returns the value of an expression; false when it has none, which has
// been reported.
func (p *parser) evaluate(f *file, expr hclsyntax.Expression, scope scope) (cty.Value, bool) {
	failed := false
	fail := func(at hcl.Range, id, hint string, params ...any) {
		failed = true
		p.fail(f, at, id, hint, params...)
	}
	references := expr.Variables() // before put, which hides them
	expr = p.meter.put(expr, func(call *hclsyntax.FunctionCallExpr) { p.checkCall(call, fail) })
	for _, traversal := range references {
		if scope == scopeConstant {
			fail(traversal.SourceRange(), "jobspec.constant", "", "name", traversal.RootName())
		} else {
			p.checkReference(traversal, scope, fail)
		}
	}
	if failed || p.meter.spent {
		return cty.DynamicVal, false
	}
	before := p.errors
	p.meter.overrun = func(r hcl.Range, problem callProblem) { p.fail(f, r, problem.id, problem.hint, problem.params...) }
	value, diags := expr.Value(p.context)
	if p.errors > before {
		// A call that failed has its own report; others may still be evaluated.
		p.meter.spent = p.meter.steps < 0 || p.meter.text < 0
		return cty.DynamicVal, false
	}
	if diags.HasErrors() {
		p.failHCL(f, diags)
		return cty.DynamicVal, false
	}
	return value, value.IsWhollyKnown()
}

// checkCall refuses functions that do not exist, or not here.
func (p *parser) checkCall(call *hclsyntax.FunctionCallExpr, fail func(at hcl.Range, id, hint string, params ...any)) {
	switch {
	case call.Name == "file" && p.opts.ReadFile == nil, call.Name == "env" && p.opts.Env == nil:
		fail(call.NameRange, "jobspec.function_outside", "jobspec.function_outside.hint", "name", call.Name)
	case call.Name == functionSecret: // where it may stand it is not evaluated
		fail(call.NameRange, "jobspec.secret_place", "jobspec.secret_place.hint")
	case slices.Contains(FunctionNames(), call.Name):
	default:
		if nearest := p.nearest(call.Name, FunctionNames()); nearest != "" {
			fail(call.NameRange, "jobspec.function", "job.nearest.hint", "name", call.Name, "suggestion", nearest)
		} else {
			fail(call.NameRange, "jobspec.function", "jobspec.function.hint", "name", call.Name, "names", strings.Join(FunctionNames(), ", "))
		}
	}
}

// nearest is structs.Nearest with a bound on the work.
func (p *parser) nearest(word string, candidates []string) string {
	const candidatesMax, suggestionsMax = 200, 20
	if p.suggestions++; p.suggestions > suggestionsMax {
		return ""
	}
	return structs.Nearest(word, candidates[:min(len(candidates), candidatesMax)])
}

// laterNames are what is known only when the job is submitted or starts. Their
// values are their own names: whatever submits or starts the job puts in the rest.
var laterNames = []string{structs.LaterID, structs.LaterShortID, structs.LaterAttempt}

// publishJob makes what is known of the job visible to expressions.
func (p *parser) publishJob() {
	if !p.isSpoiled("name") {
		p.context.Variables["job"] = cty.ObjectVal(map[string]cty.Value{
			"name": cty.StringVal(p.job.Name),
			"id":   cty.StringVal(structs.LaterID), "short_id": cty.StringVal(structs.LaterShortID),
		})
	}
	p.context.Variables["attempt"] = cty.StringVal(structs.LaterAttempt)
}

// checkParam refuses a parameter that the sweep has not, or that stands where every trial
// has the same. Its value is the variable that the rank finds it in.
func (p *parser) checkParam(traversal hcl.Traversal, scope scope, fail func(at hcl.Range, id, hint string, params ...any)) {
	at, name := traversal.SourceRange(), stepName(traversal)
	values := make(map[string]cty.Value)
	if p.job.Sweep != nil {
		for _, param := range p.job.Sweep.Params {
			values[param.Name] = cty.StringVal("${" + structs.ParamEnv(param.Name) + "}")
		}
	}
	names := slices.Sorted(maps.Keys(values))
	switch _, known := values[name]; {
	case !known:
		if nearest := p.nearest(name, names); nearest != "" {
			fail(at, "jobspec.param_unknown", "job.nearest.hint", "name", name, "suggestion", "param."+nearest)
		} else {
			fail(at, "jobspec.param_unknown", "jobspec.param_unknown.hint", "name", name)
		}
	case scope != scopeRank:
		fail(at, "jobspec.param_place", "jobspec.param_place.hint", "name", name)
	default:
		p.context.Variables["param"] = cty.ObjectVal(values)
	}
}

// checkReference refuses names that mean nothing: only var.x, local.x and
// job.name do, and in paths what is known later.
func (p *parser) checkReference(traversal hcl.Traversal, scope scope, fail func(at hcl.Range, id, hint string, params ...any)) {
	root, at, name := traversal.RootName(), traversal.SourceRange(), stepName(traversal)
	full := "${" + root + "}"
	if name != "" {
		full = "${" + root + "." + name + "}"
	}
	_, named := p.context.Variables["job"]
	switch {
	case full == structs.LaterName && named:
		return
	case slices.Contains(laterNames, full) && len(traversal) <= 2:
		if scope != scopePath || !named {
			fail(at, "jobspec.later", "jobspec.later.hint", "name", strings.Trim(full, "${}"))
		}
		return
	case root == "param" && scope != scopeConstant:
		p.checkParam(traversal, scope, fail)
		return
	case root == "var" && p.declared[name] != nil, root == "local" && p.named[name] != nil:
		return
	case root == "var" || root == "local":
		known := p.variableNames()
		if root == "local" {
			known = p.localNames()
		}
		id := "jobspec." + root + "_unknown"
		if nearest := p.nearest(name, known); nearest != "" {
			fail(at, id, "job.nearest.hint", "name", name, "suggestion", root+"."+nearest)
		} else {
			fail(at, id, id+".hint", "name", name)
		}
	case len(traversal) == 1 && p.declared[root] != nil:
		fail(at, "jobspec.reference", "jobspec.reference.variable.hint", "name", root)
	case strings.ToUpper(root) == root: // the shell's, most likely
		fail(at, "jobspec.reference", "jobspec.reference.shell.hint", "name", root, "shell", "$${"+root+"}", "written", "${"+root+"}")
	default:
		fail(at, "jobspec.reference", "jobspec.reference.hint", "name", root)
	}
}
