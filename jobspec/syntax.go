package jobspec

import (
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// syntaxText names our text for what HCL calls summary, "" when we have none
// and its English detail is shown. hint is "" when the text says it all.
func syntaxText(summary, detail string) (id, hint string) {
	switch summary {
	case "Argument or block definition required", "Argument definition required":
		return "jobspec.syntax.item", "jobspec.syntax.item.hint"
	case "Attribute redefined", "Duplicate argument":
		return "jobspec.syntax.redefined", "jobspec.syntax.redefined.hint"
	case "Duplicate object key":
		return "jobspec.syntax.duplicate_key", ""
	case "Invalid argument name":
		return "jobspec.syntax.quoted_name", "jobspec.syntax.quoted_name.hint"
	case "Invalid block definition":
		if strings.HasPrefix(detail, "The equals sign") {
			return "jobspec.syntax.block_equals", "jobspec.syntax.block_equals.hint"
		}
		return "jobspec.syntax.block", "jobspec.syntax.block.hint"
	case "Invalid single-argument block definition":
		return "jobspec.syntax.one_line", "jobspec.syntax.one_line.hint"
	case "Invalid character":
		return "jobspec.syntax.character", ""
	case "Invalid escape sequence":
		return "jobspec.syntax.escape", "jobspec.syntax.escape.hint"
	case "Invalid expression", "Missing expression", "Invalid number literal":
		return "jobspec.syntax.expression", ""
	case "Invalid string literal":
		return "jobspec.syntax.label_template", ""
	case "Missing newline after argument", "Missing newline after block definition":
		return "jobspec.syntax.newline", "jobspec.syntax.newline.hint"
	case "Unexpected comma after argument":
		return "jobspec.syntax.comma", "jobspec.syntax.comma.hint"
	case "Missing item separator", "Missing attribute separator", "Missing argument separator":
		return "jobspec.syntax.separator", ""
	case "Missing key/value separator", "Missing attribute value":
		return "jobspec.syntax.key_value", ""
	case "Unclosed configuration block", "Unclosed configuration body":
		return "jobspec.syntax.block_open", "jobspec.syntax.block_open.hint"
	case "Unbalanced parentheses", "Missing closing parenthesis", "Unclosed index brackets", "Missing close bracket on index",
		"Unterminated function call", "Unterminated object constructor expression", "Unterminated tuple constructor expression":
		return "jobspec.syntax.bracket_open", ""
	case "Unterminated string literal", "Unterminated template string", "Unexpected end of template":
		return "jobspec.syntax.template_open", "jobspec.syntax.template_open.hint"
	case "Unclosed template interpolation sequence", "Extra characters after interpolation expression":
		return "jobspec.syntax.interpolation", "jobspec.syntax.interpolation.hint"
	case "Unsupported operator":
		return "jobspec.syntax.operator", ""
	}
	return evaluationText(summary)
}

// evaluationText is syntaxText for what goes wrong while expressions are
// evaluated.
func evaluationText(summary string) (id, hint string) {
	switch summary {
	case "Invalid template interpolation value":
		return "jobspec.eval.interpolation", ""
	case "Invalid operand":
		return "jobspec.eval.operand", ""
	case "Unsupported attribute", "Missing map element", "Attempt to get attribute from null value":
		return "jobspec.eval.attribute", ""
	case "Invalid index", "Attempt to index null value":
		return "jobspec.eval.index", ""
	case "Invalid function argument", "Not enough function arguments", "Too many function arguments", "Error in function call",
		"Invalid expanding argument value":
		return "jobspec.eval.function", ""
	case "Inconsistent conditional result types":
		return "jobspec.eval.conditional_types", ""
	case "Incorrect condition type", "Null condition", "Condition is null", "Invalid 'for' condition":
		return "jobspec.eval.condition", ""
	case "Iteration over non-iterable value", "Iteration over null value":
		return "jobspec.eval.iteration", ""
	case "Incorrect key type", "Null value as key", "Invalid object key", "Ambiguous attribute key":
		return "jobspec.eval.key", ""
	}
	return "", ""
}

// failHCL reports what the parser or an expression complains about. The
// library's English detail goes along as {detail}.
func (p *parser) failHCL(f *file, found hcl.Diagnostics) {
	for _, one := range found {
		if one.Severity != hcl.DiagError {
			continue
		}
		var at hcl.Range
		if one.Subject != nil {
			at = *one.Subject
		}
		id, hint := syntaxText(one.Summary, one.Detail)
		start, end := f.src.origin(at.Start.Byte), f.src.origin(at.End.Byte)
		params := []any{"detail", firstSentence(one.Detail), "subject", shorten(f.src.text[start:max(start, end)])}
		switch id {
		case "":
			id = "jobspec.syntax"
			params = append(params, "summary", one.Summary)
		case "jobspec.syntax.character":
			c, _ := utf8.DecodeRuneInString(f.src.text[start:])
			params = append(params, "character", string(c), "meant", meantBy(c))
			hint = characterHint(c)
		}
		p.fail(f, at, id, hint, params...)
	}
}

// meantBy is the character of the language that an input method or another
// language writes as c; "" when it is none.
func meantBy(c rune) string {
	switch c {
	case '“', '”', '「', '」', '＂', '\'', '‘', '’':
		return `"`
	case '，', '、':
		return ","
	case '＝':
		return "="
	case '｛':
		return "{"
	case '｝':
		return "}"
	case '（':
		return "("
	case '）':
		return ")"
	case '［', '【':
		return "["
	case '］', '】':
		return "]"
	case '：':
		return ":"
	}
	return ""
}

// characterHint reports what to write instead of c.
func characterHint(c rune) string {
	switch c {
	case '\u3000', '\u00a0':
		return "jobspec.syntax.character.blank.hint"
	case ';', '；':
		return "jobspec.syntax.character.semicolon.hint"
	case '`':
		return "jobspec.syntax.character.backtick.hint"
	}
	if meantBy(c) != "" {
		return "jobspec.syntax.character.hint"
	}
	return ""
}

// firstSentence cuts a detail of the library to what fits one line.
func firstSentence(detail string) string {
	const detailMax = 300 // bytes
	detail, _, _ = strings.Cut(detail, "\n")
	if len(detail) > detailMax {
		detail = strings.ToValidUTF8(detail[:detailMax], "") + "…"
	}
	return strings.TrimSuffix(detail, ".")
}
