package jobspec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

const withWorkdir = `job "train" {
  workdir = WORKDIR
  resources { cpu = 1 }
  task { command = "python3 train.py" }
}
`

func TestWorkdir(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for written, want := range map[string]*structs.Workdir{
		`"."`:              {Source: "."},
		`"../code"`:        {Source: "../code"},
		`null`:             nil,
		`"` + digest + `"`: {Source: digest, Tree: digest},
	} {
		job, _, diags := Parse("job.hcl", []byte(strings.Replace(withWorkdir, "WORKDIR", written, 1)), Options{})
		if job == nil {
			t.Fatal(diags.errorText(t))
		}
		if diff := cmp.Diff(want, job.Workdir); diff != "" {
			t.Errorf("%s: %s", written, diff)
		}
	}
	for written, want := range map[string]string{
		`""`:              "job.workdir",
		`"a\u0000b"`:      "job.workdir",
		`["."]`:           "jobspec.want_text",
		`"${job.name}/x"`: "", // names of the job are for paths on nodes
	} {
		job, _, diags := Parse("job.hcl", []byte(strings.Replace(withWorkdir, "WORKDIR", written, 1)), Options{})
		if want == "" && job != nil && job.Workdir.Source == "train/x" {
			continue
		}
		if job != nil || diags[0].ID != want {
			t.Errorf("%s was taken: %v", written, diags)
		}
	}
}

// TestWorkdirThatWasSent: the file of a job that has its code runs the same code,
// wherever it lies.
func TestWorkdirThatWasSent(t *testing.T) {
	job, _ := parseOK(t, strings.Replace(withWorkdir, "WORKDIR", `"."`, 1), Options{})
	job.Workdir.Tree = "sha256:" + strings.Repeat("ab", 32)
	again, _ := parseOK(t, string(Write(job)), Options{})
	if got := again.Workdir; got.Source != job.Workdir.Tree || got.Tree != job.Workdir.Tree {
		t.Errorf("read again: %+v", got)
	}
}

func TestWorkdirRecords(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	for name, record := range map[string]structs.Workdir{
		"no digest":   {Source: ".", Tree: "sha256:ab"},
		"upper case":  {Source: ".", Tree: strings.ToUpper(digest)},
		"another one": {Source: digest, Tree: "sha256:" + strings.Repeat("cd", 32)},
		"files":       {Source: ".", Files: -1},
		"bytes":       {Source: ".", Bytes: -1},
		"commit":      {Source: ".", Git: &structs.WorkdirGit{Commit: "HEAD"}},
		"branch":      {Source: ".", Git: &structs.WorkdirGit{Branch: strings.Repeat("b", structs.WorkdirBranchMax+1)}},
	} {
		job, _ := parseOK(t, strings.Replace(withWorkdir, "WORKDIR", `"."`, 1), Options{})
		job.SetDefaults()
		if problems := job.Validate(); len(problems) > 0 {
			t.Fatal(problems)
		}
		job.Workdir = &record
		if problems := job.Validate(); len(problems) != 1 || problems[0].ID != "job.workdir_record" {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

const withRepository = `job "train" {
  workdir {
    git    = "https://git.example/team/train.git"
    ref    = "main"
    subdir = "train"
  }
  resources { cpu = 1 }
  task { command = "python3 train.py" }
}
`

// TestWorkdirOfARepository: the block is read and written, until the job has its code.
func TestWorkdirOfARepository(t *testing.T) {
	job, _ := parseOK(t, withRepository, Options{})
	want := &structs.Workdir{Source: "https://git.example/team/train.git", Repo: &structs.WorkdirRepo{Ref: "main", Subdir: "train"}}
	if diff := cmp.Diff(want, job.Workdir); diff != "" {
		t.Error(diff)
	}
	again, _ := parseOK(t, string(Write(job)), Options{})
	if diff := cmp.Diff(want, again.Workdir); diff != "" {
		t.Error(diff)
	}
	other := job.Copy()
	other.Workdir.Repo.Ref = "v1"
	if got := Differences(job, other); len(got) != 1 || got[0] != (structs.Difference{Path: "workdir.ref", Before: "main", After: "v1"}) {
		t.Errorf("differences: %v", got)
	}
	job.Workdir.Tree = "sha256:" + strings.Repeat("ab", 32)
	again, _ = parseOK(t, string(Write(job)), Options{})
	if got := again.Workdir; got.Source != job.Workdir.Tree || got.Repo != nil {
		t.Errorf("of one that has its code: %+v", got)
	}
	other.Workdir.Tree = "sha256:" + strings.Repeat("cd", 32)
	if got := Differences(job, other); len(got) != 1 || got[0].Path != "workdir" {
		t.Errorf("differences of those that have it: %v", got)
	}
}

func TestWorkdirOfARepositoryThatCannotBe(t *testing.T) {
	for change, want := range map[[2]string]string{
		{`"https://git.example/team/train.git"`, `"/srv/train.git"`}:            "job.workdir_git",
		{`"https://git.example/team/train.git"`, `"https://a:b@git.example/x"`}: "job.workdir_git_password",
		{`"https://git.example/team/train.git"`, `null`}:                        "job.workdir_git",
		{`ref    = "main"`, `ref = "--upload-pack=id"`}:                         "job.workdir_ref",
		{`subdir = "train"`, `subdir = "../train"`}:                             "job.workdir_subdir",
		{`subdir = "train"`, `branch = "main"`}:                                 "jobspec.argument_unknown",
		{`workdir {`, "workdir = \".\"\n workdir {"}:                            "jobspec.block_twice",
		{`workdir {`, `workdir "x" {`}:                                          "jobspec.label_none",
	} {
		text := strings.Replace(withRepository, change[0], change[1], 1)
		if text == withRepository {
			t.Fatalf("%q is not there", change[0])
		}
		if job, _, diags := Parse("job.hcl", []byte(text), Options{}); job != nil || diags[0].ID != want {
			t.Errorf("%s was taken: %v", change[1], diags)
		}
	}
	text := strings.Replace(withRepository, `subdir = "train"`, `secret = "git"`, 1)
	if _, _, diags := Parse("job.hcl", []byte(text), Options{}); len(diags) != 1 || diags[0].HintID != "jobspec.workdir_secret.hint" {
		t.Errorf("a secret: %v", diags)
	}
}
