package httpapi

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// What is hidden in the queue is counted without looking at each job; where a pool is
// named each is looked at. With one pool both are the same queue, for everybody, on
// every page, after a job was handed over, shared, stopped and removed.
func TestQueueCountsWhatItHides(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	people := map[string]*api.Client{
		"mia": h.person("mia", "vision"), "noa": h.person("noa", "vision"), "pam": h.person("pam", "vision:project-admin"),
		"sam": h.person("sam", "speech"), "eve": h.person("eve", "speech:viewer"),
	}
	var made []string
	for i := range 24 {
		who := []string{"mia", "noa", "sam", "mia", "pam"}[i%5]
		access := []string{structs.AccessNone, structs.AccessReadOnly, structs.AccessReadWrite}[i%3]
		submitted, err := people[who].SubmitJob(ctx, api.JobRequest{HCL: named(fmt.Sprintf("job-%02d", i), `command = "true"`, fmt.Sprintf("access = %q", access))}, "")
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, submitted.JobID)
	}
	people["ada"] = h.admin
	hidden := 0
	compare := func(when string) {
		t.Helper()
		for name, client := range people {
			for _, project := range []string{"", "vision", "speech"} {
				for after := ""; ; {
					query := &api.Query{Limit: 3, After: after}
					quick, _, err := client.QueueOf(ctx, api.QueueFilter{Project: project}, query)
					if err != nil {
						t.Fatal(err)
					}
					slow, _, err := client.QueueOf(ctx, api.QueueFilter{Project: project, Pool: structs.PoolDefault}, query)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(slow, quick); diff != "" {
						t.Fatalf("%s, %s in %q after %q (-each looked at +counted):\n%s", when, name, project, after, diff)
					}
					hidden += quick.Hidden
					if after = quick.Next; after == "" {
						break
					}
				}
			}
		}
	}
	compare("as they came")
	if hidden == 0 {
		t.Fatal("nothing was hidden from anybody")
	}
	if _, err := h.admin.StopJob(ctx, made[0], api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	compare("one is stopped")
	if _, err := h.admin.DeleteJob(ctx, made[0]); err != nil {
		t.Fatal(err)
	}
	compare("it is removed")
	if _, err := h.admin.SetUserState(ctx, "noa", api.UserStateRequest{Disabled: true, Jobs: structs.JobsHandOver, To: "mia"}); err != nil {
		t.Fatal(err)
	}
	delete(people, "noa")
	compare("a person's are another's")
}
