package state

import (
	"cmp"

	"nomadlike/nomadlike/structs"
)

// applyUserPut makes an account, or replaces what it says.
func applyUserPut(tx *txn, body *structs.UserPut) (structs.ApplyResult, *structs.Error) {
	user := body.User
	if problem := userProblem(&user); problem != "" {
		return refuse(structs.CodeInvalid, "state.user_malformed", "user", user.Name, "field", problem)
	}
	id, known := "event.user.changed", tx.user(user.Name)
	if known == nil {
		if len(listRows[*structs.User](tx, tableUsers, indexID, nil)) >= UsersMax {
			return refuse(structs.CodeTooLarge, "state.too_many", "what", "users", "max", UsersMax)
		}
		id, known = "event.user.created", &structs.User{CreatedAt: tx.now, CreatedBy: tx.by, CreateIndex: tx.index()}
	}
	user.Identities = known.Identities
	user.Disabled, user.DisabledAt, user.DisabledBy = known.Disabled, known.DisabledAt, known.DisabledBy
	user.CreatedAt, user.CreatedBy, user.CreateIndex = known.CreatedAt, known.CreatedBy, known.CreateIndex
	if refusal := tx.leavesNobody(known, &user); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	tx.putUser(&user)
	event := structs.Event{Topic: topicUser, ID: id}
	tx.tell(event, "user", user.Name, "role", user.Role, "by", tx.by)
	return accepted()
}

func (tx *txn) putUser(user *structs.User) {
	user.ModifyIndex = tx.index()
	tx.put(tableUsers, idKey(user.Name), user)
}

// user returns an account, nil when there is none.
func (tx *txn) user(name string) *structs.User {
	user, _ := get[*structs.User](tx, tableUsers, idKey(name))
	return user
}

// leavesNobody refuses what would leave the cluster without an administrator: the
// only way back would be through the servers' disks.
func (tx *txn) leavesNobody(before, after *structs.User) *structs.Error {
	administers := func(user *structs.User) bool {
		return user != nil && user.Role == structs.RoleAdmin && !user.Disabled
	}
	if !administers(before) || administers(after) {
		return nil
	}
	for _, other := range listRows[*structs.User](tx, tableUsers, indexID, nil) {
		if other.Name != before.Name && administers(other) {
			return nil
		}
	}
	for _, token := range listRows[*structs.Token](tx, tableTokens, indexID, nil) {
		lives := token.ExpiresAt == 0 || tx.now < token.ExpiresAt
		if token.Role == structs.RoleAdmin && lives && tx.user(token.User) == nil { // of a program, or of nobody with an account
			return nil
		}
	}
	return structs.NewError(structs.CodeConflict, "state.last_admin", "user", before.Name)
}

// applyUserState disables an account, or enables it. One that is disabled loses its
// tokens in the same step, and with them everything that they opened.
func applyUserState(tx *txn, body *structs.UserState) (structs.ApplyResult, *structs.Error) {
	known := tx.user(body.Name)
	switch {
	case known == nil:
		return refuse(structs.CodeNotFound, "state.user_unknown", "user", body.Name)
	case known.Disabled == body.Disabled:
		return accepted()
	}
	user := *known
	if !body.Disabled {
		user.Disabled, user.DisabledAt, user.DisabledBy = false, 0, ""
		tx.putUser(&user)
		tx.tell(structs.Event{Topic: topicUser, ID: "event.user.enabled"}, "user", user.Name, "by", tx.by)
		return accepted()
	}
	if refusal := tx.heirProblem(body); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	user.Disabled, user.DisabledAt, user.DisabledBy = true, tx.now, tx.by
	if refusal := tx.leavesNobody(known, &user); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	tx.putUser(&user)
	tx.tell(structs.Event{Topic: topicUser, ID: "event.user.disabled." + cmp.Or(body.Jobs, structs.JobsRunOn)}, "user", user.Name, "to", body.To, "by", tx.by)
	tx.revokeTokensOf(user.Name)
	tx.endJobsOf(body, structs.NewReason("reason.user_disabled", "user", user.Name, "by", tx.by))
	return accepted()
}

// endJobsOf has become of the live jobs of a user what was asked for.
func (tx *txn) endJobsOf(body *structs.UserState, stopped *structs.Reason) {
	for _, job := range tx.liveJobsOf(body.Name) {
		switch body.Jobs {
		case structs.JobsStop:
			tx.stopJob(job, stopped)
		case structs.JobsHandOver:
			tx.handOver(job, body.To)
		}
	}
}

// heirProblem reports what keeps the jobs of a user from what shall become of them,
// nil for nothing.
func (tx *txn) heirProblem(body *structs.UserState) *structs.Error {
	switch body.Jobs {
	case "", structs.JobsRunOn, structs.JobsStop:
		return nil
	case structs.JobsHandOver:
	default:
		return structs.NewError(structs.CodeInvalid, "state.user_malformed", "user", body.Name, "field", "jobs")
	}
	to := tx.user(body.To)
	switch {
	case to == nil:
		return structs.NewError(structs.CodeNotFound, "state.user_unknown", "user", body.To)
	case to.Disabled || to.Name == body.Name:
		return structs.NewError(structs.CodeConflict, "state.heir_disabled", "user", body.To)
	}
	for _, job := range tx.liveJobsOf(body.Name) {
		if role := tx.project(job.Project).RoleOf(to.Name); role != structs.RoleUser && role != structs.RoleProjectAdmin {
			return structs.NewError(structs.CodeConflict, "state.heir_foreign", "user", to.Name, "project", job.Project, "job", job.Name)
		}
	}
	return nil
}

func (tx *txn) revokeTokensOf(user string) {
	for _, token := range listRows[*structs.Token](tx, tableTokens, indexID, nil) {
		if token.User == user {
			tx.revoke(token)
		}
	}
}

// liveJobsOf returns the jobs of a user that have not ended, by project and name.
func (tx *txn) liveJobsOf(user string) (jobs []*structs.Job) {
	for _, row := range listRows[*jobRow](tx, tableJobs, indexID, nil) {
		if row.Job.User == user && !tx.jobStatus(row.Job.ID).Status.State.Terminal() {
			jobs = append(jobs, row.Job)
		}
	}
	return jobs
}

// stopJob ends what waits and what runs of a job.
func (tx *txn) stopJob(job *structs.Job, cause *structs.Reason) {
	tx.tell(jobEvent("event.job.stop_requested", job, nil), "job", job.Name, "by", tx.by, "reason", "")
	for _, row := range tx.subjobs(job.ID) {
		tx.stopSubjob(job, row.Subjob, cause)
	}
}

// handOver makes a job another user's. What it does is not touched: what runs goes
// on as whom it was started.
func (tx *txn) handOver(job *structs.Job, to string) {
	changed := *job
	changed.User = to
	held := live{bytes: jobBytes(job)}
	for _, row := range tx.subjobs(job.ID) {
		if !row.Subjob.State.Terminal() {
			held.subjobs++
		}
	}
	tx.countLive(job, live{subjobs: -held.subjobs, bytes: -held.bytes})
	tx.countLive(&changed, live{subjobs: held.subjobs, bytes: jobBytes(&changed)})
	tx.changeJob(&changed)
	tx.tell(jobEvent("event.job.handed_over", &changed, nil), "job", job.Name, "from", job.User, "to", to, "by", tx.by)
}

// applyUserDelete forgets an account. Its name stays on what it made; lists of
// projects lose it, so that the next of the name begins with nothing.
func applyUserDelete(tx *txn, body *structs.UserDelete) (structs.ApplyResult, *structs.Error) {
	user := tx.user(body.Name)
	switch {
	case user == nil:
		return refuse(structs.CodeNotFound, "state.user_unknown", "user", body.Name)
	case !user.Disabled:
		return refuse(structs.CodeConflict, "state.user_active", "user", body.Name)
	}
	if jobs := tx.liveJobsOf(body.Name); len(jobs) > 0 {
		return refuse(structs.CodeConflict, "state.user_in_use", "user", body.Name, "job", jobs[0].Name, "project", jobs[0].Project)
	}
	for _, project := range listRows[*structs.Project](tx, tableProjects, indexID, nil) {
		if project.RoleOf(user.Name) != "" {
			if refusal := tx.storeProject(project.Without(user.Name)); refusal != nil {
				return structs.ApplyResult{}, refusal
			}
		}
	}
	tx.forgetPassword(user.Name)
	tx.removeMarksOf(user.Name)
	tx.removeSecretsOf(user.Name) // whoever gets the name does not get them
	tx.removeTemplates(func(t *structs.Template) bool { return t.User == user.Name })
	tx.removeNotifyOf(user.Name)
	tx.remove(tableUsers, idKey(user.Name), user)
	tx.tell(structs.Event{Topic: topicUser, ID: "event.user.deleted"}, "user", user.Name, "by", tx.by)
	return accepted()
}
