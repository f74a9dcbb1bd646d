package jobspec

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// edited applies the edits to the text and notes the inserted bytes, so that
// places in the edited text can be led back to the author's.
func (s *surveyor) edited(text []byte) []byte {
	if len(s.edits) == 0 {
		return text
	}
	s.src.inserts = s.src.inserts[:0]
	slices.SortStableFunc(s.edits, func(a, b edit) int { return a.offset - b.offset })
	out := make([]byte, 0, len(text)+len(s.edits))
	copied := 0
	for _, e := range s.edits {
		out = append(out, text[copied:e.offset]...)
		copied = e.offset
		if e.replace {
			copied++
		} else {
			s.src.inserts = append(s.src.inserts, len(out))
		}
		out = append(out, '\n')
	}
	return append(out, text[copied:]...)
}

// masked is the text with a letter for each byte of the labels that are to be
// evaluated, between their quotes.
func (s *surveyor) masked() []byte {
	out := []byte(s.src.text)
	for _, label := range s.src.labels {
		for i := label.start + 1; i < label.end-1; i++ {
			out[i] = 'x'
		}
	}
	return out
}

// recount bounds nesting and tokens by the parser's own tokens: the last word
// when a text holds so much that could nest that a difference between the
// survey's reading and the parser's would be dangerous.
func recount(text []byte, limits Limits) *refusal {
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
	if len(tokens) > limits.Tokens {
		t := tokens[limits.Tokens]
		return &refusal{
			start: t.Range.Start.Byte, end: t.Range.End.Byte, id: "jobspec.tokens", hint: "jobspec.tokens.hint",
			params: []any{"max", limits.Tokens},
		}
	}
	var open []int // operators of each open bracket, quote or interpolation
	open = append(open, 0)
	chain := 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			open[len(open)-1]++
			chain++
			open = append(open, 0)
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc,
			hclsyntax.TokenTemplateSeqEnd:
			if len(open) > 1 {
				chain -= open[len(open)-1]
				open = open[:len(open)-1]
			}
		case hclsyntax.TokenComma, hclsyntax.TokenNewline:
			if t.Type == hclsyntax.TokenComma || len(open) == 1 {
				chain -= open[len(open)-1]
				open[len(open)-1] = 0
			}
		case hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit, hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenComment:
		default:
			open[len(open)-1]++
			chain++
		}
		if len(open)-1 > limits.Depth {
			return &refusal{start: t.Range.Start.Byte, end: t.Range.End.Byte, id: "jobspec.depth", params: []any{"max", limits.Depth}}
		}
		if chain > recountChainMax {
			return &refusal{start: t.Range.Start.Byte, end: t.Range.End.Byte, id: "jobspec.chain", params: []any{"max", chainMax}}
		}
	}
	return nil
}

// recountChainMax is wide, because line breaks inside braces are not told
// apart here; it still keeps the parser's recursion far from its end.
const recountChainMax = 32 * chainMax
