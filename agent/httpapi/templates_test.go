package httpapi

import (
	"errors"
	"slices"
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// A project's templates are read by its members and changed by whose they are and by its
// administrators; one's own are nobody else's; what is no job file is none.
func TestTemplatesBelongToTheirScope(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	li, mo, pat, eve := h.person("li", "speech"), h.person("mo", "speech"), h.person("pat", "speech:project-admin"), h.person("eve", "vision")
	file := api.TemplateRequest{Description: "two nodes", HCL: "variable \"data\" {\n  type = string\n}\njob \"ddp\" {\n  task {\n    command = \"train ${var.data}\"\n  }\n}\n"}
	for _, mine := range []bool{false, true} {
		if _, err := li.PutTemplate(ctx, "ddp", mine, file); err != nil {
			t.Fatal(err)
		}
	}
	for who, c := range map[string]struct {
		client *api.Client
		want   []string
	}{
		"li": {li, []string{"ddp", "own ddp"}}, "mo": {mo, []string{"ddp"}}, "pat": {pat, []string{"ddp"}}, "eve": {eve, nil},
	} {
		list, err := c.client.Templates(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range list.Templates {
			name := one.Name
			if one.Own {
				name = "own " + name
			}
			got = append(got, name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s sees %q, want %q", who, got, c.want)
		}
	}
	if got, err := mo.Template(ctx, "ddp", false); err != nil || got.HCL != file.HCL || got.Description != "two nodes" || got.CreatedBy != "li" || slices.Contains(got.Verbs, "write") {
		t.Errorf("mo reads %+v, %v", got, err)
	}
	for _, refused := range []struct {
		client *api.Client
		mine   bool
		want   structs.ErrorCode
	}{{mo, false, structs.CodeForbidden}, {mo, true, structs.CodeNotFound}, {pat, true, structs.CodeNotFound}, {eve, false, structs.CodeNotFound}} {
		if _, err := refused.client.DeleteTemplate(ctx, "ddp", refused.mine); structs.CodeOf(err) != refused.want {
			t.Errorf("removed by another: %v, want %s", err, refused.want)
		}
	}
	if _, err := mo.PutTemplate(ctx, "ddp", false, file); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("replaced by another member: %v", err)
	}
	if _, err := pat.PutTemplate(ctx, "ddp", false, file); err != nil {
		t.Error(err)
	}
	if got, err := li.Template(ctx, "ddp", false); err != nil || got.CreatedBy != "li" || got.UpdatedBy != "pat" {
		t.Errorf("after the administrator %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"": "jobspec.invalid", "job \"x\" {": "jobspec.invalid", "job \"x\" {\n  nothing = 1\n}\n": "jobspec.invalid", "#" + string(make([]byte, structs.TemplateSizeMax)): "agent.template_large",
		"job \"x\" {\n  task {\n    command = file(\"/etc/passwd\")\n  }\n}\n": "jobspec.invalid",
	} {
		if _, err := li.PutTemplate(ctx, "bad", true, api.TemplateRequest{HCL: text}); idOf(err) != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	if _, err := li.PutTemplate(ctx, "No Name", false, file); idOf(err) != "name.characters" {
		t.Errorf("a name that is none: %v", err)
	}
	if _, err := li.DeleteTemplate(ctx, "ddp", false); err != nil {
		t.Error(err)
	}
	if _, err := li.Template(ctx, "ddp", false); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("read after it was removed: %v", err)
	}
}

// idOf is the message id of a refusal, "" for none.
func idOf(err error) string {
	var refused *structs.Error
	if !errors.As(err, &refused) {
		return ""
	}
	return refused.ID
}
