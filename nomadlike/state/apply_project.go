package state

import (
	"cmp"

	"nomadlike/nomadlike/structs"
)

// applyProjectPut makes or replaces a project's record. What its jobs hold
// already stays, also when it is over a bound now; no new work starts until it
// is within them again.
func applyProjectPut(tx *txn, body *structs.ProjectPut) (structs.ApplyResult, *structs.Error) {
	id := "event.project.changed"
	if tx.project(body.Project.Name) == nil {
		id = "event.project.created"
	}
	project := body.Project
	project.Archived, project.ArchivedBy, project.ArchivedAt, project.Granted = false, "", 0, nil
	if known := tx.project(project.Name); known != nil {
		project.Granted = known.Granted
		project.Archived, project.ArchivedBy, project.ArchivedAt = known.Archived, known.ArchivedBy, known.ArchivedAt
	}
	if refusal := tx.storeProject(project); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	tx.tell(structs.Event{Topic: topicProject, ID: id, Project: body.Project.Name}, "project", body.Project.Name, "by", tx.by)
	return accepted()
}

// storeProject makes or replaces a project's record.
func (tx *txn) storeProject(project structs.Project) *structs.Error {
	if problem := projectProblem(&project); problem != "" {
		return structs.NewError(structs.CodeInvalid, "state.project_malformed", "project", project.Name, "field", problem)
	}
	if known := tx.project(project.Name); known != nil {
		project.CreateIndex = known.CreateIndex
	} else {
		if len(listRows[*structs.Project](tx, tableProjects, indexID, nil)) >= ProjectsMax {
			return structs.NewError(structs.CodeTooLarge, "state.too_many", "what", "projects", "max", ProjectsMax)
		}
		project.CreateIndex = tx.index()
	}
	project.ModifyIndex = tx.index()
	tx.put(tableProjects, idKey(project.Name), &project)
	tx.touch(touchProject, project.Name, 0)
	tx.reviewAll()
	tx.wakeSchedule()
	return nil
}

// applyProjectMember changes who belongs to a project. A project without a record
// gets one.
func applyProjectMember(tx *txn, body *structs.ProjectMember) (structs.ApplyResult, *structs.Error) {
	switch {
	case !validKey(body.User):
		return refuse(structs.CodeInvalid, "state.user_malformed", "user", body.User, "field", "name")
	case body.Role != "" && body.Role != structs.RoleViewer && body.Role != structs.RoleUser && body.Role != structs.RoleProjectAdmin:
		return refuse(structs.CodeInvalid, "state.project_malformed", "project", body.Project, "field", "role")
	}
	project := structs.Project{Name: body.Project}
	if known := tx.project(body.Project); known != nil {
		project = *known
	}
	before := project.GivenRole(body.User)
	if before == body.Role {
		return accepted()
	}
	if refusal := tx.storeProject(project.WithRole(body.User, body.Role)); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	event := structs.Event{Topic: topicProject, ID: "event.project.member", Project: project.Name}
	if body.Role == "" {
		event.ID = "event.project.member_removed"
	}
	tx.tell(event, "project", project.Name, "user", body.User, "role", cmp.Or(body.Role, before), "by", tx.by)
	return accepted()
}

// applyProjectArchive archives a project, or brings it back. One that has jobs or
// used something, and has no record, gets one.
func applyProjectArchive(tx *txn, body *structs.ProjectArchive) (structs.ApplyResult, *structs.Error) {
	project := structs.Project{Name: body.Name}
	if known := tx.project(body.Name); known != nil {
		project = *known
	}
	live := tx.liveJobsIn(project.Name)
	switch {
	case tx.project(body.Name) == nil && tx.projectUsage(body.Name) == nil && len(live) == 0:
		return refuse(structs.CodeNotFound, "state.project_unknown", "project", body.Name)
	case project.Archived == body.Archived:
		return accepted()
	}
	if body.Archived && !body.StopJobs && len(live) > 0 {
		return refuse(structs.CodeConflict, "state.project_busy", "project", project.Name, "job", live[0].Name, "count", len(live))
	}
	project.Archived, project.ArchivedBy, project.ArchivedAt = body.Archived, "", 0
	event := "event.project.unarchived"
	if body.Archived {
		project.ArchivedBy, project.ArchivedAt = tx.by, tx.now
		event = "event.project.archived"
	}
	if refusal := tx.storeProject(project); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	tx.tell(structs.Event{Topic: topicProject, ID: event, Project: project.Name}, "project", project.Name, "by", tx.by)
	if body.Archived {
		for _, job := range live {
			tx.stopJob(job, structs.NewReason("reason.project_archived", "project", project.Name, "by", tx.by))
		}
	}
	return accepted()
}

// liveJobsIn returns the jobs of a project that have not ended, by name.
func (tx *txn) liveJobsIn(project string) (jobs []*structs.Job) {
	for _, row := range listRows[*jobRow](tx, tableJobs, indexID, idKey(project)) {
		if !tx.jobStatus(row.Job.ID).Status.State.Terminal() {
			jobs = append(jobs, row.Job)
		}
	}
	return jobs
}

// applyProjectDelete forgets a project's record and so its bounds, unless one
// of its jobs has not ended. What the project used stays booked.
func applyProjectDelete(tx *txn, body *structs.ProjectDelete) (structs.ApplyResult, *structs.Error) {
	project, ok := get[*structs.Project](tx, tableProjects, idKey(body.Name))
	if !ok {
		return refuse(structs.CodeNotFound, "state.project_unknown", "project", body.Name)
	}
	if job := tx.anyLive(idKey(project.Name), func(*structs.Job) bool { return true }); job != nil {
		return refuse(structs.CodeConflict, "state.project_in_use", "project", project.Name, "job", job.Name)
	}
	if accounts := tx.serviceAccountsOf(project.Name); len(accounts) > 0 { // whoever takes the name next does not get them
		return refuse(structs.CodeConflict, "state.project_has_services", "project", project.Name, "account", accounts[0].Name)
	}
	if objects := listRows[*structs.DataObject](tx, tableData, indexID, idKey(project.Name)); len(objects) > 0 {
		return refuse(structs.CodeConflict, "state.project_has_data", "project", project.Name, "kind", objects[0].Kind, "name", objects[0].Name)
	}
	tx.remove(tableProjects, idKey(project.Name), project)
	tx.removeCodeOf(project.Name) // another of the name begins with none
	tx.removeTemplates(func(t *structs.Template) bool { return t.Project == project.Name })
	if body.EndsCode {
		tx.ownUsage(project.Name).CodeSince = tx.index()
	}
	tx.touch(touchProject, project.Name, 0)
	tx.reviewAll()
	tx.wakeSchedule()
	tx.tell(structs.Event{Topic: topicProject, ID: "event.project.deleted", Project: project.Name},
		"project", project.Name, "by", tx.by)
	return accepted()
}

// project returns a project's record, nil when it has none.
func (tx *txn) project(name string) *structs.Project {
	project, _ := get[*structs.Project](tx, tableProjects, idKey(name))
	return project
}

// urgentProblem reports why a job may not join the urgent ones of its project,
// nil when it may.
func (tx *txn) urgentProblem(job *structs.Job) *structs.Error {
	project := tx.project(job.Project)
	if project == nil || project.UrgentLimit == nil {
		return nil
	}
	urgent := 0
	if usage := tx.projectUsage(job.Project); usage != nil {
		urgent = usage.Urgent
	}
	if urgent < *project.UrgentLimit {
		return nil
	}
	return structs.NewError(structs.CodeConflict, "state.urgent_limit",
		"project", job.Project, "urgent", urgent, "limit", *project.UrgentLimit)
}
