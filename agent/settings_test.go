package agent

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func refusalOf(err error) string {
	var refused *structs.Error
	if !errors.As(err, &refused) {
		return ""
	}
	id := refused.ID
	for _, detail := range refused.Details {
		id += " " + detail.ID + " by " + detail.Params["by"]
	}
	return id
}

// Where an administrator switches sharing off, nobody does anything with others' jobs
// from then on, whatever their owners allowed: what is open ends, and new jobs that
// share are refused with who said so.
func TestSharingIsSwitchedOff(t *testing.T) {
	w := newWorld(t)
	ann, operator := w.admin.WithToken(w.tokens["user"]), w.admin.WithToken(w.tokens["operator"])
	pat, ada := w.admin.WithToken(w.tokens["project-admin"]), w.admin.WithToken(w.tokens["admin"])
	off, on := true, false
	// Only administrators of the cluster.
	for _, role := range []string{"viewer", "user", "project-admin", "operator", "guest", "board"} {
		if _, err := w.admin.WithToken(w.tokens[role]).PutSettings(t.Context(), api.SettingsRequest{NoSharing: &on}); structs.CodeOf(err) != structs.CodeForbidden {
			t.Errorf("%s sets what is for all: %v", role, err)
		}
	}
	if _, err := pat.PutProject(t.Context(), &structs.Project{Name: "one", NoSharing: true}); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("an administrator of the project switches: %v", err)
	}
	logs, err := ann.Logs(t.Context(), allocOf(t, w.admin, w.mate).ID, api.LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, logs)
		ended <- err
	}()
	mates := func() bool {
		_, _, err := ann.Job(t.Context(), w.mate, nil)
		list, _, listed := ann.Jobs(t.Context(), api.JobFilter{}, nil)
		if listed != nil {
			t.Fatal(listed)
		}
		seen := false
		for _, job := range list.Jobs {
			seen = seen || job.ID == w.mate
		}
		if seen != (err == nil) || err != nil && structs.CodeOf(err) != structs.CodeNotFound {
			t.Errorf("listed %v, read %v", seen, err)
		}
		return seen
	}
	if !mates() {
		t.Fatal("a job that is shared is not seen")
	}
	// What would close is counted: by the word of the owners, as after it is closed.
	shared := func() [2]api.Shared {
		known, err := ada.Settings(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		one, _, err := ada.Project(t.Context(), "one", nil)
		if err != nil {
			t.Fatal(err)
		}
		return [2]api.Shared{known.Shared, *one.Shared}
	}
	open := [2]api.Shared{{ReadOnly: 2, ReadWrite: 1, Live: 3}, {ReadOnly: 2, Live: 2}} // mate and own; other
	if got := shared(); got != open {
		t.Errorf("shared: %+v", got)
	}
	for _, one := range []struct {
		name, refusal string
		change        func(off *bool) error
	}{
		{"cluster", "cluster.no_sharing by ada", func(off *bool) error {
			_, err := ada.PutSettings(t.Context(), api.SettingsRequest{NoSharing: off})
			return err
		}},
		{"project", "project.no_sharing by ada", func(off *bool) error {
			_, err := ada.PutProject(t.Context(), &structs.Project{Name: "one", NoSharing: *off})
			return err
		}},
	} {
		if err := one.change(&off); err != nil {
			t.Fatal(err)
		}
		if one.name == "cluster" {
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("a log that is followed goes on")
			}
		}
		if mates() {
			t.Errorf("%s: a mate's job is seen", one.name)
		}
		if got := shared(); got != open {
			t.Errorf("%s: would open again: %+v", one.name, got)
		}
		if _, _, err := ann.Job(t.Context(), w.own, nil); err != nil {
			t.Errorf("%s: one's own job: %v", one.name, err)
		}
		for name, client := range map[string]*api.Client{"project-admin": pat, "operator": operator, "admin": ada} {
			if _, _, err := client.Job(t.Context(), w.mate, nil); err != nil {
				t.Errorf("%s: %s sees no job: %v", one.name, name, err)
			}
		}
		_, err := ann.SubmitJob(t.Context(), api.JobRequest{HCL: sleeper("shared", "one", "read-only")}, "")
		if got := refusalOf(err); !strings.HasSuffix(got, one.refusal) {
			t.Errorf("%s: %s", one.name, got)
		}
		silent, err := ann.PlanJob(t.Context(), api.JobRequest{HCL: strings.Replace(sleeper("silent", "one", "?"), "  access  = \"?\"\n", "", 1)})
		if err != nil || silent.Job.Access != structs.AccessNone {
			t.Errorf("%s: a job that says nothing of others: %+v %v", one.name, silent, err)
		}
		if err := one.change(&on); err != nil {
			t.Fatal(err)
		}
		if !mates() {
			t.Errorf("%s: switched on again, and a mate's job is not seen", one.name)
		}
	}
}

// The narrowest of three ceilings counts, whoever sets a wider one, and the refusal says
// whose it is; people are shown the same before.
func TestCeilingsOfTheCluster(t *testing.T) {
	w := newWorld(t)
	ann, pat, ada := w.admin.WithToken(w.tokens["user"]), w.admin.WithToken(w.tokens["project-admin"]), w.admin.WithToken(w.tokens["admin"])
	hours := func(n int) structs.Duration { return structs.Duration(n) * structs.Duration(time.Hour) }
	if _, err := ada.PutSettings(t.Context(), api.SettingsRequest{Ceilings: &structs.PoolCeilings{TimeLimit: hours(100), Nodes: 4}}); err != nil {
		t.Fatal(err)
	}
	wider := structs.Project{Name: "one", Ceilings: structs.PoolCeilings{TimeLimit: hours(200), Nodes: 2}}
	if _, err := pat.PutProject(t.Context(), &wider); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("an administrator of the project raises its ceilings: %v", err)
	}
	if _, err := ada.PutProject(t.Context(), &wider); err != nil {
		t.Fatal(err)
	}
	limited := func(limit string) api.JobRequest {
		return api.JobRequest{HCL: strings.Replace(sleeper("long", "one", "none"), "  resources {", "  time_limit = \""+limit+"\"\n  resources {", 1)}
	}
	_, err := ann.SubmitJob(t.Context(), limited("150h"), "")
	if got := refusalOf(err); !strings.HasSuffix(got, " cluster.ceiling by ada") {
		t.Errorf("150 hours: %s", got)
	}
	plan, err := ann.PlanJob(t.Context(), limited("90h"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := ann.Settings(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range [][]structs.Ceiling{plan.Ceilings, known.Effective} {
		var said []string
		for _, c := range shown {
			said = append(said, c.Path+"="+c.Max+" "+string(c.Level)+" "+c.By)
		}
		if got := strings.Join(said, ", "); got != "time_limit=100h cluster ada, nodes=2 project ada" {
			t.Errorf("shown: %s", got)
		}
	}
	use, err := ann.SelfUse(t.Context(), api.UseQuery{})
	if err != nil || use.Pool != structs.PoolDefault || len(use.Effective) != 2 || use.Effective[0] != known.Effective[0] {
		t.Errorf("one's own use: %+v %v", use, err)
	}
	if pool, _, err := ann.Pool(t.Context(), structs.PoolDefault, nil); err != nil || len(pool.Effective) != 2 || pool.Effective[1] != known.Effective[1] {
		t.Errorf("the pool: %+v %v", pool, err)
	}
	made, err := ann.SubmitJob(t.Context(), limited("90h"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.SetTimeLimit(t.Context(), made.JobID, hours(101)); refusalOf(err) != "agent.time_limit_cluster" {
		t.Errorf("longer afterwards: %v", err)
	}
	// What else is set stays when one thing changes.
	off := true
	if _, err := ada.PutSettings(t.Context(), api.SettingsRequest{NoSharing: &off}); err != nil {
		t.Fatal(err)
	}
	if known, err = ada.Settings(t.Context(), ""); err != nil || known.Settings.Ceilings.Nodes != 4 || !known.Settings.NoSharing || known.Settings.SharingBy != "ada" {
		t.Errorf("%+v %v", known, err)
	}
	for _, bad := range []structs.PoolCeilings{{Nodes: -1}, {TimeLimit: -1}} {
		if _, err := ada.PutSettings(t.Context(), api.SettingsRequest{Ceilings: &bad}); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := ada.PutSettings(t.Context(), api.SettingsRequest{}); refusalOf(err) != "agent.settings_empty" {
		t.Errorf("nothing: %v", err)
	}
}
