package openapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// TestWordsAreWhole compares the listed words with the constants of their types.
func TestWordsAreWhole(t *testing.T) {
	declared := make(map[string][]any)
	for _, dir := range []string{"structs", "structs/outlook", "faults", "audit", "history"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", "nomadlike", dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("sources of %s: %d files, %v", dir, len(paths), err)
		}
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.ValueSpec); ok {
					constants(spec, filepath.Base(dir)+".", declared)
				}
				return true
			})
		}
	}
	for of, listed := range words() {
		want := declared[of.String()]
		if !sameWords(listed, want) {
			t.Errorf("%s: %v are listed, %v are declared", of, listed, want)
		}
	}
}

// constants adds the texts of one declaration to those of its type in a package.
func constants(spec *ast.ValueSpec, within string, into map[string][]any) {
	of, ok := spec.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, value := range spec.Values {
		literal, ok := value.(*ast.BasicLit)
		if !ok {
			continue
		}
		if text, err := strconv.Unquote(literal.Value); err == nil {
			into[within+of.Name] = append(into[within+of.Name], text)
		}
	}
}

// sameWords leaves the order to those that list: Modes has one of its own.
func sameWords(a, b []any) bool {
	sorted := func(words []any) []string {
		texts := make([]string, len(words))
		for i, word := range words {
			texts[i], _ = word.(string)
		}
		slices.Sort(texts)
		return texts
	}
	return reflect.DeepEqual(sorted(a), sorted(b))
}
