package httpapi

import (
	"nomadlike/agent/httpapi/front"
	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// templateHandlers keeps job files that people begin with.
type templateHandlers struct{ *core }

// list answers templates.list.
func (h templateHandlers) list(r *front.Request) (*api.TemplateList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot, out := h.store.Snapshot(), api.TemplateList{Templates: []api.TemplateInfo{}}
	show := func(template *structs.Template) bool {
		object := templateObject(template.Project, template.Name, template.CreatedBy)
		if auth.Allowed(r.Caller.Principal, auth.VerbRead, object).Allow {
			out.Templates = append(out.Templates, templateInfo(r, template, object))
		}
		return true
	}
	snapshot.Templates(r.Caller.Standing.Project, "")(show)
	if r.Caller.Principal.Kind == auth.KindUser && r.Caller.Principal.ID != "" {
		snapshot.Templates(r.Caller.Standing.Project, r.Caller.Principal.ID)(show)
	}
	return &out, nil
}

func templateInfo(r *front.Request, template *structs.Template, object auth.Object) api.TemplateInfo {
	info := api.TemplateInfo{
		Name: template.Name, Project: template.Project, Own: template.User != "", Description: template.Description, Bytes: len(template.HCL),
		CreatedAt: template.CreatedAt, CreatedBy: template.CreatedBy, UpdatedAt: template.UpdatedAt, UpdatedBy: template.UpdatedBy, Verbs: []string{},
	}
	for _, verb := range auth.Verbs(r.Caller.Principal, object) {
		info.Verbs = append(info.Verbs, string(verb))
	}
	return info
}

// read answers templates.read.
func (h templateHandlers) read(r *front.Request, known *structs.Template) (*api.Template, error) {
	if known.ModifyIndex == 0 {
		return nil, auth.NotFound(auth.ObjectTemplate, r.ID)
	}
	object := templateObject(known.Project, known.Name, known.CreatedBy)
	return &api.Template{TemplateInfo: templateInfo(r, known, object), HCL: known.HCL}, nil
}

// put answers templates.put.
func (h templateHandlers) put(r *front.Request, known *structs.Template, body *api.TemplateRequest) (*api.Changed, error) {
	if id := structs.NameProblem(known.Name); id != "" {
		return nil, structs.NewError(structs.CodeInvalid, id, "name", known.Name, "max", structs.NameLengthMax)
	}
	if !structs.PlainText(body.Description, structs.TemplateDescriptionMax) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.text_bad", "field", "description", "max", structs.TemplateDescriptionMax)
	}
	if size := len(body.HCL); size > structs.TemplateSizeMax {
		return nil, structs.NewError(structs.CodeTooLarge, "agent.template_large", "size", size, "max", structs.TemplateSizeMax)
	}
	if err := templateProblems(body.HCL); err != nil {
		return nil, err
	}
	if off := structs.SharingOff(h.store.Snapshot().Settings(), h.store.Snapshot().Project(known.Project)); off != nil && known.User == "" {
		return nil, structs.NewError(structs.CodeConflict, "agent.template_unshared", "project", known.Project, "by", off.By)
	}
	next := structs.Template{Project: known.Project, User: known.User, Name: known.Name, Description: body.Description, HCL: body.HCL}
	return h.change(r, structs.CommandTemplatePut, structs.TemplatePut{Template: next})
}

// templateProblems is what keeps a text from being a job file to begin with. Variables
// without a value are what whoever begins with it fills in.
func templateProblems(text string) error {
	_, _, diagnostics := jobspec.Parse(jobFileName, []byte(text), jobspec.Options{})
	wrong := make(jobspec.Diagnostics, 0, len(diagnostics))
	for _, one := range diagnostics {
		if one.ID != "jobspec.var_missing" {
			wrong = append(wrong, one)
		}
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	return nil
}

// delete answers templates.delete.
func (h templateHandlers) delete(r *front.Request, known *structs.Template) (*api.Changed, error) {
	if known.ModifyIndex == 0 {
		return nil, auth.NotFound(auth.ObjectTemplate, r.ID)
	}
	return h.change(r, structs.CommandTemplateDelete, structs.TemplateDelete{Ref: known.Ref()})
}

// locateTemplate finds the template of a name that the request's project has, or that the
// caller has in it. One that is not there is a record with its name alone, which would be
// the caller's.
func locateTemplate(r *front.Request, snapshot *state.Snapshot) (*structs.Template, auth.Object, error) {
	q := front.Query{R: r}
	mine := q.Bool("mine")
	if q.Err != nil {
		return nil, auth.Object{}, q.Err
	}
	ref := structs.TemplateRef{Project: r.Caller.Standing.Project, Name: r.ID}
	if mine {
		ref.User = r.Caller.Principal.ID
	}
	known := snapshot.Template(ref)
	if known == nil {
		return &structs.Template{Project: ref.Project, User: ref.User, Name: ref.Name}, templateObject(ref.Project, ref.Name, r.Caller.Principal.ID), nil
	}
	r.RestsOn(structs.RestTemplate, ref.ID(), known.ModifyIndex)
	return known, templateObject(ref.Project, ref.Name, known.CreatedBy), nil
}

// templateObject is a template as the policy sees it: its maker's, and read by all members.
func templateObject(project, name, owner string) auth.Object {
	return auth.Object{Kind: auth.ObjectTemplate, ID: name, Project: project, Owner: owner, Access: auth.AccessReadOnly}
}
