package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every endpoint that is declared stands in the table of routes, once: clients
// could call what no server answers otherwise.
func TestEveryEndpointIsInTheTable(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name := endpointName(call); name != "" {
					declared = append(declared, name)
				}
			}
			return true
		})
	}
	var routed []string
	for _, route := range Routes() {
		routed = append(routed, route.Name)
	}
	slices.Sort(declared)
	slices.Sort(routed)
	if len(declared) < 50 || !slices.Equal(declared, routed) {
		t.Errorf("declared are\n%v\nin the table are\n%v", declared, routed)
	}
}

// endpointName is the name in endpoint[...](Route{Name: ...}), "" of other calls.
func endpointName(call *ast.CallExpr) string {
	types, ok := call.Fun.(*ast.IndexListExpr)
	if !ok || len(call.Args) != 1 {
		return ""
	}
	route, ok := call.Args[0].(*ast.CompositeLit)
	if name, isIdent := types.X.(*ast.Ident); !ok || !isIdent || name.Name != "endpoint" {
		return ""
	}
	for _, field := range route.Elts {
		pair, ok := field.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, isIdent := pair.Key.(*ast.Ident)
		value, isText := pair.Value.(*ast.BasicLit)
		if isIdent && isText && key.Name == "Name" {
			name, err := strconv.Unquote(value.Value)
			if err == nil {
				return name
			}
		}
	}
	return ""
}
