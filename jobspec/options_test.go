package jobspec

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// described parses a file whose description shows the values of variables.
const described = `
variable "s" { default = "default" }
variable "n" { default = 1 }
variable "flag" {
  type    = bool
  default = false
}
variable "list" {
  type    = list(string)
  default = []
}
job "a" {
  nodes       = 1
  description = "${var.s} ${var.n + 1} ${var.flag} ${join("+", var.list)}"
  task { command = "true" }
}
`

func TestVariablePrecedence(t *testing.T) {
	env := []string{"HOME=/root", EnvPrefix + "s=env", EnvPrefix + "n=2", EnvPrefix + "other=ignored"}
	file := func(text string) VarFile { return VarFile{Name: "vars.hcl", Source: []byte(text)} }
	cases := []struct {
		name, want string
		opts       Options
	}{
		{"defaults", "default 2 false ", Options{}},
		{"environment", "env 3 false ", Options{Env: env}},
		{"file over environment", "file 3 false a+b", Options{Env: env, VarFiles: []VarFile{file(`s = "first"`), file(`s = "file"` + "\n" + `list = ["a", "b"]`)}}},
		{"flag over file", "flag 3 true x", Options{Env: env, VarFiles: []VarFile{file(`s = "file"`)}, Vars: []string{"s=gone", "s=flag", "flag=true", `list=["x"]`}}},
		{"equals signs and blanks", "a=b c 2 false ", Options{Vars: []string{"s=a=b c"}}},
		{"empty", " 2 false ", Options{Vars: []string{"s="}}},
	}
	for _, c := range cases {
		job, _, diags := Parse("job.hcl", []byte(described), c.opts)
		if diags.HasErrors() {
			t.Errorf("%s:\n%s", c.name, rendered(t, diags, messages.English))
			continue
		}
		if job.Description != c.want {
			t.Errorf("%s: %q, want %q", c.name, job.Description, c.want)
		}
	}
}

func TestVariableProblems(t *testing.T) {
	cases := []struct {
		name string
		opts Options
		want []string // message ids
	}{
		{"undeclared flag", Options{Vars: []string{"ss=1"}}, []string{"jobspec.var_undeclared"}},
		{"undeclared in a file", Options{VarFiles: []VarFile{{"v.hcl", []byte("ss = 1")}}}, []string{"jobspec.var_undeclared"}},
		{"no flag", Options{Vars: []string{"s"}}, []string{"jobspec.var_flag"}},
		{"not a number", Options{Vars: []string{"n=many"}}, []string{"jobspec.var_value"}},
		{"not a list", Options{Vars: []string{"list=a b"}}, []string{"jobspec.var_expression"}},
		{"hostile list", Options{Vars: []string{"list=" + strings.Repeat("[", 1000)}}, []string{"jobspec.depth"}},
		{"references", Options{Vars: []string{"list=[var.s]"}}, []string{"jobspec.constant"}},
		{"long number", Options{Vars: []string{"n=" + strings.Repeat("1", 100_000)}}, []string{"jobspec.number_size"}},
		{"long text", Options{Vars: []string{"s=" + strings.Repeat("a", SourceSizeMax+1)}}, []string{"jobspec.too_large"}},
		{"broken file", Options{VarFiles: []VarFile{{"v.hcl", []byte("s = \nblock {}")}}}, []string{"jobspec.syntax.expression"}},
		{"block in a file", Options{VarFiles: []VarFile{{"v.hcl", []byte("s {}\nn = var.s")}}}, []string{"jobspec.var_file_block", "jobspec.constant"}},
	}
	for _, c := range cases {
		_, _, diags := Parse("job.hcl", []byte(described), c.opts)
		var got []string
		for _, d := range diags {
			got = append(got, d.ID)
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: %v, want %v\n%s", c.name, got, c.want, rendered(t, diags, messages.English))
		}
	}
}

func TestFilesAndEnvironmentAreTheCommandLines(t *testing.T) {
	src := `job "a" {
  description = "${file("a.txt")} ${env("HOME")} ${env("GONE", "fallback")}"
  task { command = "true" }
}`
	opts := Options{Env: []string{"HOME=/first", "HOME=/root"}, ReadFile: func(path string) ([]byte, error) {
		if path != "a.txt" {
			return nil, errors.New("no such file")
		}
		return []byte("content"), nil
	}}
	job, _ := parseOK(t, src, opts)
	if job.Description != "content /root fallback" {
		t.Errorf("description: %q", job.Description)
	}
	for text, want := range map[string]string{
		src: "jobspec.function_outside",
		`job "a" {
  description = [for f in ["/etc/shadow"]: file(f)][0]
}`: "jobspec.function_outside",
	} {
		_, _, diags := Parse("job.hcl", []byte(text), Options{})
		if !slices.ContainsFunc(diags, func(d *Diagnostic) bool { return d.ID == want }) {
			t.Errorf("without file and environment:\n%s", rendered(t, diags, messages.English))
		}
	}
	for text, want := range map[string]string{
		`file("b.txt")`:      "jobspec.file",
		`env("GONE")`:        "jobspec.env_unset",
		`file("a.txt", "b")`: "jobspec.eval.function",
		`file(null)`:         "jobspec.eval.function",
	} {
		_, _, diags := Parse("job.hcl", []byte("job \"a\" {\n description = "+text+"\n task { command = \"true\" }\n}"), opts)
		if len(diags) != 1 || diags[0].ID != want {
			t.Errorf("%s: want %s, got\n%s", text, want, rendered(t, diags, messages.English))
		}
	}
}

func TestErrCarriesPlaces(t *testing.T) {
	_, _, diags := Parse("train.hcl", []byte("job \"a\" {\n  nodess = 2\n  task { command = \"a && b\" }\n}\n"), Options{})
	e := diags.Err()
	if e == nil || e.Code != structs.CodeInvalid || e.ID != "jobspec.invalid" || len(e.Details) != 2 {
		t.Fatalf("error: %+v", e)
	}
	first := e.Details[0]
	for name, want := range map[string]string{
		"file": "train.hcl", "line": "2", "column": "3", "end_line": "2", "end_column": "9", "snippet": "  nodess = 2",
		"context": `job "a"`, "hint_id": "job.nearest.hint", "suggestion": "nodes",
	} {
		if first.Params[name] != want {
			t.Errorf("parameter %s is %q, want %q", name, first.Params[name], want)
		}
	}
	if first.Hint != `did you mean "nodes"?` || e.Details[1].Params["path"] != "task.command" {
		t.Errorf("details: %+v", e.Details)
	}
	if (Diagnostics{{Severity: SeverityWarning}}).Err() != nil {
		t.Error("warnings made an error")
	}
}

func TestLookupFindsParents(t *testing.T) {
	_, places := parseOK(t, "job \"a\" {\n  task {\n    command = \"true\"\n  }\n  meta = { A = 1, \"x.y\" = 2 }\n}\n", Options{})
	for path, line := range map[string]int{
		"name": 1, "nodes": 1, "task": 2, "task.command": 3, `meta["x.y"]`: 5, `meta["gone.[0]"]`: 5, "task.hook[3].when": 2,
		"resources[0].device[1].count": 1,
	} {
		if got := places.Lookup(path); got.Start.Line != line {
			t.Errorf("%s is found on line %d, want %d", path, got.Start.Line, line)
		}
	}
}
