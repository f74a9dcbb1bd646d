package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// wide is a job that needs most of a machine's memory for some time.
func wide(name, command string, limit time.Duration, more string) string {
	hcl := named(name, fmt.Sprintf("command = %q", command), fmt.Sprintf("time_limit = \"%s\"\n%s", limit, more))
	return strings.Replace(hcl, `"16MiB"`, `"11GiB"`, 1)
}

// Strangers see that something is there, and not what.
func TestForecastsHideWhatIsNotTheCallers(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	runner := h.start(client, wide("runner", "sleep 600", time.Hour, `project = "vision"`))
	made := h.wait(client, wide("next", "true", time.Minute, `project = "vision"`))
	eve := h.as("user", "speech", "eve")
	mine, err := eve.ForecastJob(t.Context(), api.JobRequest{HCL: wide("mine", "true", time.Minute, "")})
	if err != nil || mine.Verdict != outlook.VerdictLater || !slices.Equal(mine.Holders, []api.JobRef{{}}) || mine.Wait == nil || len(mine.Wait.Holders) != 0 {
		t.Errorf("forecast: %+v %v", mine, err)
	}
	timeline, err := eve.Timeline(t.Context(), 0, "")
	if err != nil || len(timeline.Rows[0].Bars) < 2 || timeline.Rows[0].Bars[0].JobID != "" || timeline.Rows[0].Bars[0].JobName != "" {
		t.Errorf("timeline: %+v %v", timeline, err)
	}
	all, err := eve.QueueForecast(t.Context())
	if err != nil || len(all.Starts) != 0 {
		t.Errorf("queue: %+v %v", all, err)
	}
	for _, id := range []string{runner, made} {
		if _, err := eve.WhatIf(t.Context(), []outlook.Change{{Kind: outlook.ChangeStop, JobID: id}}); structs.CodeOf(err) != structs.CodeNotFound {
			t.Errorf("a stranger asks what if for the end of %s: %v", id, err)
		}
		if _, err := eve.WhatIf(t.Context(), []outlook.Change{{Kind: outlook.ChangeSubmit, JobID: id, Count: 3}}); structs.CodeOf(err) != structs.CodeNotFound {
			t.Errorf("a stranger asks what if for more like %s: %v", id, err)
		}
	}
	none := []structs.Quota{{Kind: structs.QuotaCPU, Maximum: new(int)}}
	if _, err := eve.WhatIf(t.Context(), []outlook.Change{{Kind: outlook.ChangeQuota, Project: "vision", Quotas: none}}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a stranger asks what if for the quota of another project: %v", err)
	}
	// Whoever may see them: jobs like one that waits stand behind it, and none starts that has no quota.
	effect, err := client.WhatIf(t.Context(), []outlook.Change{{Kind: outlook.ChangeSubmit, JobID: made, Count: 3}, {Kind: outlook.ChangeQuota, Project: "vision", Quotas: none}})
	if err != nil || len(effect.Shifts) != 4 || effect.Hidden != 0 {
		t.Fatalf("three more without quota: %+v %v", effect, err)
	}
	for _, shift := range effect.Shifts {
		if shift.JobName != "next" || shift.After.Verdict != outlook.VerdictNever || (shift.Before == nil) != (shift.JobID != made) {
			t.Errorf("%+v to %+v", shift, shift.After)
		}
	}
}

func TestAvailableNodes(t *testing.T) {
	h := newHarness(t)
	client := h.admin
	h.node("machine-1", 8)
	ask := api.JobRequest{Job: &structs.Job{Resources: []structs.Resources{
		{Label: "small", CPU: 0.01, Memory: 16 << 20},
		{Label: "card", CPU: 0.01, Memory: 16 << 20, Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 1}}},
	}}}
	free, err := client.Available(t.Context(), ask)
	if err != nil || len(free.Nodes) != 1 || free.Nodes[0].State != api.NodeIdle || free.Nodes[0].Name != "machine-1" {
		t.Fatalf("a free machine: %+v %v", free, err)
	}
	if len(free.Specs) != 2 || free.Specs[0].Idle != 1 || free.Specs[1].Nodes != 0 || free.Specs[1].Label != "card" {
		t.Errorf("specs: %+v", free.Specs)
	}
	h.start(client, wide("runner", "sleep 600", 0, ""))
	full := api.JobRequest{HCL: wide("other", "true", 0, "")}
	tight, err := client.Available(t.Context(), full)
	if err != nil || len(tight.Nodes) != 1 || tight.Nodes[0].State != api.NodeTight || tight.Nodes[0].MemoryUsed == 0 || tight.Specs[0].Nodes != 1 || tight.Specs[0].Idle != 0 {
		t.Errorf("a full machine: %+v %v", tight, err)
	}
	if strings.Contains(free.Nodes[0].Kernel, "\n") || free.Nodes[0].Kernel == "" {
		t.Errorf("kernel %q", free.Nodes[0].Kernel)
	}
}
