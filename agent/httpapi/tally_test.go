package httpapi

import (
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// What somebody's jobs have and used is theirs to see, in the projects that they
// belong to; a project's use is for those who belong to it.
func TestUseIsToldToThoseWhoseItIs(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	h.node("machine-1", 4)
	mia, vera := h.person("mia", "vision"), h.person("vera", "vision:viewer")
	sam := h.person("sam", "speech:project-admin")
	h.start(mia, hello("sleep 600"))
	for _, client := range []*api.Client{mia, vera} {
		use, err := client.ProjectUse(ctx, "vision", api.UseQuery{Days: 2})
		if err != nil || len(use.Use.Days) != 2 || len(use.Users) > 1 {
			t.Errorf("the project's: %+v %v", use, err)
		}
	}
	if _, err := sam.ProjectUse(ctx, "vision", api.UseQuery{}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a stranger: %v", err)
	}
	own, err := mia.SelfUse(ctx, api.UseQuery{Zone: 8 * 60})
	if err != nil || own.User != "mia" || own.Project != "vision" || own.Running != 1 || own.Queued != 0 || len(own.Use.Days) != api.UseDaysDefault {
		t.Fatalf("one's own: %+v %v", own, err)
	}
	for i, day := range own.Use.Days {
		at := day.Start.Time().In(time.FixedZone("", 8*3600))
		if at.Hour()+at.Minute()+at.Second() != 0 || i > 0 && day.Start-own.Use.Days[i-1].Start != structs.UnixNano(24*time.Hour) {
			t.Errorf("day %d begins at %s", i, at)
		}
	}
	h.replica.SetNow(h.replica.Now().Add(2 * time.Hour))
	later, err := mia.SelfUse(ctx, api.UseQuery{})
	if err != nil || len(later.Jobs) != 1 || later.Jobs[0].Name != "hello" || later.Jobs[0].CPUHours <= 0 || later.Jobs[0].CPUHours != later.Use.CPUHours {
		t.Fatalf("two hours later: %+v %v", later, err)
	}
	whole, err := vera.ProjectUse(ctx, "vision", api.UseQuery{})
	if err != nil || len(whole.Users) != 1 || whole.Users[0].User != "mia" || whole.Use.CPUHours != later.Use.CPUHours {
		t.Errorf("the project's, two hours later: %+v %v", whole, err)
	}
	if others, err := vera.SelfUse(ctx, api.UseQuery{}); err != nil || others.Running != 0 || len(others.Jobs) != 0 {
		t.Errorf("who has no jobs: %+v %v", others, err)
	}
	for _, query := range []api.UseQuery{{Days: -1}, {Days: api.UseDaysMax + 1}, {Zone: api.UseZoneMax + 1}} {
		if _, err := mia.SelfUse(ctx, query); refusalID(err) != "agent.query_malformed" {
			t.Errorf("%+v: %v", query, err)
		}
	}
	// What a person had where they belong no more is not shown to them.
	if _, err := h.admin.SetMember(ctx, "speech", api.MemberRequest{User: "mia", Role: structs.RoleViewer}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.admin.SetMember(ctx, "vision", api.MemberRequest{User: "mia"}); err != nil {
		t.Fatal(err)
	}
	if left, err := mia.SelfUse(ctx, api.UseQuery{}); err != nil || left.Project != "speech" || left.Running != 0 {
		t.Errorf("who has left: %+v %v", left, err)
	}
}
