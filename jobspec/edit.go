package jobspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// Bounds of an edit.
const (
	ChangesMax   = 64  // of one edit
	changeAtMax  = 256 // bytes of a place
	changeDepth  = 8   // blocks inside one another
	changeBlocks = 64  // highest number of a block
)

// Change sets one value of a job file to another.
//
// At names the place below the job block: blocks by their type, the second and
// later ones of a type by a number from 0 in brackets, then an argument, apart
// by dots: "nodes", "resources.cpu", "resources[1].device.count". A # at the end
// means the label of the block before it, "#" alone the job's name; a name in quotes
// and brackets one entry of an object: task.env["LR"]. What is not there yet is added;
// block by block in order.
//
// Value is text, a number, true or false, a list of texts, or an object of
// texts; null takes the argument or entry away, and with a label the whole block. An
// object of which "secret" is the only name is the secret of that name.
type Change struct {
	At    string `json:"at"`
	Value any    `json:"value"`
}

// ErrChange is wrapped by what Edit says of a change that cannot be made.
var ErrChange = errors.New("change of a job file")

// Edit makes changes in a job file. Comments, variables and everything that is
// not changed stay as they are; the result is in canonical form, see Format.
// Whether it still is a good job is Parse's to say. A file that cannot be
// parsed is not edited: the diagnostics say why. The error wraps ErrChange.
// Pure; any goroutine may call it.
func Edit(filename string, src []byte, changes []Change) ([]byte, Diagnostics, error) {
	if len(changes) > ChangesMax {
		return nil, nil, fmt.Errorf("%w: %d changes, at most %d are taken", ErrChange, len(changes), ChangesMax)
	}
	text := src
	for i := range changes {
		steps, err := splitPlace(changes[i].At)
		if err != nil {
			return nil, nil, err
		}
		p := &parser{limits: Limits{}.withDefaults()}
		f := p.parseFile(filename, text)
		if f == nil {
			return nil, p.diags.sorted(p.limits.Diagnostics, p.dropped), nil
		}
		at := slices.IndexFunc(f.body.Blocks, func(b *hclsyntax.Block) bool { return b.Type == "job" })
		if at < 0 {
			return nil, nil, fmt.Errorf("%w: there is no job block", ErrChange)
		}
		e := editor{text: f.edited}
		if err := e.block(f.body.Blocks[at], steps, changes[i].Value); err != nil {
			return nil, nil, err
		}
		text = e.text
	}
	formatted, diagnostics := Format(filename, text)
	return formatted, diagnostics, nil
}

// step is one part of a place.
type step struct {
	name   string // "" for the label of the block that it stands in
	number int
	key    string // of an entry of the object that the argument is
}

// changeKey is an entry of an object, at the end of a place.
var changeKey = regexp.MustCompile(`^(.+)\["([A-Za-z_][A-Za-z0-9_]*)"\]$`)

func splitPlace(at string) ([]step, error) {
	wrong := fmt.Errorf("%w: %q is no place", ErrChange, shorten(at))
	if at == "" || len(at) > changeAtMax {
		return nil, wrong
	}
	path, label := strings.CutSuffix(at, "#")
	key := ""
	if entry := changeKey.FindStringSubmatch(path); entry != nil && !label {
		path, key = entry[1], entry[2]
	}
	var steps []step
	for part := range strings.SplitSeq(path, ".") {
		if path == "" {
			break
		}
		name, index, numbered := strings.Cut(part, "[")
		number := 0
		if numbered {
			text, closed := strings.CutSuffix(index, "]")
			n, err := strconv.Atoi(text)
			if !closed || err != nil || n < 0 || n > changeBlocks {
				return nil, wrong
			}
			number = n
		}
		if !hclsyntax.ValidIdentifier(name) {
			return nil, wrong
		}
		steps = append(steps, step{name: name, number: number})
	}
	if len(steps) > 0 {
		steps[len(steps)-1].key = key
	}
	if label {
		steps = append(steps, step{})
	}
	if len(steps) == 0 || len(steps) > changeDepth {
		return nil, wrong
	}
	return steps, nil
}

// editor splices the text of a file.
type editor struct{ text []byte }

func (e *editor) splice(from, to int, with string) {
	e.text = slices.Concat(e.text[:from], []byte(with), e.text[to:])
}

// block makes a change below a block.
func (e *editor) block(b *hclsyntax.Block, steps []step, value any) error {
	head := steps[0]
	switch {
	case head.name == "":
		return e.label(b, value)
	case len(steps) == 1 && head.key != "":
		return e.entry(b, head, value)
	case len(steps) == 1:
		return e.argument(b, head.name, value)
	}
	seen := 0
	for _, inner := range b.Body.Blocks {
		if inner.Type != head.name {
			continue
		}
		if seen == head.number {
			return e.block(inner, steps[1:], value)
		}
		seen++
	}
	if value == nil {
		return nil // it is not there already
	}
	if seen != head.number {
		return fmt.Errorf("%w: block %s[%d] has none before it", ErrChange, head.name, head.number)
	}
	return e.newBlock(b, steps, value)
}

// label changes the label of a block, or removes the block.
func (e *editor) label(b *hclsyntax.Block, value any) error {
	if value == nil {
		e.cut(b.TypeRange.Start.Byte, b.CloseBraceRange.End.Byte)
		return nil
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%w: a label is text", ErrChange)
	}
	quoted := spelled(cty.StringVal(text))
	if len(b.LabelRanges) == 0 {
		e.splice(b.TypeRange.End.Byte, b.TypeRange.End.Byte, " "+quoted)
		return nil
	}
	at := b.LabelRanges[0]
	e.splice(at.Start.Byte, at.End.Byte, quoted)
	return nil
}

// argument changes the value of an argument, adds it, or removes it.
func (e *editor) argument(b *hclsyntax.Block, name string, value any) error {
	old := b.Body.Attributes[name]
	if value == nil {
		if old != nil {
			e.cut(old.NameRange.Start.Byte, old.Expr.Range().End.Byte)
		}
		return nil
	}
	text, err := spell(value)
	if err != nil {
		return err
	}
	if old != nil {
		at := old.Expr.Range()
		if strings.HasSuffix(string(e.text[at.Start.Byte:at.End.Byte]), "\n") { // a heredoc ends with its line
			text += "\n"
		}
		e.splice(at.Start.Byte, at.End.Byte, text)
		return nil
	}
	e.into(b, name+" = "+text)
	return nil
}

// entry changes one entry of an object, adds it, or removes it.
func (e *editor) entry(b *hclsyntax.Block, at step, value any) error {
	text := ""
	if value != nil {
		var err error
		if text, err = spell(value); err != nil {
			return err
		}
	}
	attribute := b.Body.Attributes[at.name]
	if attribute == nil {
		if value != nil {
			e.into(b, at.name+" = {\n"+at.key+" = "+text+"\n}")
		}
		return nil
	}
	object, ok := attribute.Expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return fmt.Errorf("%w: %s is no object that is written out", ErrChange, at.name)
	}
	for _, item := range object.Items {
		if name, diagnostics := item.KeyExpr.Value(nil); diagnostics.HasErrors() || name.Type() != cty.String || name.AsString() != at.key {
			continue
		}
		from, to := item.KeyExpr.Range().Start.Byte, item.ValueExpr.Range().End.Byte
		switch {
		case value != nil:
			was := item.ValueExpr.Range()
			if strings.HasSuffix(string(e.text[was.Start.Byte:was.End.Byte]), "\n") { // a heredoc ends with its line
				text += "\n"
			}
			e.splice(was.Start.Byte, was.End.Byte, text)
		case len(object.Items) == 1:
			return e.argument(b, at.name, nil)
		default:
			e.cutItem(from, to)
		}
		return nil
	}
	if value != nil {
		open := object.OpenRange.End.Byte
		e.splice(open, open, "\n"+at.key+" = "+text+"\n")
	}
	return nil
}

// cutItem takes an entry of an object away, with the comma behind it.
func (e *editor) cutItem(from, to int) {
	if rest := strings.TrimLeft(string(e.text[to:]), " \t"); strings.HasPrefix(rest, ",") {
		to = len(e.text) - len(rest) + 1
	}
	e.cut(from, to)
}

// newBlock adds a block at the end of another, with what a change says of it.
func (e *editor) newBlock(b *hclsyntax.Block, steps []step, value any) error {
	lines, closing := strings.Builder{}, ""
	for i, s := range steps {
		last := i == len(steps)-1
		if last && s.name != "" {
			text, err := spell(value)
			if err != nil {
				return err
			}
			if s.key != "" {
				text = "{\n" + s.key + " = " + text + "\n}"
			}
			lines.WriteString(s.name + " = " + text + "\n")
			break
		}
		if last {
			break
		}
		if s.number != 0 && i > 0 {
			return fmt.Errorf("%w: block %s[%d] has none before it", ErrChange, s.name, s.number)
		}
		label := ""
		if i == len(steps)-2 && steps[i+1].name == "" {
			text, ok := value.(string)
			if !ok {
				return fmt.Errorf("%w: a label is text", ErrChange)
			}
			label = spelled(cty.StringVal(text)) + " "
		}
		lines.WriteString(s.name + " " + label + "{\n")
		closing = "}\n" + closing
	}
	end := b.CloseBraceRange.Start.Byte
	e.splice(end, end, "\n"+lines.String()+closing)
	return nil
}

// into adds an argument to a block: behind the arguments before its first inner
// block, or at its beginning.
func (e *editor) into(b *hclsyntax.Block, line string) {
	first := b.CloseBraceRange.Start.Byte
	for _, inner := range b.Body.Blocks {
		first = min(first, inner.TypeRange.Start.Byte)
	}
	at := b.OpenBraceRange.End.Byte
	for _, attribute := range b.Body.Attributes {
		if end := attribute.Expr.Range().End.Byte; end <= first {
			at = max(at, end)
		}
	}
	switch after := strings.IndexByte(string(e.text[at:first]), '\n'); {
	case e.text[at-1] == '\n':
		e.splice(at, at, line+"\n")
	case after >= 0: // behind what else stands on the line, such as a comment
		e.splice(at+after+1, at+after+1, line+"\n")
	default:
		e.splice(at, at, "\n"+line+"\n")
	}
}

// cut takes a part of the text away, and its lines where nothing else but a
// comment at their end is on them.
func (e *editor) cut(from, to int) {
	for from > 0 && (e.text[from-1] == ' ' || e.text[from-1] == '\t') {
		from--
	}
	end := to
	for end < len(e.text) && e.text[end] != '\n' {
		end++
	}
	rest := strings.TrimSpace(string(e.text[to:end]))
	if from > 0 && e.text[from-1] == '\n' && (rest == "" || strings.HasPrefix(rest, "#") || strings.HasPrefix(rest, "//")) {
		if to == 0 || e.text[to-1] != '\n' { // a heredoc brings its line break
			to = min(end+1, len(e.text))
		}
	}
	e.splice(from, to, "")
}

func spelled(value cty.Value) string {
	return string(hclwrite.TokensForValue(value).Bytes())
}

// spell writes a value of a change as an expression.
func spell(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return spelled(cty.StringVal(v)), nil
	case bool:
		return spelled(cty.BoolVal(v)), nil
	case json.Number:
		n, err := cty.ParseNumberVal(v.String())
		if err != nil {
			return "", fmt.Errorf("%w: %q is no number", ErrChange, shorten(v.String()))
		}
		return spelled(n), nil
	case float64:
		return spelled(cty.NumberFloatVal(v)), nil
	case []any:
		words := make([]cty.Value, len(v))
		for i, one := range v {
			text, ok := one.(string)
			if !ok {
				return "", fmt.Errorf("%w: a list holds texts", ErrChange)
			}
			words[i] = cty.StringVal(text)
		}
		return spelled(cty.TupleVal(words)), nil
	case map[string]any:
		if name, ok := v["secret"].(string); ok && len(v) == 1 {
			return "secret(" + spelled(cty.StringVal(name)) + ")", nil
		}
		table := make(map[string]string, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text, ok := v[key].(string)
			if !ok {
				return "", fmt.Errorf("%w: an object holds texts", ErrChange)
			}
			table[key] = text
		}
		return string(tableTokens(table).Bytes()), nil
	}
	return "", fmt.Errorf("%w: a %T is no value", ErrChange, value)
}
