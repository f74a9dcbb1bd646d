package command

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

//go:generate go test -count=1 -run TestErrorCodes -rewrite .

// errorCode are the codes of failures by the names of their constants.
var errorCode = map[string]structs.ErrorCode{
	"CodeInvalid": structs.CodeInvalid, "CodeUnauthorized": structs.CodeUnauthorized, "CodeForbidden": structs.CodeForbidden,
	"CodeNotFound": structs.CodeNotFound, "CodeConflict": structs.CodeConflict, "CodeUnavailable": structs.CodeUnavailable,
	"CodeTimeout": structs.CodeTimeout, "CodeNotAvailable": structs.CodeNotAvailable, "CodeTooLarge": structs.CodeTooLarge,
	"CodeInternal": structs.CodeInternal,
}

// TestErrorCodes keeps the list of error codes by id, which the page of error
// messages shows, equal to the source; -rewrite writes it anew.
func TestErrorCodes(t *testing.T) {
	codes := make(map[string]structs.ErrorCode)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "scripts" || entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			id, code := newError(node)
			if id == "" || !messages.Has(messages.English, id+".hint") {
				return true
			}
			if _, ok := codes[id]; !ok { // a few have two codes: the first counts
				codes[id] = code
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(codes) < 100 {
		t.Errorf("only %d codes found", len(codes))
	}
	data, err := json.MarshalIndent(codes, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, filepath.Join("..", "website", "reference", "errors.json"), string(data)+"\n")
}

// newError returns id and code of a call of structs.NewError with both written out.
func newError(node ast.Node) (id string, code structs.ErrorCode) {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 || nameOf(call.Fun) != "NewError" {
		return "", ""
	}
	text, ok := call.Args[1].(*ast.BasicLit)
	code = errorCode[nameOf(call.Args[0])]
	if !ok || code == "" {
		return "", ""
	}
	if id, err := strconv.Unquote(text.Value); err == nil {
		return id, code
	}
	return "", ""
}

func nameOf(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.Ident:
		return expr.Name
	case *ast.SelectorExpr:
		return expr.Sel.Name
	}
	return ""
}
