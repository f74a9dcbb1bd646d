package state

import (
	"iter"

	"nomadlike/nomadlike/structs"
)

// Template returns a template, nil when there is none.
func (s *Snapshot) Template(ref structs.TemplateRef) *structs.Template {
	template, _ := first[*structs.Template](s.db, tableTemplates, indexID, templateKey(ref))
	return template
}

// Templates iterates the templates that a project has, or that a user has in it for
// themselves, by name.
func (s *Snapshot) Templates(project, user string) iter.Seq[*structs.Template] {
	return each[*structs.Template](s.db, tableTemplates, indexID, nameKey(project, user))
}
