package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const nouns = module + "/nomadlike/structs"

// idle are the fields that nothing acts on, with the reason why that is right.
func idle() map[string]string {
	const label, code, refused = "a label: people find and read it", "what was sent, for people: the tree says it itself", "refused at admission: what it asks for does not exist yet"
	return map[string]string{
		"Job.Description": label, "Job.Meta": label,
		"Job.SSH": refused, "Job.Jupyter": refused, "BatchSubtask.Algorithm": refused,
		"Workdir.Source": code, "Workdir.Files": code, "Workdir.Bytes": code, "Workdir.Repo": code,
		"WorkdirGit.Branch": code,
		"Sweep.Metric":      "what lists are ordered by", "Sweep.Goal": "how lists are ordered",
		"SavedCheckpoint.Rank": "written by nodes, shown to people",
		"Resources.SKU":        "admission writes what the spec holds into the job",
	}
}

// actor reports whether reading a field there makes a difference to what
// happens. Files, and the code around nouns, only pass fields on; pages and the
// command line show them.
func actor(owner, file string) bool {
	dir, base := path.Split(file)
	switch dir {
	case "jobspec/", "command/", "agent/", "agent/httpapi/", "nomadlike/sim/", "nomadlike/wire/", "nomadlike/api/":
		return false
	case "nomadlike/structs/":
		ofJob := !strings.HasPrefix(owner, "Pool") && !strings.HasPrefix(owner, "Project") && owner != "SKU" && owner != "TaskDefaults" && owner != "JobDefaults"
		switch {
		case strings.Contains(base, "_validate"), strings.HasSuffix(base, "_copy.go"), base == "job_later.go":
			return false
		case base == "job_defaults.go", base == "pool_admit.go": // there pools and projects act, on jobs
			return !ofJob
		}
		return true
	}
	return file != "nomadlike/state/intern.go"
}

// TestFieldsAct looks for fields that are read from files, checked, kept, shown,
// and never asked for by anything that schedules, launches, runs or counts.
func TestFieldsAct(t *testing.T) {
	house := typed(t)
	acted := make(map[string]bool)
	for _, p := range house.packages {
		for _, file := range p.files {
			for selector, selection := range fieldsRead(file, p.info) {
				name := filepath.ToSlash(house.relative(t, selector.Pos()))
				if owner := ownerOf(selection); actor(owner, name) {
					acted[owner+"."+selection.Obj().Name()] = true
				}
			}
		}
	}
	excused := idle()
	seen := make(map[string]bool)
	fields := 0
	for _, noun := range []string{"Job", "Pool", "Project"} {
		for _, field := range fieldsOf(house.nouns.Scope().Lookup(noun).Type(), seen) {
			fields++
			_, excuse := excused[field]
			if acted[field] == excuse {
				t.Errorf("%s: something acts on it: %t; has an excuse: %t", field, acted[field], excuse)
			}
			delete(excused, field)
		}
	}
	for field := range excused {
		t.Errorf("%s: excused, and no such field", field)
	}
	if fields < 100 {
		t.Errorf("only %d fields were found", fields)
	}
}

// fieldsOf lists the fields of a noun and of the nouns in it, as "Owner.Field".
func fieldsOf(of types.Type, seen map[string]bool) (fields []string) {
	switch of := of.(type) {
	case *types.Pointer:
		return fieldsOf(of.Elem(), seen)
	case *types.Slice:
		return fieldsOf(of.Elem(), seen)
	case *types.Map:
		return fieldsOf(of.Elem(), seen)
	case *types.Named:
		noun, isStruct := of.Underlying().(*types.Struct)
		name := of.Obj().Name()
		if !isStruct || of.Obj().Pkg() == nil || of.Obj().Pkg().Path() != nouns || seen[name] {
			return nil
		}
		seen[name] = true
		for field := range noun.Fields() {
			if !field.Embedded() {
				fields = append(fields, name+"."+field.Name())
			}
			fields = append(fields, fieldsOf(field.Type(), seen)...)
		}
	}
	return fields
}

// fieldsRead are the places of a file where a field of a noun is read, and not
// only written.
func fieldsRead(file *ast.File, info *types.Info) map[*ast.SelectorExpr]*types.Selection {
	written := make(map[ast.Expr]bool)
	read := make(map[*ast.SelectorExpr]*types.Selection)
	ast.Inspect(file, func(n ast.Node) bool {
		if assignment, ok := n.(*ast.AssignStmt); ok && assignment.Tok == token.ASSIGN {
			for _, left := range assignment.Lhs {
				written[left] = true
			}
		}
		selector, ok := n.(*ast.SelectorExpr)
		if !ok || written[selector] {
			return true
		}
		selection := info.Selections[selector]
		if selection != nil && selection.Kind() == types.FieldVal && selection.Obj().Pkg() != nil && selection.Obj().Pkg().Path() == nouns {
			read[selector] = selection
		}
		return true
	})
	return read
}

// ownerOf is the name of the struct that declares the selected field.
func ownerOf(selection *types.Selection) string {
	of := selection.Recv()
	for _, index := range selection.Index() {
		if pointer, ok := of.(*types.Pointer); ok {
			of = pointer.Elem()
		}
		field := of.Underlying().(*types.Struct).Field(index)
		if field == selection.Obj() {
			break
		}
		of = field.Type()
	}
	if named, ok := of.(*types.Named); ok {
		return named.Obj().Name()
	}
	return of.String()
}

// house is the module with the types of its expressions.
type house struct {
	root     string
	set      *token.FileSet
	packages []checked
	nouns    *types.Package
}

type checked struct {
	files []*ast.File
	info  *types.Info
}

func (h *house) relative(t *testing.T, at token.Pos) string {
	t.Helper()
	name, err := filepath.Rel(h.root, h.set.Position(at).Filename)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// typed checks the types of all of the module's packages; what they import comes
// from the compiler's own output.
func typed(t *testing.T) *house {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	h := &house{root: root, set: token.NewFileSet()}
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	text, err := list.Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	var all []listed
	export := make(map[string]string)
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		export[p.ImportPath] = p.Export
		if p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/") {
			all = append(all, p)
		}
	}
	from := importer.ForCompiler(h.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	if h.nouns, err = from.Import(nouns); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		each := checked{info: &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection)}}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(h.set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			each.files = append(each.files, file)
		}
		config := types.Config{Importer: from, FakeImportC: true}
		if _, err := config.Check(p.ImportPath, h.set, each.files, each.info); err != nil && !slices.ContainsFunc(each.files, usesC) {
			t.Fatalf("check %s: %v", p.ImportPath, err)
		}
		h.packages = append(h.packages, each)
	}
	return h
}

func usesC(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"C"` })
}
