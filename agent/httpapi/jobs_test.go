package httpapi

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// Every filter of the list of jobs keeps what it names and nothing else.
func TestJobFilters(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	job := func(name, more string) {
		hcl := `job "` + name + `" {
  ` + more + `
  task {
    driver  = "exec"
    command = "true"
  }
}
`
		h.wait(client, hcl)
	}
	job("large", `tags = ["ablation", "Paper-3"]
  note = "Diverged at 40k; 学习率太高"
  output "ann/exp-7" {}
  resources "large" {
    cpu    = 4000
    memory = "16MiB"
  }`)
	job("cards", `resources {
    cpu    = 0.01
    memory = "16MiB"
    device "nvidia/gpu" {
      count = 8
      model = "H800"
    }
  }`)
	waiting, _, err := client.Job(t.Context(), "large", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		filter api.JobFilter
		want   []string
	}{
		{api.JobFilter{}, []string{"cards", "large"}},
		{api.JobFilter{Spec: "large"}, []string{"large"}},
		{api.JobFilter{Spec: "H800"}, []string{"cards"}},
		{api.JobFilter{Spec: "H80"}, nil},
		{api.JobFilter{Output: "exp-7"}, []string{"large"}},
		{api.JobFilter{Output: "exp-8"}, nil},
		{api.JobFilter{Code: "yolo"}, nil},
		{api.JobFilter{Cause: "no.such"}, nil},
		{api.JobFilter{Text: "ARG"}, []string{"large"}},
		{api.JobFilter{Text: waiting.Job.ID[:8]}, []string{"large"}},
		{api.JobFilter{Text: waiting.Job.ID[1:]}, nil},
		{api.JobFilter{Cause: waiting.Wait.ID, Name: "large"}, []string{"large"}},
		{api.JobFilter{Tag: "paper-3"}, []string{"large"}},
		{api.JobFilter{Tag: "ablation,paper-3"}, []string{"large"}},
		{api.JobFilter{Tag: "ablation,other"}, nil},
		{api.JobFilter{Tag: "paper"}, nil},
		{api.JobFilter{Text: "tag:paper-3"}, []string{"large"}},
		{api.JobFilter{Text: "tag:paper"}, nil},
		{api.JobFilter{Text: "user:ADA tag:ablation"}, []string{"large"}},
		{api.JobFilter{Text: "user:nobody"}, nil},
		{api.JobFilter{Text: "card:h800"}, []string{"cards"}},
		{api.JobFilter{Text: "what:large"}, nil},
		{api.JobFilter{Text: "tag:"}, []string{"cards", "large"}},
		{api.JobFilter{Text: "paper lar diverged"}, []string{"large"}},
		{api.JobFilter{Text: "学习率"}, []string{"large"}},
		{api.JobFilter{Text: "large cards"}, nil},
	} {
		list, _, err := client.Jobs(t.Context(), test.filter, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, found := range list.Jobs {
			names = append(names, found.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, test.want) {
			t.Errorf("%+v: %v, want %v", test.filter, names, test.want)
		}
	}
}

// What people write on a job is changed while it runs and when it has ended, by those
// who may stop it, and starts nothing.
func TestAnnotations(t *testing.T) {
	h := newHarness(t)
	h.node("machine-1", 8)
	owner, mate := h.as("user", "vision", "wang"), h.as("user", "vision", "li")
	id := h.start(owner, sleeper("train", "vision", "read-only"))
	note := "diverged\nat 40k"
	now, err := owner.AnnotateJob(t.Context(), id, api.JobAnnotateRequest{Add: []string{"ablation", "消融"}, Note: &note})
	if err != nil || !slices.Equal(now.Tags, []string{"ablation", "消融"}) || now.Note != note {
		t.Fatalf("%+v, %v", now, err)
	}
	if _, err := mate.AnnotateJob(t.Context(), id, api.JobAnnotateRequest{Add: []string{"mine"}}); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("who may only read it writes on it: %v", err)
	}
	if _, err := owner.AnnotateJob(t.Context(), id, api.JobAnnotateRequest{Add: []string{"a b"}}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a bad tag: %v", err)
	}
	h.report(id, structs.AllocComplete)
	empty := ""
	if now, err = owner.AnnotateJob(t.Context(), id, api.JobAnnotateRequest{Remove: []string{"ablation"}, Note: &empty}); err != nil || !slices.Equal(now.Tags, []string{"消融"}) || now.Note != "" {
		t.Errorf("when it has ended: %+v, %v", now, err)
	}
	detail, _, err := owner.Job(t.Context(), id, nil)
	if err != nil || detail.Attempt != 1 || detail.State != structs.JobSucceeded || !slices.Contains(detail.May, "annotate") {
		t.Errorf("the job is %s in attempt %d, and its owner may %v: %v", detail.State, detail.Attempt, detail.May, err)
	}
}

func TestJobsAreFoundByNameAndPrefix(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	done := func(hcl string) string {
		id := h.start(client, hcl)
		h.report(id, structs.AllocComplete)
		return id
	}
	job := done(hello("true"))
	for _, id := range []string{job, job[:6], "hello"} {
		found, _, err := client.Job(t.Context(), id, nil)
		if err != nil || found.Job.ID != job {
			t.Errorf("%s: %v", id, err)
		}
	}
	for i := range 20 { // two of them begin alike
		name := "job-" + string(rune('a'+i))
		done(strings.Replace(hello("true"), `"hello"`, `"`+name+`"`, 1))
	}
	jobs, _, err := client.Jobs(t.Context(), api.JobFilter{State: structs.JobSucceeded}, &api.Query{Limit: 8})
	if err != nil || len(jobs.Jobs) != 8 || jobs.Next == "" || jobs.Jobs[0].Name != "job-t" {
		t.Fatalf("first page: %+v %v", jobs, err)
	}
	if found, _, err := client.Job(t.Context(), "2", nil); err != nil || found.Job.Name != "job-a" || found.Job.Number != 2 {
		t.Errorf("number 2: %v", err)
	}
	prefixes := map[string]int{}
	for after := ""; ; after = jobs.Next {
		if jobs, _, err = client.Jobs(t.Context(), api.JobFilter{}, &api.Query{Limit: 8, After: after}); err != nil {
			t.Fatal(err)
		}
		for _, one := range jobs.Jobs {
			prefixes[one.ID[:1]]++
		}
		if jobs.Next == "" {
			break
		}
	}
	for prefix, n := range prefixes {
		if prefix[0] <= '9' {
			continue // a number
		}
		_, _, err := client.Job(t.Context(), prefix, nil)
		var failure *structs.Error
		if n > 1 && (!errors.As(err, &failure) || failure.ID != "agent.ambiguous") {
			t.Errorf("%d jobs begin with %s: %v", n, prefix, err)
		}
	}
	for _, id := range []string{"nobody", "..%2f..", "a b", strings.Repeat("a", 500)} {
		if _, _, err := client.Job(t.Context(), id, nil); structs.CodeOf(err) != structs.CodeNotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := client.DeleteJob(t.Context(), "hello"); err != nil {
		t.Error(err)
	}
	if _, _, err := client.Job(t.Context(), "hello", nil); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("deleted: %v", err)
	}
}

// The same key is the same submission, whoever repeats it.
// Nobody learns by an after block of a job that they may not read, nor by what is shown of
// one that waits for it.
func TestAwaitedJobsStayHidden(t *testing.T) {
	h := newHarness(t)
	h.node("machine-1", 8)
	if _, err := h.admin.PutProject(t.Context(), &structs.Project{Name: "vision"}); err != nil {
		t.Fatal(err)
	}
	hidden := h.start(h.admin, `job "hidden" {
  access = "none"
  task { command = "true" }
}`)
	member, after := h.person("sam", "vision"), func(block string) string {
		return `job "next" {
  project = "vision"
  ` + block + `
  task { command = "true" }
}`
	}
	for _, name := range []string{hidden, "1", "hidden", "nobody", hidden[:6]} {
		_, err := member.SubmitJob(t.Context(), api.JobRequest{HCL: after(`after "` + name + `" { project = "default" }`)}, "")
		var failure *structs.Error
		if !errors.As(err, &failure) || len(failure.Details) != 1 || failure.Details[0].ID != "agent.after_unknown" || failure.Details[0].Params["job"] != "default/"+name {
			t.Errorf("after %s: %v", name, err)
		}
	}
	made, err := h.admin.SubmitJob(t.Context(), api.JobRequest{HCL: after(`after "hidden" {
    project = "default"
    when    = "ended"
  }`)}, "")
	if err != nil {
		t.Fatal(err)
	}
	detail, _, err := member.Job(t.Context(), made.JobID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(detail); err != nil || strings.Contains(string(text), hidden) {
		t.Errorf("the id of a hidden job is in %s", text)
	}
	if len(detail.After) != 1 || !detail.After[0].Waits || detail.After[0].ID != "" || detail.After[0].State != "" {
		t.Errorf("waits for %+v", detail.After)
	}
	if detail, _, err = h.admin.Job(t.Context(), hidden, nil); err != nil || len(detail.Followers) != 1 || detail.Followers[0].ID != made.JobID {
		t.Errorf("followed by %+v, %v", detail, err)
	}
}

func TestSubmissionsAreIdempotent(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	first, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: hello("true")}, "key-1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: hello("true")}, "key-1")
	if err != nil || again.JobID != first.JobID {
		t.Errorf("again: %+v %v", again, err)
	}
}

// A job file is changed where it is asked, and a job is written as a file that
// is the same job.
func TestFormatOfJobs(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	hcl := "# mine\n" + sleeper("form", "default", "none")
	changed, err := client.FormatJob(t.Context(), api.JobRequest{HCL: hcl, Set: []api.JobChange{{At: "nodes", Value: 3}, {At: "distributed#", Value: "pytorch"}}})
	if err != nil || changed.Job.Nodes != 3 || changed.Job.Distributed.Mode != "pytorch" || !strings.HasPrefix(changed.HCL, "# mine\n") {
		t.Fatalf("%+v %v", changed, err)
	}
	written, err := client.FormatJob(t.Context(), api.JobRequest{Job: changed.Job})
	if err != nil {
		t.Fatal(err)
	}
	again, err := client.ParseJob(t.Context(), api.JobRequest{HCL: written.HCL})
	if err != nil || again.Job.Nodes != 3 || again.Job.Task.Command != changed.Job.Task.Command {
		t.Errorf("%+v %v", again, err)
	}
	for name, request := range map[string]api.JobRequest{
		"change of a job":  {Job: changed.Job, Set: []api.JobChange{{At: "nodes", Value: 1}}},
		"no place":         {HCL: hcl, Set: []api.JobChange{{At: "a..b", Value: 1}}},
		"a file, half":     {HCL: hcl[:40], Set: []api.JobChange{{At: "nodes", Value: 1}}},
		"too many changes": {HCL: hcl, Set: make([]api.JobChange, 1000)},
	} {
		if _, err := client.FormatJob(t.Context(), request); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
