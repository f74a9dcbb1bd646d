package structs

import (
	"strings"
	"unicode/utf8"
)

// Template is a job file that is kept under a name, to begin jobs with: for all members
// of a project, or for one user alone. Written through the API; Apply fixes when and by
// whom.
type Template struct {
	Project     string `json:"project"`
	User        string `json:"user,omitempty"` // whose alone it is; "" of one that the project has
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	HCL         string `json:"hcl"`

	CreatedAt   UnixNano `json:"created_at,omitempty"`
	CreatedBy   string   `json:"created_by,omitempty"` // whose it is
	UpdatedAt   UnixNano `json:"updated_at,omitempty"`
	UpdatedBy   string   `json:"updated_by,omitempty"`
	ModifyIndex uint64   `json:"modify_index,omitempty"`
}

// Bounds of templates. All of them are in the memory of every server.
const (
	TemplateSizeMax        = 64 << 10 // bytes of a job file
	TemplateDescriptionMax = 500      // bytes
	TemplatesPerScope      = 100      // that a project has, and that one user has in it
	TemplatesMax           = 2_000    // of the cluster
	TemplateBytesMax       = 32 << 20 // of all job files together
)

// TemplateRef names one template: who has it, and its name.
type TemplateRef struct {
	Project string `json:"project"`
	User    string `json:"user,omitempty"`
	Name    string `json:"name"`
}

// ID spells the reference in one word: PROJECT/NAME, or PROJECT/~USER/NAME.
func (r TemplateRef) ID() string {
	if r.User != "" {
		return r.Project + "/~" + r.User + "/" + r.Name
	}
	return r.Project + "/" + r.Name
}

// ParseTemplateID reads what TemplateRef.ID spells.
func ParseTemplateID(id string) (ref TemplateRef, ok bool) {
	project, rest, ok := strings.Cut(id, "/")
	if !ok || project == "" {
		return TemplateRef{}, false
	}
	if own, found := strings.CutPrefix(rest, "~"); found {
		user, name, both := strings.Cut(own, "/")
		return TemplateRef{Project: project, User: user, Name: name}, both && user != ""
	}
	return TemplateRef{Project: project, Name: rest}, true
}

// Ref names the template.
func (t *Template) Ref() TemplateRef {
	return TemplateRef{Project: t.Project, User: t.User, Name: t.Name}
}

// Problem reports which field keeps a template from being stored, "" for none. What the
// job file means is not looked at.
func (t *Template) Problem() string {
	switch {
	case NameProblem(t.Name) != "":
		return "name"
	case NameProblem(t.Project) != "":
		return "project"
	case !PlainText(t.User, WordMax) || strings.Contains(t.User, "/"):
		return "user"
	case !PlainText(t.Description, TemplateDescriptionMax):
		return "description"
	case t.HCL == "" || len(t.HCL) > TemplateSizeMax || !utf8.ValidString(t.HCL) || strings.ContainsRune(t.HCL, 0):
		return "hcl"
	}
	return ""
}

// TemplatePut makes a template, or replaces what one holds.
type TemplatePut struct {
	Template Template `json:"template"`
}

// TemplateDelete removes a template. Jobs that began with it do not know of it.
type TemplateDelete struct {
	Ref TemplateRef `json:"ref"`
}
