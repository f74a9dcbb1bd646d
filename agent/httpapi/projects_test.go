package httpapi

import (
	"errors"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// problemID is the one thing that is wrong with a job.
func problemID(err error) string {
	var refusal *structs.Error
	if errors.As(err, &refusal) && len(refusal.Details) == 1 {
		return refusal.Details[0].ID
	}
	return ""
}

// What a project may do is the administrators' word: whoever belongs to it changes
// neither quotas, nor defaults, nor ceilings, nor the archive, in whichever role, and
// whoever does not belong to it does not learn of it.
func TestOnlyAdministratorsBoundAProject(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	most := 8
	vision := structs.Project{
		Name: "vision", Quotas: []structs.Quota{{Kind: "nvidia/gpu", Guaranteed: 4, Maximum: &most}},
		JobDefaults: structs.JobDefaults{TimeLimit: structs.Duration(time.Hour)},
		Ceilings:    structs.PoolCeilings{TimeLimit: structs.Duration(2 * time.Hour)},
	}
	if _, err := h.admin.PutProject(ctx, &vision); err != nil {
		t.Fatal(err)
	}
	people := map[string]*api.Client{
		"viewer": h.person("vera", "vision:viewer"), "member": h.person("mia", "vision"), "project-admin": h.person("paul", "vision:project-admin"),
		"stranger": h.person("sam", "speech:project-admin"),
	}
	known, _, err := h.admin.Project(ctx, "vision", nil)
	if err != nil || known.Project.BoundsBy == "" || known.Project.BoundsAt == 0 {
		t.Fatalf("who set the bounds: %+v %v", known, err)
	}
	double := 16
	for what, edit := range map[string]func(*structs.Project){
		"the quota": func(p *structs.Project) {
			p.Quotas = []structs.Quota{{Kind: "nvidia/gpu", Guaranteed: 4, Maximum: &double}}
		},
		"the urgent limit": func(p *structs.Project) { p.UrgentLimit = &double },
		"the weight":       func(p *structs.Project) { p.Weight = 100 },
		"the defaults":     func(p *structs.Project) { p.JobDefaults.TimeLimit = structs.Duration(2 * time.Hour) },
		"the ceilings":     func(p *structs.Project) { p.Ceilings.TimeLimit = 0 },
	} {
		for who, client := range people {
			changed := known.Project
			edit(&changed)
			changed.BoundsBy, changed.BoundsAt = "paul", 1
			if _, err := client.PutProject(ctx, &changed); err == nil {
				t.Errorf("%s changed %s", who, what)
			}
		}
	}
	for who, client := range people {
		for _, archived := range []bool{true, false} {
			if _, err := client.ArchiveProject(ctx, "vision", api.ArchiveRequest{Archived: archived}); err == nil {
				t.Errorf("%s archives or unarchives: %t", who, archived)
			}
		}
	}
	if _, _, err := people["stranger"].Project(ctx, "vision", nil); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a stranger reads it: %v", err)
	}
	list, err := people["stranger"].ArchivedProjects(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Projects {
		if one.Project.Name == "vision" {
			t.Error("a stranger finds it in the list")
		}
	}
	// Its administrator describes it. Whose name stands at the bounds is not theirs to say.
	described := known.Project
	described.Description, described.BoundsBy, described.Archived, described.ArchivedBy = "ours", "paul", true, "paul"
	if _, err := people["project-admin"].PutProject(ctx, &described); err != nil {
		t.Fatal(err)
	}
	after, _, err := h.admin.Project(ctx, "vision", nil)
	if err != nil || after.Project.Description != "ours" || after.Project.BoundsBy != known.Project.BoundsBy || after.Project.BoundsAt != known.Project.BoundsAt || after.Project.Archived {
		t.Errorf("described: %+v %v", after, err)
	}
}

// A job of the project gets its defaults, shown as such, and is held against its
// ceilings when it is submitted and when its limit is changed.
func TestAProjectBoundsItsJobs(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	if _, err := h.admin.PutProject(ctx, &structs.Project{
		Name: "vision", JobDefaults: structs.JobDefaults{TimeLimit: structs.Duration(time.Hour)}, Ceilings: structs.PoolCeilings{TimeLimit: structs.Duration(2 * time.Hour)},
	}); err != nil {
		t.Fatal(err)
	}
	mia := h.person("mia", "vision")
	plan, err := mia.PlanJob(ctx, helloAs("planned"))
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, one := range plan.Defaults {
		if one.Path == "time_limit" {
			found = one.Value + " " + one.From
		}
	}
	if found != "1h project" {
		t.Errorf("the plan says %q of the limit: %+v", found, plan.Defaults)
	}
	long := helloAs("long")
	long.HCL = strings.Replace(long.HCL, "{", "{\n  time_limit = \"3h\"", 1)
	if _, err := mia.SubmitJob(ctx, long, ""); problemID(err) != "project.ceiling" {
		t.Errorf("three hours: %v", err)
	}
	made, err := mia.SubmitJob(ctx, helloAs("short"), "")
	if err != nil {
		t.Fatal(err)
	}
	if job, _, err := mia.Job(ctx, made.JobID, nil); err != nil || job.Job.TimeLimit != structs.Duration(time.Hour) {
		t.Errorf("the job: %+v %v", job, err)
	}
	for limit, want := range map[time.Duration]string{0: "agent.time_limit_project", 3 * time.Hour: "agent.time_limit_project", 2 * time.Hour: ""} {
		if _, err := mia.SetTimeLimit(ctx, made.JobID, structs.Duration(limit)); refusalID(err) != want {
			t.Errorf("a limit of %s: %v", limit, err)
		}
	}
}

// An archived project takes no jobs and is left out of lists; those who belong to it
// read what it has.
func TestAnArchivedProjectIsReadAndTakesNoJobs(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	mia := h.person("mia", "vision", "speech")
	mia = mia.In("vision")
	made, err := mia.SubmitJob(ctx, helloAs("last"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.admin.ArchiveProject(ctx, "vision", api.ArchiveRequest{Archived: true}); refusalID(err) != "state.project_busy" {
		t.Errorf("with a job that waits: %v", err)
	}
	if _, err := h.admin.ArchiveProject(ctx, "nowhere", api.ArchiveRequest{Archived: true}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err := h.admin.ArchiveProject(ctx, "vision", api.ArchiveRequest{StopJobs: true}); refusalID(err) != "agent.archive_stops" {
		t.Errorf("brought back with jobs stopped: %v", err)
	}
	if _, err := h.admin.ArchiveProject(ctx, "vision", api.ArchiveRequest{Archived: true, StopJobs: true}); err != nil {
		t.Fatal(err)
	}
	job, _, err := mia.Job(ctx, made.JobID, nil)
	if err != nil || job.State != structs.JobStopped {
		t.Errorf("its job: %+v %v", job, err)
	}
	if _, err := mia.SubmitJob(ctx, helloAs("more"), ""); problemID(err) != "project.archived" {
		t.Errorf("one more job: %v", err)
	}
	names := func(list *api.ProjectList, err error) (out []string) {
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list.Projects {
			out = append(out, one.Project.Name)
		}
		return out
	}
	list, _, err := mia.Projects(ctx, nil)
	if got := strings.Join(names(list, err), " "); got != "speech" {
		t.Errorf("listed: %s", got)
	}
	if got := strings.Join(names(mia.ArchivedProjects(ctx)), " "); got != "speech vision" {
		t.Errorf("listed with the archive: %s", got)
	}
	self, err := mia.In("speech").Self(ctx)
	if err != nil || len(self.Memberships) != 1 || self.Memberships[0].Project != "speech" {
		t.Errorf("to switch to: %+v %v", self, err)
	}
	if self, err := mia.In("").Self(ctx); err != nil || self.Project != "speech" {
		t.Errorf("at home: %+v %v", self, err)
	}
	if _, err := h.admin.ArchiveProject(ctx, "vision", api.ArchiveRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := mia.SubmitJob(ctx, helloAs("again"), ""); err != nil {
		t.Errorf("back: %v", err)
	}
}

// An administrator's word about a project rests on nothing that the project says: others
// may change it all the while.
func TestAdministratorsDoNotWaitForEachOther(t *testing.T) {
	h := newHarness(t)
	changes := 0
	var meddle func()
	meddle = func() {
		changes++
		h.submit(structs.CommandProjectPut, structs.ProjectPut{Project: structs.Project{Name: "vision", Weight: float64(changes)}})
		h.replica.Between(meddle)
	}
	h.replica.Between(meddle)
	if _, err := h.admin.PutProject(t.Context(), &structs.Project{Name: "vision", Description: "ours", Weight: 50}); err != nil || changes != 1 {
		t.Errorf("after %d changes of others: %v", changes, err)
	}
	h.replica.Between(func() {})
	if project := h.replica.Store().Snapshot().Project("vision"); project.Weight != 50 || project.Description != "ours" || project.BoundsBy == "" {
		t.Errorf("%+v", project)
	}
}
