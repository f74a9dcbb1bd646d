package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestRoomsHaveAnOrder: rooms of one tree import only those that stand before them.
func TestRoomsHaveAnOrder(t *testing.T) {
	for _, tree := range Trees() {
		seen := make(map[string]bool)
		for _, src := range load(t) {
			room, ok := below(src.pkg, tree.Path)
			if !ok {
				continue
			}
			at := slices.Index(tree.Rooms, room)
			if at < 0 {
				t.Errorf("%s: room %q of %s has no place; give it one in archtest.Trees", src.file, room, tree.Path)
				continue
			}
			seen[room] = true
			for _, other := range imports(src) {
				neighbour, ok := below(other, tree.Path)
				if ok && slices.Index(tree.Rooms, neighbour) >= at {
					t.Errorf("%s: %q may not import %q, which does not stand before it in %s", src.file, room, neighbour, tree.Path)
				}
			}
		}
		for _, room := range tree.Rooms {
			if !seen[room] {
				t.Errorf("%s has no room %q any more", tree.Path, room)
			}
		}
	}
}

func TestWallsBetweenNeighbours(t *testing.T) {
	all := load(t)
	for _, wall := range Walls() {
		found := false
		for _, src := range all {
			if !within(src.pkg, wall.Room) {
				continue
			}
			found = true
			for _, other := range imports(src) {
				if within(other, wall.Not) {
					t.Errorf("%s: %s may not import %s: %s", src.file, src.pkg, other, wall.Reason)
				}
			}
		}
		if !found {
			t.Errorf("there is no %s any more: the wall to %s stands nowhere", wall.Room, wall.Not)
		}
	}
}

// TestNoTypeDoesEverything bounds the methods of one type.
func TestNoTypeDoesEverything(t *testing.T) {
	all := load(t)
	for _, tree := range Trees() {
		methods := make(map[string]int)
		for _, src := range all {
			if _, ok := below(src.pkg, tree.Path); !ok {
				continue
			}
			for _, decl := range src.ast.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
					methods[src.pkg+"."+receiver(f)]++
				}
			}
		}
		if len(methods) == 0 {
			t.Errorf("no methods below %s: the test looks in the wrong place", tree.Path)
		}
		for name, count := range methods {
			if count > tree.MethodsMax {
				t.Errorf("%s has %d methods, at most %d: split it by what they are about", name, count, tree.MethodsMax)
			}
		}
	}
}

func receiver(f *ast.FuncDecl) string {
	expr := f.Recv.List[0].Type
	for {
		switch x := expr.(type) {
		case *ast.StarExpr:
			expr = x.X
		case *ast.IndexExpr:
			expr = x.X
		case *ast.IndexListExpr:
			expr = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// below returns the part of an import path below a tree, "" for the tree itself.
func below(pkg, tree string) (room string, ok bool) {
	if pkg == tree {
		return "", true
	}
	return strings.CutPrefix(pkg, tree+"/")
}

// within reports whether an import path is the one that a rule names, or of its tree.
func within(pkg, rule string) bool {
	tree, isTree := strings.CutSuffix(rule, "/...")
	return pkg == tree || isTree && strings.HasPrefix(pkg, tree+"/")
}

// imports lists what a file imports of this module, below it.
func imports(src source) []string {
	var paths []string
	for _, spec := range src.ast.Imports {
		if path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); ours {
			paths = append(paths, path)
		}
	}
	return paths
}
