package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

// Nodes that are asked for a job's data may never run it: they hear where the data
// lies, and nothing else of the job.
func TestLooksTellNothingElse(t *testing.T) {
	job := &structs.Job{
		Name: "j", Project: "p", Source: "secret",
		Task: structs.Task{Command: "secret", Env: map[string]string{"TOKEN": "secret"}}, Datasets: []structs.DataRef{{Name: "there"}},
	}
	data, err := json.Marshal(structs.DataLook{Job: dataOnly(job, "li")})
	if err != nil || strings.Contains(string(data), "secret") || !strings.Contains(string(data), "there") || !strings.Contains(string(data), `"li"`) {
		t.Errorf("told %s, %v", data, err)
	}
}
