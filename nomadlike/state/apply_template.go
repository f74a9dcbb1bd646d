package state

import "nomadlike/nomadlike/structs"

// applyTemplatePut makes a template, or replaces what one holds. Whose it is stays.
func applyTemplatePut(tx *txn, body *structs.TemplatePut) (structs.ApplyResult, *structs.Error) {
	template := body.Template
	if field := template.Problem(); field != "" {
		return refuse(structs.CodeInvalid, "state.template_malformed", "field", field)
	}
	if refusal := tx.archivedProblem(template.Project); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	known, there := get[*structs.Template](tx, tableTemplates, templateKey(template.Ref()))
	if refusal := tx.roomForTemplate(&template, known); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	id := "event.template.changed"
	if there {
		template.CreatedAt, template.CreatedBy = known.CreatedAt, known.CreatedBy
	} else {
		id, template.CreatedAt, template.CreatedBy = "event.template.saved", tx.now, tx.by
	}
	template.UpdatedAt, template.UpdatedBy, template.ModifyIndex = tx.now, tx.by, tx.index()
	tx.put(tableTemplates, templateKey(template.Ref()), &template)
	tx.tellTemplate(id, &template)
	return accepted()
}

// roomForTemplate refuses what would be one template, or a byte, too many. known is what
// the template replaces, nil for nothing.
func (tx *txn) roomForTemplate(template, known *structs.Template) *structs.Error {
	all := listRows[*structs.Template](tx, tableTemplates, indexID, nil)
	bytes := len(template.HCL)
	for _, one := range all {
		if one != known {
			bytes += len(one.HCL)
		}
	}
	if bytes > structs.TemplateBytesMax {
		return structs.NewError(structs.CodeTooLarge, "state.templates_large", "max", structs.TemplateBytesMax)
	}
	if known != nil {
		return nil
	}
	scope := template.Project
	if template.User != "" {
		scope = template.User
	}
	if len(listRows[*structs.Template](tx, tableTemplates, indexID, nameKey(template.Project, template.User))) >= structs.TemplatesPerScope {
		return structs.NewError(structs.CodeTooLarge, "state.templates_full", "max", structs.TemplatesPerScope, "scope", scope)
	}
	if len(all) >= structs.TemplatesMax {
		return structs.NewError(structs.CodeTooLarge, "state.templates_full", "max", structs.TemplatesMax, "scope", "cluster")
	}
	return nil
}

// tellTemplate tells of a project's template, and whose it is: one that is removed has no
// record that says so. What somebody keeps for themselves is nobody else's business.
func (tx *txn) tellTemplate(id string, template *structs.Template) {
	if template.User == "" {
		tx.tell(structs.Event{Topic: topicTemplate, ID: id, Project: template.Project},
			"template", template.Name, "project", template.Project, "by", tx.by, "owner", template.CreatedBy)
	}
}

// applyTemplateDelete removes a template.
func applyTemplateDelete(tx *txn, body *structs.TemplateDelete) (structs.ApplyResult, *structs.Error) {
	known, there := get[*structs.Template](tx, tableTemplates, templateKey(body.Ref))
	if !there {
		return refuse(structs.CodeNotFound, "state.template_unknown", "template", body.Ref.Name)
	}
	tx.remove(tableTemplates, templateKey(body.Ref), known)
	tx.tellTemplate("event.template.deleted", known)
	return accepted()
}

// removeTemplates removes those that belong to a user, or to a project: whoever takes the
// name next does not get them.
func (tx *txn) removeTemplates(belongs func(*structs.Template) bool) {
	for _, template := range listRows[*structs.Template](tx, tableTemplates, indexID, nil) {
		if belongs(template) {
			tx.remove(tableTemplates, templateKey(template.Ref()), template)
		}
	}
}
