package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "nomadlike"

// source is one non-test Go file of the module.
type source struct {
	pkg  string // import path below the module
	file string
	ast  *ast.File
}

func load(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := entry.Name()
			if base == "testdata" || base == "node_modules" || (strings.HasPrefix(base, ".") && name != root) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
		rel, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		if rel == "." {
			rel = ""
		}
		all = append(all, source{pkg: filepath.ToSlash(rel), file: name, ast: parsed})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("found only %d source files: the test looks in the wrong place", len(all))
	}
	return all
}

func roomOf(pkg string) (Room, bool) {
	best, found := Room{}, false
	for _, room := range House() {
		tree, isTree := strings.CutSuffix(room.Path, "/...")
		if pkg == room.Path || isTree && (pkg == tree || strings.HasPrefix(pkg, tree+"/")) {
			if !found || len(room.Path) > len(best.Path) {
				best, found = room, true
			}
		}
	}
	return best, found
}

func TestImportsPointDownward(t *testing.T) {
	for _, src := range load(t) {
		if src.ast.Name.Name == "main" && src.pkg != "" || strings.HasPrefix(src.pkg, "website/") || strings.HasPrefix(src.pkg, "scripts/") {
			continue // programs of their own: examples, tools, the embedded supervisor
		}
		room, ok := roomOf(src.pkg)
		if !ok {
			t.Errorf("%s: package %q is not on the floor plan; give it a storey in archtest.House", src.file, src.pkg)
			continue
		}
		for _, spec := range src.ast.Imports {
			below, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
			if !ours {
				continue
			}
			other, ok := roomOf(below)
			if !ok {
				t.Errorf("%s imports %s, which is not on the floor plan", src.file, below)
				continue
			}
			if other.Path == room.Path {
				continue
			}
			if other.Storey >= room.Storey {
				t.Errorf("%s: %s (storey %d) may not import %s (storey %d): imports point downward only, rooms meet in the replicated state",
					src.file, src.pkg, room.Storey, below, other.Storey)
			}
		}
	}
}

func TestBans(t *testing.T) {
	for _, src := range load(t) {
		for _, ban := range Bans() {
			if !contains(ban.Rooms, src.pkg) || strings.HasPrefix(path.Base(src.file), "fake") {
				continue
			}
			checkImports(t, src, ban)
			checkCalls(t, src, ban)
		}
	}
}

func checkImports(t *testing.T, src source, ban Ban) {
	t.Helper()
	if ban.Import == "" {
		return
	}
	for _, spec := range src.ast.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		if name == ban.Import || strings.HasPrefix(name, ban.Import+"/") {
			t.Errorf("%s imports %s: %s", src.file, name, ban.Reason)
		}
	}
}

func checkCalls(t *testing.T, src source, ban Ban) {
	t.Helper()
	ast.Inspect(src.ast, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if ok && pkg.Obj == nil && contains(ban.Calls, pkg.Name+"."+selector.Sel.Name) {
			t.Errorf("%s uses %s.%s: %s", src.file, pkg.Name, selector.Sel.Name, ban.Reason)
		}
		return true
	})
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	commented := make(map[string]bool)
	for _, src := range load(t) {
		commented[src.pkg] = commented[src.pkg] || src.ast.Doc != nil
	}
	for pkg, ok := range commented {
		if !ok {
			t.Errorf("package %q has no package comment: purpose, flow, limits", pkg)
		}
	}
}

// TestNoLineLeavesARuleOut: what the linter may not find is said in its configuration,
// with a reason (design 0064).
func TestNoLineLeavesARuleOut(t *testing.T) {
	files := os.DirFS(filepath.Join("..", ".."))
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || name != "." && strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if bytes.Contains(text, []byte("//nolint"+":")) {
			t.Errorf("%s leaves a rule of the linter out: mend the line, or exclude it in .golangci.yml and say why", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNothingLeaks looks for what must never stand in the repository: paths
// of the machine that wrote it and words of forbidden dependencies.
func TestNothingLeaks(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(mod, []byte("github.com/hashicorp/nomad")) {
		t.Error("go.mod names hashicorp/nomad, whose licence (BUSL) does not allow it")
	}
}

func contains(list []string, item string) bool {
	for _, one := range list {
		if one == item {
			return true
		}
	}
	return false
}
