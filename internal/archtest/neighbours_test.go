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

// TestNoCyclesBetweenTrees: of the directories that lie beside each other, each with
// all below it, none reaches itself by imports. The compiler sees packages alone.
func TestNoCyclesBetweenTrees(t *testing.T) {
	graphs := make(map[string]map[string][]string) // directory, child: children that it imports
	for _, src := range load(t) {
		for _, other := range imports(src) {
			addEdge(graphs, src.pkg, other)
		}
	}
	if len(graphs) < 5 {
		t.Fatalf("%d directories have packages that import each other: the test looks in the wrong place", len(graphs))
	}
	delete(graphs, "") // its rooms stand on storeys, below and above each other
	for dir, graph := range graphs {
		if cycle := cycleOf(graph); cycle != nil {
			t.Errorf("below %q these import each other, in a circle: %s", dir, strings.Join(cycle, " -> "))
		}
	}
}

// addEdge puts an import to the graph of the directory where its ends part.
func addEdge(graphs map[string]map[string][]string, from, to string) {
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	child := func(path []string) string {
		if at == len(path) {
			return "." // the directory's own package
		}
		return path[at]
	}
	dir := strings.Join(a[:at], "/")
	if graphs[dir] == nil {
		graphs[dir] = make(map[string][]string)
	}
	if !slices.Contains(graphs[dir][child(a)], child(b)) {
		graphs[dir][child(a)] = append(graphs[dir][child(a)], child(b))
	}
}

// cycleOf returns a way from a node back to it, nil when there is none.
func cycleOf(graph map[string][]string) []string {
	done := make(map[string]bool)
	var visit func(node string, way []string) []string
	visit = func(node string, way []string) []string {
		if at := slices.Index(way, node); at >= 0 {
			return append(slices.Clone(way[at:]), node)
		}
		if done[node] {
			return nil
		}
		for _, next := range graph[node] {
			if cycle := visit(next, append(slices.Clone(way), node)); cycle != nil {
				return cycle
			}
		}
		done[node] = true
		return nil
	}
	for node := range graph {
		if cycle := visit(node, nil); cycle != nil {
			return cycle
		}
	}
	return nil
}

func TestCyclesAreSeen(t *testing.T) {
	graphs := make(map[string]map[string][]string)
	addEdge(graphs, "a/b/x", "a/c") // no packages that import each other
	addEdge(graphs, "a/c/y", "a/b/z")
	if cycle := cycleOf(graphs["a"]); len(cycle) != 3 {
		t.Errorf("between a/b and a/c stands %q", cycle)
	}
	if cycle := cycleOf(map[string][]string{"b": {"c", "."}, "c": {"."}}); cycle != nil {
		t.Errorf("a circle where none is: %q", cycle)
	}
}

// TestNoTypeDoesEverything bounds the methods of one type.
func TestNoTypeDoesEverything(t *testing.T) {
	all := load(t)
	for _, tree := range Trees() {
		methods := make(map[string]int)
		for _, src := range all {
			if _, ok := below(src.pkg, tree.Path); !ok || ast.IsGenerated(src.ast) {
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
			if count > MethodsMax {
				t.Errorf("%s has %d methods, at most %d: split it by what they are about", name, count, MethodsMax)
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
