package render

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// anchors assigns headings the ids that GitHub gives them, so that a link works
// there and here: letters and digits of every script, which goldmark's own ids
// leave out.
type anchors struct{ taken map[string]int }

// Generate returns the id of a heading.
func (a *anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(string(heading))) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	id := b.String()
	n := a.taken[id]
	a.taken[id]++
	if n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

// Put notes an id that a heading has by itself.
func (a *anchors) Put(id []byte) { a.taken[string(id)]++ }

// rowID is the id of a row of a table below a heading that begins with one word of code,
// or with "label", as tables of fields, arguments and flags do: job.nodes,
// job-stop.-reason. "" for all others. A heading has no dot in its id.
func rowID(heading string, row *extast.TableRow, source []byte) string {
	cell := row.FirstChild()
	if heading == "" || cell == nil || cell.FirstChild() == nil {
		return ""
	}
	first := cell.FirstChild()
	_, label := first.(*ast.Emphasis)
	if _, code := first.(*ast.CodeSpan); first.NextSibling() != nil || !code && !label {
		return ""
	}
	if label {
		return heading + ".label"
	}
	word, _, _ := strings.Cut(plain(first, source), " ") // of a flag, without its value
	name := (&anchors{taken: make(map[string]int)}).Generate([]byte(word), first.Kind())
	if len(name) == 0 {
		return ""
	}
	return heading + "." + string(name)
}
