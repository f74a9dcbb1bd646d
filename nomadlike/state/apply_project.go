package state

import (
	"nomadlike/nomadlike/structs"
)

// applyProjectPut makes or replaces a project's record. What its jobs hold
// already stays, also when it is over a bound now; no new work starts until it
// is within them again.
func applyProjectPut(tx *txn, body *structs.ProjectPut) (structs.ApplyResult, *structs.Error) {
	project := body.Project
	if problem := projectProblem(&project); problem != "" {
		return refuse(structs.CodeInvalid, "state.project_malformed", "project", project.Name, "field", problem)
	}
	id := "event.project.changed"
	if known, ok := get[*structs.Project](tx, tableProjects, idKey(project.Name)); ok {
		project.CreateIndex = known.CreateIndex
	} else {
		if len(listRows[*structs.Project](tx, tableProjects, indexID, nil)) >= ProjectsMax {
			return refuse(structs.CodeTooLarge, "state.too_many", "what", "projects", "max", ProjectsMax)
		}
		id, project.CreateIndex = "event.project.created", tx.index()
	}
	project.ModifyIndex = tx.index()
	tx.put(tableProjects, idKey(project.Name), &project)
	tx.touch(touchProject, project.Name, 0)
	tx.reviewAll()
	tx.wakeSchedule()
	tx.tell(structs.Event{Topic: topicProject, ID: id, Project: project.Name}, "project", project.Name, "by", tx.by)
	return accepted()
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
	tx.remove(tableProjects, idKey(project.Name), project)
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
