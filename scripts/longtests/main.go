// Command longtests prints which tests testing.Short leaves out, wholly or in part,
// in the packages that are named: a pattern for -run on one line, the packages that
// have such tests on the next. It prints nothing when there are none. The normal run
// gives the race detector the short form of everything, and then runs these.
//
// Flow: the directories of packages as arguments; their test files are parsed; a test
// counts when it calls testing.Short, or a function of its package that does.
//
// Limits: a call through a method or a value is not followed. Test files of the
// external test package are read as those of the package.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var tests, packages []string
	for _, dir := range os.Args[1:] {
		found, err := leftOut(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "longtests:", err)
			os.Exit(1)
		}
		if len(found) > 0 {
			tests, packages = append(tests, found...), append(packages, "./"+filepath.Clean(dir))
		}
	}
	if len(tests) > 0 {
		fmt.Printf("^(%s)$\n%s\n", strings.Join(tests, "|"), strings.Join(packages, " "))
	}
}

// leftOut returns the names of the tests in a directory that ask testing.Short,
// sorted. It fails when a function that asks is reached by no test.
func leftOut(dir string) ([]string, error) {
	calls, err := functions(dir)
	if err != nil {
		return nil, err
	}
	asks := map[string]bool{"testing.Short": true}
	for grown := true; grown; {
		grown = false
		for name, called := range calls {
			if !asks[name] && slices.ContainsFunc(called, func(c string) bool { return asks[c] }) {
				asks[name], grown = true, true
			}
		}
	}
	var tests []string
	reached := make(map[string]bool)
	for name := range calls {
		if asks[name] && strings.HasPrefix(name, "Test") && name != "TestMain" {
			tests = append(tests, name)
			reach(name, calls, reached)
		}
	}
	for name := range calls {
		if asks[name] && !reached[name] {
			return nil, fmt.Errorf("%s: %s asks testing.Short, and no test that can be seen calls it", dir, name)
		}
	}
	slices.Sort(tests)
	return tests, nil
}

// reach marks what a function calls, itself included.
func reach(name string, calls map[string][]string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for _, called := range calls[name] {
		reach(called, calls, reached)
	}
}

// functions returns what each function of a directory's test files calls by name.
// Methods go by their own names.
func functions(dir string) (map[string][]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("list test files: %w", err)
	}
	calls := make(map[string][]string)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse a test file: %w", err)
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					calls[f.Name.Name] = append(calls[f.Name.Name], named(call.Fun))
				}
				return true
			})
		}
	}
	return calls, nil
}

// named is what is called: a name, or a name of another package after a dot.
func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	}
	return ""
}
