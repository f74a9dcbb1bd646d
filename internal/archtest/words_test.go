package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// wordBan is a way to begin a doc comment that this project has given up.
type wordBan struct {
	begins *regexp.Regexp // after the name of what is documented
	reason string
}

// wordBans are judged at the beginning of doc comments alone: further on these words
// may be plain English ("until it gives up").
func wordBans() []wordBan {
	return []wordBan{
		{regexp.MustCompile(`^gives?\b`), "a function returns, a method sends or sets, a field is: say which; \"gives\" leaves it open"},
		{regexp.MustCompile(`^tells? whether\b`), "Go's doc comments say \"reports whether\""},
	}
}

// docsOf calls yield with every doc comment of a file and the names that it may
// begin with.
func docsOf(file *ast.File, yield func(names []*ast.Ident, doc *ast.CommentGroup)) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch d := node.(type) {
		case *ast.FuncDecl:
			yield([]*ast.Ident{d.Name}, d.Doc)
		case *ast.TypeSpec:
			yield([]*ast.Ident{d.Name}, d.Doc)
		case *ast.ValueSpec:
			yield(d.Names, d.Doc)
		case *ast.Field:
			yield(d.Names, d.Doc)
		case *ast.GenDecl:
			var names []*ast.Ident
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name)
				case *ast.ValueSpec:
					names = append(names, s.Names...)
				}
			}
			yield(names, d.Doc)
		}
		return true
	})
}

// wordProblems lists the doc comments of a file that begin with a banned word.
func wordProblems(file *ast.File) (problems []string) {
	docsOf(file, func(names []*ast.Ident, doc *ast.CommentGroup) {
		if doc == nil {
			return
		}
		for _, name := range names {
			rest, ours := strings.CutPrefix(doc.Text(), name.Name+" ")
			for _, ban := range wordBans() {
				if found := ban.begins.FindString(rest); ours && found != "" {
					problems = append(problems, "\""+name.Name+" "+found+" …\": "+ban.reason)
				}
			}
		}
	})
	return problems
}

func TestDocCommentsSayWhatIsDone(t *testing.T) {
	for _, src := range load(t) {
		for _, problem := range wordProblems(src.ast) {
			t.Errorf("%s: %s", src.file, problem)
		}
	}
}

// The check sees each kind of declaration, and no more than their beginnings.
func TestWordProblemsAreSeen(t *testing.T) {
	const text = `package p

// F gives a number.
func F() int { return 1 }

// T tells whether it is so.
type T struct {
	// A gives a name.
	A string
	// B is what A gives.
	B string
}

// Giver gives up after a while; g gives too.
type (
	// G gives one.
	G int
)

// V returns what F gives, and tells whether it could.
var V = F
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var begun []string
	for _, problem := range wordProblems(file) {
		name, _, _ := strings.Cut(strings.TrimPrefix(problem, `"`), " ")
		begun = append(begun, name)
	}
	if got, want := strings.Join(begun, " "), "F T A G"; got != want {
		t.Errorf("comments of %s are found, want those of %s", got, want)
	}
}
