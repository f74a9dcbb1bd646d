package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

// templatesIn lists the templates of a store, each with who saved it last.
func templatesIn(s *Store) (all []string) {
	for template := range each[*structs.Template](s.Snapshot().db, tableTemplates, indexID, nil) {
		all = append(all, fmt.Sprintf("%s of %s: %s", template.Ref().ID(), template.CreatedBy, template.HCL))
	}
	return all
}

// Templates are of a project or of one user in it, are restored as they were, have bounds,
// and go with the account or the project that they belong to.
func TestTemplatesInTheState(t *testing.T) {
	c := imageCommands{t, New()}
	apply := func(kind structs.CommandKind, body any, want string) {
		t.Helper()
		got := ""
		if err := c.apply(kind, body); err != nil {
			got = err.ID
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", body, got, want)
		}
	}
	put := func(template structs.Template, want string) {
		t.Helper()
		if template.HCL == "" {
			template.HCL = "job"
		}
		template.CreatedBy = "eve" // it is not theirs to say
		apply(structs.CommandTemplatePut, &structs.TemplatePut{Template: template}, want)
	}
	apply(structs.CommandUserPut, &structs.UserPut{User: structs.User{Name: "li"}}, "")
	apply(structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{Name: "vision"}}, "")
	put(structs.Template{Project: "vision", Name: "ddp"}, "")
	put(structs.Template{Project: "vision", User: "li", Name: "ddp"}, "")
	put(structs.Template{Project: "vision", Name: "ddp", HCL: "job 2"}, "")
	put(structs.Template{Project: "speech", Name: "ddp"}, "")
	for _, bad := range []structs.Template{
		{Project: "vision", Name: "a b"},
		{Project: "", Name: "ddp"},
		{Project: "vision", User: "a/b", Name: "ddp"},
		{Project: "vision", Name: "ddp", Description: "a\nb"},
		{Project: "vision", Name: "ddp", HCL: "a\x00b"},
		{Project: "vision", Name: "ddp", HCL: strings.Repeat("x", structs.TemplateSizeMax+1)},
	} {
		put(bad, "state.template_malformed")
	}
	want := []string{"speech/ddp of ada: job", "vision/ddp of ada: job 2", "vision/~li/ddp of ada: job"}
	if got := templatesIn(c.store); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, ref := range []structs.TemplateRef{{Project: "vision", Name: "ddp"}, {Project: "vision", User: "li", Name: "ddp"}} {
		if again, ok := structs.ParseTemplateID(ref.ID()); !ok || again != ref {
			t.Errorf("%s is read as %+v", ref.ID(), again)
		}
	}

	var stored bytes.Buffer
	if err := c.store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&stored); err != nil || again.Snapshot().Hash() != c.store.Snapshot().Hash() || !slices.Equal(templatesIn(again), want) {
		t.Errorf("restored: %v, %q", err, templatesIn(again))
	}

	told := 0
	for event := range c.store.Snapshot().RecentEvents(0) { // what somebody has for themselves is nobody else's business
		if event.Topic == topicTemplate {
			told++
			if event.Params["owner"] != "ada" || event.Project == "" {
				t.Errorf("told %+v", event)
			}
		}
	}
	if told != 3 {
		t.Errorf("%d events, want 3", told)
	}

	apply(structs.CommandUserState, &structs.UserState{Name: "li", Disabled: true}, "")
	apply(structs.CommandUserDelete, &structs.UserDelete{Name: "li"}, "")
	if got, want := templatesIn(c.store), want[:2]; !slices.Equal(got, want) {
		t.Errorf("after the account: %q, want %q", got, want)
	}
	apply(structs.CommandTemplateDelete, &structs.TemplateDelete{Ref: structs.TemplateRef{Project: "vision", User: "li", Name: "ddp"}}, "state.template_unknown")
	apply(structs.CommandTemplateDelete, &structs.TemplateDelete{Ref: structs.TemplateRef{Project: "speech", Name: "ddp"}}, "")
	apply(structs.CommandProjectArchive, &structs.ProjectArchive{Name: "vision", Archived: true}, "")
	put(structs.Template{Project: "vision", Name: "late"}, "state.project_archived")
	apply(structs.CommandProjectDelete, &structs.ProjectDelete{Name: "vision"}, "")
	if got := templatesIn(c.store); len(got) > 0 {
		t.Errorf("after the project: %q", got)
	}

	for n := range structs.TemplatesPerScope {
		put(structs.Template{Project: "speech", Name: fmt.Sprintf("t%d", n)}, "")
	}
	put(structs.Template{Project: "speech", Name: "more"}, "state.templates_full")
	put(structs.Template{Project: "speech", Name: "t7", HCL: "job 2"}, "")
	put(structs.Template{Project: "speech", User: "li", Name: "more"}, "")
	large := strings.Repeat("x", structs.TemplateSizeMax)
	for n := range structs.TemplateBytesMax/structs.TemplateSizeMax - 1 {
		put(structs.Template{Project: fmt.Sprintf("p%d", n/structs.TemplatesPerScope), Name: fmt.Sprintf("t%d", n), HCL: large}, "")
	}
	put(structs.Template{Project: "q", Name: "more", HCL: large}, "state.templates_large")
	put(structs.Template{Project: "p0", Name: "t0", HCL: large}, "") // in the place of as much
}
