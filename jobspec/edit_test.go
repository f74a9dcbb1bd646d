package jobspec

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const edited = `# Digits, on the small machines.
job "digits" {
  nodes = 2 # more do not help

  resources {
    cpu    = 1
    memory = "1GiB"
  }
  distributed "pytorch" {}
  task {
    driver  = "exec"
    command = <<EOT
python3 train.py
EOT
  }
}
`

func TestEdit(t *testing.T) {
	cases := []struct {
		name    string
		changes []Change
		diff    [][2]string // of lines, from and to; "" is none
	}{
		{"nothing", nil, nil},
		{"value", []Change{{"nodes", 3.0}}, [][2]string{{"nodes = 2 #", "nodes = 3 #"}}},
		{"name", []Change{{"#", "a \"b\""}}, [][2]string{{`job "digits"`, `job "a \"b\""`}}},
		{"new argument", []Change{{"time_limit", "2h"}}, [][2]string{{"  nodes = 2 # more do not help\n", "  nodes      = 2 # more do not help\n  time_limit = \"2h\"\n"}}},
		{"inner", []Change{{"resources.memory", "2GiB"}}, [][2]string{{"1GiB", "2GiB"}}},
		{
			"inner block",
			[]Change{{"resources.device#", "nvidia/gpu"}, {"resources.device.count", 8.0}},
			[][2]string{{"    memory = \"1GiB\"\n", "    memory = \"1GiB\"\n\n    device \"nvidia/gpu\" {\n      count = 8\n    }\n"}},
		},
		{"new block", []Change{{"placement.pool", "a800"}}, [][2]string{{"EOT\n  }\n}", "EOT\n  }\n\n  placement {\n    pool = \"a800\"\n  }\n}"}}},
		{"label", []Change{{"distributed#", "mpi"}}, [][2]string{{`"pytorch"`, `"mpi"`}}},
		{"into an empty block", []Change{{"distributed.rewrite", "off"}}, [][2]string{{`"pytorch" {}`, "\"pytorch\" {\n    rewrite = \"off\"\n  }"}}},
		{"block away", []Change{{"distributed#", nil}}, [][2]string{{"  distributed \"pytorch\" {}\n", ""}}},
		{"argument away", []Change{{"nodes", nil}}, [][2]string{{"  nodes = 2 # more do not help\n", ""}}},
		{"away twice", []Change{{"nodes", nil}, {"nodes", nil}, {"placement.pool", nil}}, [][2]string{{"  nodes = 2 # more do not help\n", ""}}},
		{"heredoc", []Change{{"task.command", "true"}}, [][2]string{{"<<EOT\npython3 train.py\nEOT\n", "\"true\"\n"}}},
		{"after a heredoc", []Change{{"task.user", "root"}}, [][2]string{{"EOT\n  }", "EOT\n    user    = \"root\"\n  }"}}},
		{"template marks", []Change{{"task.command", "echo ${HOME}"}}, [][2]string{{"<<EOT\npython3 train.py\nEOT\n", "\"echo $${HOME}\"\n"}}},
		{"object", []Change{{"task.env", map[string]any{"A": "1", "b.c": "2"}}}, [][2]string{{"EOT\n  }", "EOT\n    env = {\n      A     = \"1\"\n      \"b.c\" = \"2\"\n    }\n  }"}}},
		{"first entry", []Change{{`task.env["LR"]`, "0.1"}}, [][2]string{{"EOT\n  }", "EOT\n    env = {\n      LR = \"0.1\"\n    }\n  }"}}},
		{"entries", []Change{{`task.env["A"]`, "1"}, {`task.env["B"]`, map[string]any{"secret": "wandb"}}, {`task.env["A"]`, "${x}"}}, [][2]string{{"EOT\n  }", "EOT\n    env = {\n      B = secret(\"wandb\")\n      A = \"$${x}\"\n    }\n  }"}}},
		{"entry away", []Change{{"task.env", map[string]any{"A": "1", "B": "2"}}, {`task.env["A"]`, nil}, {`task.env["C"]`, nil}}, [][2]string{{"EOT\n  }", "EOT\n    env = {\n      B = \"2\"\n    }\n  }"}}},
		{"last entry away", []Change{{"task.env", map[string]any{"A": "1"}}, {`task.env["A"]`, nil}}, nil},
		{"entry of a new block", []Change{{`x.meta["team"]`, "vision"}}, [][2]string{{"EOT\n  }\n}", "EOT\n  }\n\n  x {\n    meta = {\n      team = \"vision\"\n    }\n  }\n}"}}},
		{"secret", []Change{{"task.image", map[string]any{"secret": "registry"}}}, [][2]string{{"EOT\n  }", "EOT\n    image   = secret(\"registry\")\n  }"}}},
		{"second block", []Change{{"resources[1].cpu", 4.0}}, [][2]string{{"EOT\n  }\n}", "EOT\n  }\n\n  resources {\n    cpu = 4\n  }\n}"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := edited
			for _, pair := range c.diff {
				if !strings.Contains(want, pair[0]) {
					t.Fatalf("%q is not in the file", pair[0])
				}
				want = strings.Replace(want, pair[0], pair[1], 1)
			}
			got, diags, err := Edit("job.hcl", []byte(edited), c.changes)
			if err != nil || len(diags) > 0 {
				t.Fatal(err, diags.Err())
			}
			squeezed := strings.ReplaceAll(want, "\n\n", "\n")
			if diff := cmp.Diff(squeezed, strings.ReplaceAll(string(got), "\n\n", "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	for _, change := range []Change{
		{"", 1.0},
		{"a..b", 1.0},
		{"a[x].b", 1.0},
		{"a[-1].b", 1.0},
		{"1a", 1.0},
		{strings.Repeat("a.", 20) + "b", 1.0},
		{"nodes", []any{1.0}},
		{"nodes", map[string]any{"a": 1.0}},
		{"nodes", struct{}{}},
		{"#", 1.0},
		{"resources[3].cpu", 1.0},
		{"nodes", json.Number("x")},
		{`nodes["a"]`, "x"},
		{`task.env["a b"]`, "x"},
		{`task.env["a"]#`, "x"},
	} {
		if _, _, err := Edit("job.hcl", []byte(edited), []Change{change}); !errors.Is(err, ErrChange) {
			t.Errorf("%+v: %v", change, err)
		}
	}
	if _, diags, err := Edit("job.hcl", []byte("job \"x\" {"), []Change{{"nodes", 1.0}}); err != nil || !diags.HasErrors() {
		t.Errorf("a file that cannot be parsed: %v %v", diags, err)
	}
}

// Every example may be edited, and says afterwards what was asked.
func TestEditOfExamples(t *testing.T) {
	for _, name := range files(t, "../website/examples/*.hcl") {
		text := read(t, name)
		before, _ := parseOK(t, string(text), Options{})
		got, diags, err := Edit(name, text, []Change{{"#", "renamed"}, {"description", "by a form"}, {"resources.cpu", 7.0}, {"task.env", map[string]any{"A": "b"}}})
		if err != nil || len(diags) > 0 {
			t.Fatalf("%s: %v %v", name, err, diags.Err())
		}
		after, _ := parseOK(t, string(got), Options{})
		if after.Name != "renamed" || after.Description != "by a form" || after.Resources[0].CPU != 7 || after.Task.Env["A"] != "b" {
			t.Errorf("%s: %+v", name, after)
		}
		before.Name, before.Description, before.Resources[0].CPU, before.Task.Env = after.Name, after.Description, after.Resources[0].CPU, after.Task.Env
		before.Source, after.Source = "", ""
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: something else changed (-before +after):\n%s", name, diff)
		}
	}
}

// What is not changed of an object keeps its comments and what it is computed from.
func TestEditOfAnEntry(t *testing.T) {
	before := "variable \"rate\" {\n  default = \"0.1\"\n}\n\njob \"x\" {\n  task {\n    command = \"true\"\n    env     = { LR = var.rate, TOKEN = secret(\"wandb\") } # of the paper\n  }\n}\n"
	got, diags, err := Edit("job.hcl", []byte(before), []Change{{`task.env["B"]`, "2"}, {`task.env["TOKEN"]`, nil}})
	if err != nil || len(diags) > 0 {
		t.Fatal(err, diags.Err())
	}
	for _, kept := range []string{"LR = var.rate", "# of the paper", `B = "2"`} {
		if !strings.Contains(string(got), kept) {
			t.Errorf("%q is gone:\n%s", kept, got)
		}
	}
	if strings.Contains(string(got), "TOKEN") {
		t.Errorf("TOKEN is still there:\n%s", got)
	}
	parseOK(t, string(got), Options{})
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte(edited), "nodes", "3")
	f.Add([]byte("job \"x\" {}"), "distributed#", "mpi")
	f.Add([]byte("job \"x\" {\n a = { b = 1, c = <<E\n1\nE\n }\n}"), `a["c"]`, "2")
	f.Add([]byte("job \"x\" { nodes = 1 }"), "resources.device[0].count", "3")
	f.Fuzz(func(t *testing.T, text []byte, at, value string) {
		got, diags, err := Edit("job.hcl", text, []Change{{at, value}})
		if err != nil || diags.HasErrors() {
			return
		}
		if _, diags := Format("job.hcl", got); diags.HasErrors() {
			t.Fatalf("the result of %q = %q cannot be parsed: %v\n%s", at, value, diags.Err(), got)
		}
	})
}
