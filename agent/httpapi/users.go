package httpapi

import (
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// userHandlers answers about accounts, and changes them.
type userHandlers struct{ *core }

func (h *userHandlers) list(r *front.Request) (*api.UserList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	of := make(map[string][]structs.Membership)
	for project := range snapshot.Projects() {
		for _, name := range project.Names() {
			of[name] = append(of[name], structs.Membership{Project: project.Name, Role: project.RoleOf(name)})
		}
	}
	out := api.UserList{Users: []api.UserDetail{}}
	for user := range snapshot.Users() {
		detail := api.UserDetail{User: *user, Memberships: of[user.Name]}
		if detail.Memberships == nil {
			detail.Memberships = []structs.Membership{}
		}
		detail.Live, _ = h.store.LiveOf(user.Name, "")
		out.Users = append(out.Users, detail)
	}
	return &out, nil
}

func (h *userHandlers) read(_ *front.Request, user *structs.User) (*api.UserDetail, error) {
	detail := api.UserDetail{User: *user, Memberships: auth.Memberships(h.store.Snapshot(), user.Name)}
	detail.Live, _ = h.store.LiveOf(user.Name, "")
	return &detail, nil
}

// put makes an account, or replaces what it says. Whoever may not write accounts
// changes of their own what gives no rights and proves nothing.
func (h *userHandlers) put(r *front.Request, known *structs.User, body *structs.User) (*api.Changed, error) {
	user := *body
	if err := sameName(&user.Name, r.ID); err != nil {
		return nil, err
	}
	if err := invalid("agent.user_invalid", user.Validate()); err != nil {
		return nil, err
	}
	if err := r.May(auth.VerbWrite, r.Object); err != nil {
		if known.CreateIndex == 0 || known.Role != user.Role || known.Email != user.Email {
			return nil, err
		}
	}
	return h.change(r, structs.CommandUserPut, structs.UserPut{User: user})
}

func (h *userHandlers) setState(r *front.Request, user *structs.User, body *api.UserStateRequest) (*api.Changed, error) {
	switch {
	case user.CreateIndex == 0:
		return nil, auth.NotFound(auth.ObjectUser, r.ID)
	case body.Disabled && user.Name == r.Caller.Principal.ID:
		return nil, structs.NewError(structs.CodeConflict, "agent.user_own_state")
	case !body.Disabled && body.Jobs != "":
		return nil, structs.NewError(structs.CodeInvalid, "agent.user_jobs_kept")
	}
	if err := checkHeir(body.Jobs, body.To); err != nil {
		return nil, err
	}
	return h.change(r, structs.CommandUserState, structs.UserState{Name: user.Name, Disabled: body.Disabled, Jobs: body.Jobs, To: body.To})
}

func (h *userHandlers) delete(r *front.Request, user *structs.User) (*api.Changed, error) {
	if user.CreateIndex == 0 {
		return nil, auth.NotFound(auth.ObjectUser, r.ID)
	}
	return h.change(r, structs.CommandUserDelete, structs.UserDelete{Name: user.Name})
}

// self is who asks. Nothing in it is more than the caller's own.
func (h *userHandlers) self(r *front.Request, token *structs.Token) (*api.Self, error) {
	if token == nil {
		return nil, structs.NewError(structs.CodeUnauthorized, "auth.login_required")
	}
	snapshot, principal := h.store.Snapshot(), r.Caller.Principal
	self := api.Self{
		Token: front.WithoutHash(*token), Name: principal.ID, Project: r.Caller.Standing.Project,
		Role: string(principal.Role), Cluster: string(principal.Cluster), Memberships: []structs.Membership{},
	}
	if principal.Project == "" {
		self.Cluster = string(principal.Role)
	}
	if principal.Kind != auth.KindUser {
		return &self, nil
	}
	self.User, self.Service = snapshot.User(token.User), snapshot.ServiceAccount(token.User)
	if self.Service != nil { // of its one project, or of none
		if principal.Project != "" {
			self.Memberships = append(self.Memberships, structs.Membership{Project: principal.Project, Role: string(principal.Role)})
		}
		return &self, nil
	}
	self.Memberships = slices.DeleteFunc(h.memberships(snapshot, token), func(m structs.Membership) bool {
		return m.Project != self.Project && snapshot.Project(m.Project).Gone()
	})
	return &self, nil
}

// memberships are the projects that a token may act in.
func (h *userHandlers) memberships(snapshot *state.Snapshot, token *structs.Token) []structs.Membership {
	if token.Project != "" {
		return []structs.Membership{{Project: token.Project, Role: token.Role}}
	}
	return auth.Memberships(snapshot, token.User)
}

// member changes who belongs to a project. A name without an account is refused: a
// slip of the pen would wait there for whoever gets the name.
func (h *userHandlers) member(r *front.Request, body *api.MemberRequest) (*api.Changed, error) {
	switch body.Role {
	case "", structs.RoleViewer, structs.RoleUser, structs.RoleProjectAdmin:
	default:
		return nil, structs.NewError(structs.CodeInvalid, "agent.member_role", "role", body.Role)
	}
	if id := structs.UserNameProblem(body.User); id != "" {
		return nil, structs.NewError(structs.CodeInvalid, id, "name", body.User, "max", structs.UserNameLengthMax)
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	switch {
	case body.Role == "" && snapshot.Project(r.ID).GivenRole(body.User) == "" && snapshot.Project(r.ID).GrantedRole(body.User, "") != "":
		return nil, structs.NewError(structs.CodeConflict, "agent.member_granted", "user", body.User, "project", r.ID, "provider", granting(snapshot.Project(r.ID), body.User))
	case snapshot.Project(r.ID).RoleOf(body.User) == body.Role && body.Role == "":
		return nil, structs.NewError(structs.CodeNotFound, "agent.member_unknown", "user", body.User, "project", r.ID)
	case body.Role != "" && snapshot.User(body.User) == nil:
		return nil, structs.NewError(structs.CodeNotFound, "agent.member_no_account", "user", body.User)
	}
	return h.change(r, structs.CommandProjectMember, structs.ProjectMember{Project: r.ID, User: body.User, Role: body.Role})
}

// granting is the provider whose rules have a user belong to a project.
func granting(project *structs.Project, user string) string {
	at := slices.IndexFunc(project.Granted, func(g structs.Granted) bool { return g.User == user })
	return project.Granted[at].Provider
}

// isMember reports whether the caller belongs to a project, wherever the request acts.
func isMember(r *front.Request, snapshot *state.Snapshot, project string) bool {
	token := r.Caller.Token
	return r.Caller.Principal.Kind == auth.KindUser && token != nil && token.Project == "" &&
		snapshot.Project(project).RoleOf(token.User) != ""
}

// locateUser finds an account. One that is not there is a record with its name
// alone, so that it can be made; it reads as another's that the caller may not see.
func locateUser(r *front.Request, snapshot *state.Snapshot) (*structs.User, auth.Object, error) {
	object := auth.Object{Kind: auth.ObjectUser, ID: r.ID, Owner: r.ID}
	user := snapshot.User(r.ID)
	if user == nil {
		if r.Verb == auth.VerbRead && auth.Allowed(r.Caller.Principal, auth.VerbList, auth.Object{Kind: auth.ObjectUser}).Allow {
			return nil, auth.Object{}, auth.NotFound(auth.ObjectUser, r.ID)
		}
		return &structs.User{Name: r.ID}, auth.Object{Kind: auth.ObjectUser, ID: r.ID}, nil
	}
	r.RestsOn(structs.RestUser, user.Name, user.ModifyIndex)
	return user, object, nil
}
