package agent

import (
	"slices"
	"testing"

	"nomadlike/nomadlike/api"
)

// Every filter of the list of jobs keeps what it names and nothing else.
func TestJobFilters(t *testing.T) {
	_, client := devAgent(t)
	job := func(name, more string) {
		hcl := `job "` + name + `" {
  ` + more + `
  task {
    driver  = "exec"
    command = "true"
  }
}
`
		if _, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: hcl}, ""); err != nil {
			t.Fatal(err)
		}
	}
	job("large", `output "ann/exp-7" {}
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
	for waiting.Wait == nil { // the scheduler has not looked at it yet
		if waiting, _, err = client.Job(t.Context(), "large", &api.Query{Index: waiting.Subjobs[0].ModifyIndex}); err != nil {
			t.Fatal(err)
		}
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
