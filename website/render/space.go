package render

import (
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// apart reports whether a space belongs where a line of Chinese ends in a text and
// the next one begins: between a Chinese character and a word of letters or digits,
// on either side. Between characters, and beside their punctuation, there is none.
func apart(node *ast.Text, source []byte) bool {
	before, after := edge(node, source, true), edge(node.NextSibling(), source, false)
	return unicode.Is(unicode.Han, before) && word(after) || word(before) && unicode.Is(unicode.Han, after)
}

func word(r rune) bool {
	return r < unicode.MaxLatin1 && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// edge is the last or first character of a node; code counts as a word. The text
// that holds the end of a line after code or emphasis is empty.
func edge(node ast.Node, source []byte, last bool) rune {
	for node != nil {
		switch n := node.(type) {
		case *ast.CodeSpan:
			return 'x'
		case *ast.Text:
			text := n.Segment.Value(source)
			switch {
			case len(text) > 0 && last:
				r, _ := utf8.DecodeLastRune(text)
				return r
			case len(text) > 0:
				r, _ := utf8.DecodeRune(text)
				return r
			}
			node = node.PreviousSibling()
		default:
			if node = n.FirstChild(); last {
				node = n.LastChild()
			}
		}
	}
	return 0
}
