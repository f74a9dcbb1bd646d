package api

import (
	"context"
	"net/http"

	"nomadlike/nomadlike/structs"
)

// TemplateInfo is a template in a list, without its job file.
type TemplateInfo struct {
	Name        string           `json:"name"`
	Project     string           `json:"project"`
	Own         bool             `json:"own"` // the caller's alone
	Description string           `json:"description,omitempty"`
	Bytes       int              `json:"bytes"` // of the job file
	CreatedAt   structs.UnixNano `json:"created_at"`
	CreatedBy   string           `json:"created_by"`
	UpdatedAt   structs.UnixNano `json:"updated_at"`
	UpdatedBy   string           `json:"updated_by"`
	Verbs       []string         `json:"verbs"`
}

// TemplateList answers templates.list: the project's by name, then the caller's own.
type TemplateList struct {
	Templates []TemplateInfo `json:"templates"`
}

// Template is one with its job file.
type Template struct {
	TemplateInfo
	HCL string `json:"hcl"`
}

// TemplateRequest saves a template, and replaces what was there.
type TemplateRequest struct {
	Description string `json:"description,omitempty"`
	HCL         string `json:"hcl"`
}

func templateParams() []Param {
	return []Param{{"mine", "boolean", "the caller's own template, not the project's"}}
}

// The endpoints of templates.
var (
	TemplatesList = endpoint[None, TemplateList](Route{
		Name: "templates.list", Method: http.MethodGet, Pattern: "/v1/templates", Verb: VerbList, Kind: ObjectTemplate, From: FromKind,
		Summary: "List the project's templates of job files and one's own",
	})
	TemplatesRead = endpoint[None, Template](Route{
		Name: "templates.read", Method: http.MethodGet, Pattern: "/v1/templates/{id}", Verb: VerbRead, Kind: ObjectTemplate, From: FromTemplate,
		Query: templateParams(), Summary: "Read a template with its job file",
	})
	TemplatesPut = endpoint[TemplateRequest, Changed](Route{
		Name: "templates.put", Method: http.MethodPut, Pattern: "/v1/templates/{id}", Verb: VerbWrite, Kind: ObjectTemplate, From: FromTemplate,
		Query: templateParams(), Summary: "Save a job file as a template, or replace one",
	})
	TemplatesDelete = endpoint[None, Changed](Route{
		Name: "templates.delete", Method: http.MethodDelete, Pattern: "/v1/templates/{id}", Verb: VerbDelete, Kind: ObjectTemplate, From: FromTemplate,
		Query: templateParams(), Summary: "Remove a template; jobs that began with it stay",
	})
)

func templateRoutes() []Route {
	return []Route{
		TemplatesList.route,
		TemplatesRead.route,
		TemplatesPut.route,
		TemplatesDelete.route,
	}
}

// Templates lists the project's templates and the caller's own.
func (c *Client) Templates(ctx context.Context) (*TemplateList, error) {
	list, _, err := read(ctx, c, TemplatesList, "", nil)
	return list, err
}

// Template reads a template.
func (c *Client) Template(ctx context.Context, name string, mine bool) (*Template, error) {
	template, _, err := read(ctx, c, TemplatesRead, name, mineQuery(mine))
	return template, err
}

// PutTemplate saves a template.
func (c *Client) PutTemplate(ctx context.Context, name string, mine bool, request TemplateRequest) (*Changed, error) {
	return post(ctx, c, TemplatesPut, call{path: TemplatesPut.path(name), query: mineQuery(mine)}, request)
}

// DeleteTemplate removes a template.
func (c *Client) DeleteTemplate(ctx context.Context, name string, mine bool) (*Changed, error) {
	return send(ctx, c, TemplatesDelete, call{path: TemplatesDelete.path(name), query: mineQuery(mine)})
}
