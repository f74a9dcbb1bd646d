package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// applySignIn signs somebody in whom a provider vouches for: it finds the account, or
// makes one, has it as the provider's rules say now, and stores a token for it.
//
// An account is found by who the provider says that somebody is, never by a name: who
// may choose a name there must not become whoever has it here.
func applySignIn(tx *txn, body *structs.SignIn) (structs.ApplyResult, *structs.Error) {
	if field := signInProblem(body); field != "" {
		return refuse(structs.CodeInvalid, "state.user_malformed", "user", body.Name, "field", field)
	}
	known, _ := lookup[*structs.User](tx, tableUsers, indexIdentity, nameKey(body.Provider, body.Subject))
	if known == nil {
		if refusal := tx.nameProblem(body); refusal != nil {
			return structs.ApplyResult{}, refusal
		}
	}
	user := tx.signedIn(known, body)
	projects, left := tx.grantedBy(&user, body)
	token := body.Token
	token.User, token.Provider = user.Name, body.Provider
	switch {
	case user.Disabled:
		return refuse(structs.CodeUnauthorized, "auth.user_disabled", "user", user.Name)
	case !left && known == nil:
		return refuse(structs.CodeForbidden, "auth.identity_no_grant", "user", user.Name, "provider", body.Provider)
	}
	made := 0
	for i := range projects {
		if tx.project(projects[i].Name) == nil {
			made++
		}
		if field := projectProblem(&projects[i]); field != "" {
			return refuse(structs.CodeInvalid, "state.project_malformed", "project", projects[i].Name, "field", field)
		}
	}
	if made > 0 && len(listRows[*structs.Project](tx, tableProjects, indexID, nil))+made > ProjectsMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "projects", "max", ProjectsMax)
	}
	if left {
		if _, refusal := tx.tokenProblem(&token); refusal != nil {
			return structs.ApplyResult{}, refusal
		}
	}
	tx.putUser(&user)
	if known == nil {
		tx.tell(structs.Event{Topic: topicUser, ID: "event.user.signed_up"}, "user", user.Name, "provider", body.Provider)
	}
	before := ""
	if known != nil {
		before = known.IdentityAt(body.Provider).Role
	}
	if body.Role != before {
		event := structs.Event{Topic: topicUser, ID: "event.user.granted"}
		if body.Role == "" {
			event.ID = "event.user.granted_no_more"
		}
		tx.tell(event, "user", user.Name, "role", cmp.Or(body.Role, before), "provider", body.Provider)
	}
	for i := range projects {
		tx.grant(projects[i], user.Name, body.Provider)
	}
	if left {
		if refusal := tx.storeToken(&token); refusal != nil { // it was asked for all of its reasons
			return structs.ApplyResult{}, refusal
		}
	}
	return accepted()
}

// signInProblem reports what is wrong with a sign-in, "" for nothing.
func signInProblem(body *structs.SignIn) string {
	switch {
	case !validKey(body.Provider):
		return "provider"
	case structs.SubjectProblem(body.Subject) != "":
		return "subject"
	case !validKey(body.Name):
		return "name"
	case !validText(body.DisplayName):
		return "display_name"
	case !validText(body.Email):
		return "email"
	case body.Role != "" && body.Role != structs.RoleOperator && body.Role != structs.RoleAdmin:
		return "role"
	case len(body.Projects) > structs.SignInGrantsMax:
		return "projects"
	case body.Token.Role != structs.RoleAccount || body.Token.Project != "" || body.Token.JobID != "" || body.Token.Method == "":
		return "token"
	}
	seen := make(map[string]bool, len(body.Projects))
	for _, of := range body.Projects {
		if !validKey(of.Project) || seen[of.Project] || of.Role != structs.RoleViewer && of.Role != structs.RoleUser && of.Role != structs.RoleProjectAdmin {
			return "projects"
		}
		seen[of.Project] = true
	}
	return ""
}

// nameProblem reports what keeps the name of somebody who signs in for the first time
// from becoming an account's, nil for nothing: whatever belongs to the name already would
// become theirs.
func (tx *txn) nameProblem(body *structs.SignIn) *structs.Error {
	taken := structs.NewError(structs.CodeConflict, "auth.identity_name_taken", "user", body.Name, "provider", body.Provider, "subject", body.Subject)
	users := listRows[*structs.User](tx, tableUsers, indexID, nil)
	if len(users) >= UsersMax {
		return structs.NewError(structs.CodeTooLarge, "state.too_many", "what", "users", "max", UsersMax)
	}
	for _, user := range users {
		if strings.EqualFold(user.Name, body.Name) { // two that people cannot tell apart
			return taken
		}
	}
	if len(listRows[*structs.Project](tx, tableProjects, indexMember, idKey(body.Name))) > 0 {
		return taken
	}
	for _, token := range listRows[*structs.Token](tx, tableTokens, indexID, nil) {
		if token.User == body.Name {
			return taken
		}
	}
	for _, row := range listRows[*jobRow](tx, tableJobs, indexID, nil) {
		if row.Job.User == body.Name {
			return taken
		}
	}
	return nil
}

// signedIn is the account after the sign-in; known is nil where it makes one. What the
// provider does not say of a person stays as it was.
func (tx *txn) signedIn(known *structs.User, body *structs.SignIn) structs.User {
	user := structs.User{Name: body.Name, CreatedAt: tx.now, CreatedBy: tx.by, CreateIndex: tx.index()}
	identity := structs.Identity{Provider: body.Provider, Subject: body.Subject}
	if known != nil {
		user, identity = *known, *known.IdentityAt(body.Provider)
	}
	user.DisplayName, user.Email = cmp.Or(body.DisplayName, user.DisplayName), cmp.Or(body.Email, user.Email)
	identity.Role, identity.SeenAt = body.Role, tx.now
	return user.WithIdentity(identity)
}

// grantedBy lists the records of projects that a sign-in changes, by name, and whether
// the account has any right in the end.
func (tx *txn) grantedBy(user *structs.User, body *structs.SignIn) (changed []structs.Project, left bool) {
	given := make(map[string]string, len(body.Projects))
	for _, of := range body.Projects {
		given[of.Project] = of.Role
	}
	names := make(map[string]bool, len(given))
	for name := range given {
		names[name] = true
	}
	for _, project := range listRows[*structs.Project](tx, tableProjects, indexMember, idKey(user.Name)) {
		names[project.Name] = true
	}
	left = user.ClusterRole() != ""
	for _, name := range slices.Sorted(maps.Keys(names)) {
		project := structs.Project{Name: name}
		if known := tx.project(name); known != nil {
			project = *known
		}
		after := project.WithGranted(user.Name, body.Provider, given[name])
		left = left || after.RoleOf(user.Name) != ""
		if project.GrantedRole(user.Name, body.Provider) != given[name] {
			changed = append(changed, after)
		}
	}
	return changed, left
}

// grant stores a project's record in which a provider gives a user something else.
func (tx *txn) grant(project structs.Project, user, provider string) {
	event := structs.Event{Topic: topicProject, ID: "event.project.granted", Project: project.Name}
	role := project.GrantedRole(user, provider)
	if role == "" {
		event.ID, role = "event.project.granted_no_more", tx.project(project.Name).GrantedRole(user, provider)
	}
	if refusal := tx.storeProject(project); refusal != nil {
		panic(refusal) // what it refuses was looked at before anything changed
	}
	tx.tell(event, "project", project.Name, "user", user, "role", role, "provider", provider)
}

// applyUserIdentity links an account to who somebody is to a provider, or takes that
// away with all that came of it.
func applyUserIdentity(tx *txn, body *structs.UserIdentity) (structs.ApplyResult, *structs.Error) {
	known := tx.user(body.User)
	switch {
	case known == nil:
		return refuse(structs.CodeNotFound, "state.user_unknown", "user", body.User)
	case !validKey(body.Provider):
		return refuse(structs.CodeInvalid, "state.user_malformed", "user", body.User, "field", "provider")
	case body.Subject == "" && known.IdentityAt(body.Provider) == nil:
		return refuse(structs.CodeNotFound, "state.identity_unknown", "user", body.User, "provider", body.Provider)
	}
	if body.Subject != "" {
		if structs.SubjectProblem(body.Subject) != "" {
			return refuse(structs.CodeInvalid, "state.user_malformed", "user", body.User, "field", "subject")
		}
		holder, _ := lookup[*structs.User](tx, tableUsers, indexIdentity, nameKey(body.Provider, body.Subject))
		switch {
		case holder != nil && holder.Name == body.User:
			return accepted()
		case holder != nil:
			return refuse(structs.CodeConflict, "state.identity_taken", "user", holder.Name, "provider", body.Provider, "subject", body.Subject)
		case known.IdentityAt(body.Provider) == nil && len(known.Identities) >= structs.IdentitiesMax:
			return refuse(structs.CodeTooLarge, "state.too_many", "what", "identities", "max", structs.IdentitiesMax)
		}
	}
	user := known.WithoutIdentity(body.Provider)
	event := "event.user.identity.forgotten"
	if body.Subject != "" {
		event = "event.user.identity.linked"
		user = user.WithIdentity(structs.Identity{Provider: body.Provider, Subject: body.Subject, LinkedBy: tx.by})
	}
	tx.putUser(&user)
	for _, project := range listRows[*structs.Project](tx, tableProjects, indexMember, idKey(user.Name)) {
		if project.GrantedRole(user.Name, body.Provider) != "" {
			tx.grant(project.WithGranted(user.Name, body.Provider, ""), user.Name, body.Provider)
		}
	}
	for _, token := range tx.signInsOf(user.Name) {
		if token.Provider == body.Provider {
			tx.revoke(token)
		}
	}
	tx.tell(structs.Event{Topic: topicUser, ID: event}, "user", user.Name, "provider", body.Provider, "by", tx.by)
	return accepted()
}
