package jobspec

import (
	"strings"
	"testing"
)

const labelled = `variable "run" { default = "run7" }
locals { where = upper("x") }
job "train-${var.run}" {
  nodes = 2
  description = "of ${job.name}"
  resources "r-${var.run}" { cpu = 1, port "p${1 + 1}" {} }
  task { command = "true", dir = "/data/${job.short_id}" }
  mount "/mnt/${local.where}/${job.id}" { storage = "home" }
  output "models/${job.name}/${attempt}" {}
}
`

func TestLabelsAreEvaluated(t *testing.T) {
	job, _, diags := Parse("job.hcl", []byte(labelled), Options{})
	if job == nil {
		t.Fatal(diags.errorText(t))
	}
	got := []string{job.Name, job.Description, job.Resources[0].Label, job.Resources[0].Ports[0].Name, job.Task.Dir, job.Mounts[0].Target, job.Output}
	want := []string{"train-run7", "of train-run7", "r-run7", "p2", "/data/${job.short_id}", "/mnt/X/${job.id}", "models/train-run7/${attempt}"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	job.ID = "0123456789abcdef"
	if !job.FillPaths() || job.Task.Dir != "/data/01234567" || job.Mounts[0].Target != "/mnt/X/0123456789abcdef" {
		t.Errorf("filled: %q, %q", job.Task.Dir, job.Mounts[0].Target)
	}
	if later := job.OfAttempt(3); later.Output != "models/train-run7/3" || job.Output != "models/train-run7/${attempt}" {
		t.Errorf("of attempt 3: %q, of the job: %q", later.Output, job.Output)
	}
	if later := job.OfAttempt(3); later.OfAttempt(4) != later {
		t.Error("a job without names was copied")
	}
}

func TestNameFromOutside(t *testing.T) {
	for _, test := range []struct{ name, ending, want string }{
		{"", "", "train-run7"},
		{"other", "", "other"},
		{"", "k3f9", "train-run7-k3f9"},
		{"other", "k3f9", "other-k3f9"},
		{strings.Repeat("a", 38), "k3f9", strings.Repeat("a", 35) + "-k3f9"},
	} {
		job, _, diags := Parse("job.hcl", []byte(labelled), Options{Name: test.name, NameEnding: test.ending})
		if job == nil {
			t.Fatal(diags.errorText(t))
		}
		if job.Name != test.want || job.Output != "models/"+test.want+"/${attempt}" {
			t.Errorf("%q with %q: %q, output %q", test.name, test.ending, job.Name, job.Output)
		}
	}
}

func TestLabelsThatCannotBe(t *testing.T) {
	for _, test := range []struct{ source, id, at string }{
		{`job "${var.no}" {}`, "jobspec.var_unknown", "var.no"},
		{`job "${job.name}" {}`, "jobspec.reference", "job.name"},
		{`variable "${upper("a")}${var.x}" {}`, "jobspec.constant", "var.x"},
		{"job \"x\" {\n  project = job.id\n}", "jobspec.later", "job.id"},
		{"job \"x\" {\n  output \"${[1]}\" {}\n}", "jobspec.want_text", ""},
		{"job \"x\" {\n  mount \"/a/${attempt\" {}\n}", "", ""},
	} {
		_, _, diags := Parse("job.hcl", []byte(test.source), Options{})
		found := false
		for _, d := range diags {
			if d.Severity != SeverityError || test.id != "" && d.ID != test.id {
				continue
			}
			part := test.source[d.Range.Start.Byte:d.Range.End.Byte]
			found = found || strings.Contains(part, test.at)
		}
		if !found {
			t.Errorf("%s: no %s at %s: %v", test.source, test.id, test.at, diags.errorText(t))
		}
	}
}

func TestFormatKeepsEvaluatedLabels(t *testing.T) {
	got, diags := Format("job.hcl", []byte(labelled))
	if diags.HasErrors() || !strings.Contains(string(got), `job "train-${var.run}" {`) || !strings.Contains(string(got), `port "p${1 + 1}" {}`) {
		t.Errorf("%s\n%s", diags.errorText(t), got)
	}
	edited, _, err := Edit("job.hcl", []byte(labelled), []Change{{At: "nodes", Value: 3.0}})
	if err != nil || !strings.Contains(string(edited), `output "models/${job.name}/${attempt}" {}`) || !strings.Contains(string(edited), "nodes       = 3") {
		t.Errorf("%v\n%s", err, edited)
	}
}

func (d Diagnostics) errorText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	if err := d.Render(&b, Style{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
