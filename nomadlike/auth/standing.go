package auth

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// Accounts are the records that rights rest on. A snapshot of the state is one.
type Accounts interface {
	// User returns an account, nil when there is none.
	User(name string) *structs.User
	// Project returns a project's record, nil when it has none.
	Project(name string) *structs.Project
	// Settings returns what is set for the whole cluster, nil before anything was.
	Settings() *structs.Settings
	// ServiceAccount returns a service account by what it is called where names of users
	// stand, nil when there is none.
	ServiceAccount(id string) *structs.ServiceAccount
	// ProjectsOf iterates the projects that list a user, by name.
	ProjectsOf(user string) iter.Seq[*structs.Project]
}

// Standing is whom a token speaks for in one request, and where.
type Standing struct {
	Principal Principal
	Project   string         // that the request acts in: new jobs are made there
	Named     bool           // the request named it
	Rests     []structs.Rest // the records that say so; those that there are
}

// Stand resolves a token whose secret matched. A request acts in one project: the
// one that it names, else the token's, else the account's own, else the first by
// name that the account belongs to.
//
// A token grants what its record says and no more than its user may: of an account,
// what the account's role and the project's lists give; of a name without an
// account, what the token says, where the project lists nobody or lists the name; of a
// service account, what that may in its project. A token without a user is a program's,
// and stands for itself.
func Stand(accounts Accounts, token *structs.Token, named string, now time.Time) (Standing, *structs.Error) {
	s, refusal := stand(accounts, token, named, now)
	if refusal == nil {
		s.shares(accounts)
	}
	return s, refusal
}

// shares notes whether owners let others do something, where the principal acts. Of
// roles in the cluster no owner decides.
func (s *Standing) shares(accounts Accounts) {
	if s.Principal.Kind != KindUser || s.Principal.Role.clusterWide() {
		return
	}
	settings, project := accounts.Settings(), accounts.Project(s.Principal.Project)
	if settings != nil {
		s.Rests = append(s.Rests, structs.Rest{Kind: structs.RestSettings, ID: structs.SettingsID, Index: settings.ModifyIndex})
	}
	if project != nil {
		rest := structs.Rest{Kind: structs.RestProject, ID: project.Name, Index: project.ModifyIndex}
		if !slices.Contains(s.Rests, rest) {
			s.Rests = append(s.Rests, rest)
		}
	}
	s.Principal.Unshared = structs.SharingOff(settings, project) != nil
}

func stand(accounts Accounts, token *structs.Token, named string, now time.Time) (Standing, *structs.Error) {
	principal, refusal := TokenPrincipal(token, now)
	switch {
	case refusal != nil:
		return Standing{}, refusal
	case principal.Kind != KindUser: // a link shows one thing, whatever the request names
		return Standing{Principal: principal, Project: cmp.Or(principal.Project, structs.DefaultProject)}, nil
	case named != "" && structs.NameProblem(named) != "":
		return Standing{}, structs.NewError(structs.CodeInvalid, "auth.project_name", "project", named)
	case named != "" && token.Project != "" && named != token.Project:
		return Standing{}, structs.NewError(structs.CodeForbidden, "auth.token_project", "project", named, "own", token.Project)
	}
	s := Standing{Principal: principal, Project: cmp.Or(named, token.Project), Named: named != ""}
	if structs.IsServiceAccount(token.User) {
		return s.ofService(accounts, token)
	}
	user := accounts.User(token.User)
	if user == nil {
		return s.withoutAccount(accounts, token)
	}
	s.Rests = append(s.Rests, structs.Rest{Kind: structs.RestUser, ID: user.Name, Index: user.ModifyIndex})
	return s.ofAccount(accounts, token, user)
}

// member returns the role of a name in the project that is acted in.
func (s *Standing) member(accounts Accounts, name string) (role UserRole, closed bool) {
	project := accounts.Project(s.Project)
	if project != nil {
		s.Rests = append(s.Rests, structs.Rest{Kind: structs.RestProject, ID: s.Project, Index: project.ModifyIndex})
	}
	return UserRole(project.RoleOf(name)), project.Closed()
}

// withoutAccount is the standing of a token whose user has no account.
func (s Standing) withoutAccount(accounts Accounts, token *structs.Token) (Standing, *structs.Error) {
	if s.Principal.Role == RoleAccount { // it is gone
		return Standing{}, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	}
	if token.Project != "" && token.User != "" {
		role, closed := s.member(accounts, token.User)
		if closed && role == "" {
			return Standing{}, notMember(accounts, token.User, s.Project)
		}
		if closed {
			s.Principal.Role = lower(s.Principal.Role, role)
		}
	}
	s.Project = cmp.Or(s.Project, structs.DefaultProject)
	return s, nil
}

// ofAccount is the standing of a token of an account: what both give.
func (s Standing) ofAccount(accounts Accounts, token *structs.Token, user *structs.User) (Standing, *structs.Error) {
	if user.Disabled {
		return Standing{}, structs.NewError(structs.CodeUnauthorized, "auth.user_disabled", "user", user.Name)
	}
	bound := UserRole(token.Role)
	wide := UserRole("")
	if token.Project == "" && user.ClusterRole() != "" && (bound == RoleAccount || bound.clusterWide()) {
		wide = lower(bound, UserRole(user.ClusterRole()))
	}
	if s.Project == "" {
		s.Project = HomeProject(accounts, user)
	}
	s.Project = cmp.Or(s.Project, structs.DefaultProject)
	role, closed := s.member(accounts, user.Name)
	if !closed && !bound.clusterWide() && bound != RoleAccount {
		role = bound // an administrator made the token for this very project
	}
	if role != "" {
		role = lower(bound, role)
	}
	switch {
	case role == "" && wide == "":
		return Standing{}, notMember(accounts, user.Name, s.Project)
	case role == "" || wide == RoleAdmin:
		s.Principal = Principal{Kind: KindUser, ID: user.Name, Role: wide}
	default:
		s.Principal = Principal{Kind: KindUser, ID: user.Name, Role: role, Project: s.Project, Cluster: wide}
	}
	return s, nil
}

// ofService is the standing of a token of a service account: what the account has,
// where it belongs. The name is kept for service accounts: whatever else a token of it
// says, it speaks for nobody.
func (s Standing) ofService(accounts Accounts, token *structs.Token) (Standing, *structs.Error) {
	account := accounts.ServiceAccount(token.User)
	switch {
	case account == nil, token.Role != structs.RoleAccount, token.Project != account.Project, token.ExpiresAt == 0:
		return Standing{}, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	case account.Disabled:
		return Standing{}, structs.NewError(structs.CodeUnauthorized, "auth.service_disabled", "account", token.User)
	}
	s.Rests = append(s.Rests, structs.Rest{Kind: structs.RestService, ID: token.User, Index: account.ModifyIndex})
	s.Project = cmp.Or(s.Project, structs.DefaultProject)
	s.Principal = Principal{Kind: KindUser, ID: token.User, Role: UserRole(account.Role), Project: account.Project, Service: true}
	return s, nil
}

// lower is the lesser of two roles. RoleAccount bounds nothing.
func lower(a, b UserRole) UserRole {
	order := []UserRole{RoleViewer, RoleUser, RoleProjectAdmin, RoleOperator, RoleAdmin, RoleAccount}
	if slices.Index(order, b) < slices.Index(order, a) {
		return b
	}
	return a
}

// MayGrant reports whether a principal may let another have a role in a project, or in
// the whole cluster where project is "": it has the role there itself, or a higher one.
func MayGrant(p Principal, project string, role UserRole) bool {
	if p.Kind != KindUser || p.Service || !role.Valid() {
		return false
	}
	for _, own := range []UserRole{p.Role, p.Cluster} {
		switch {
		case own == RoleAdmin:
			return true
		case own.clusterWide() == (project == "") && own != "" && (project == "" || project == p.Project) && lower(own, role) == role:
			return true
		}
	}
	return false
}

// Memberships lists the projects that a user belongs to, by name, with the role in
// each.
func Memberships(accounts Accounts, user string) []structs.Membership {
	found := []structs.Membership{}
	for project := range accounts.ProjectsOf(user) {
		found = append(found, structs.Membership{Project: project.Name, Role: project.RoleOf(user)})
	}
	return found
}

// HomeProject is where requests of an account act that name no project: its own,
// where it belongs to that or to none; else the first by name that it belongs to, of
// those that are not archived where there is one. "" when it belongs to none and has no own.
func HomeProject(accounts Accounts, user *structs.User) string {
	if user.Project != "" && (accounts.Project(user.Project).RoleOf(user.Name) != "" || user.ClusterRole() != "") {
		return user.Project
	}
	archived := ""
	for project := range accounts.ProjectsOf(user.Name) {
		if !project.Archived {
			return project.Name
		}
		archived = cmp.Or(archived, project.Name)
	}
	return cmp.Or(archived, user.Project)
}

// notMember refuses to act in a project, and names those that the user may act in.
// It reads the same whether or not there is such a project.
func notMember(accounts Accounts, user, project string) *structs.Error {
	own := Memberships(accounts, user)
	if len(own) == 0 {
		return structs.NewError(structs.CodeForbidden, "auth.no_project", "user", user, "project", project)
	}
	names := make([]string, min(len(own), membershipsShown))
	for i := range names {
		names[i] = own[i].Project
	}
	if len(own) > membershipsShown {
		names = append(names, "…")
	}
	return structs.NewError(structs.CodeForbidden, "auth.not_member", "user", user, "project", project, "projects", strings.Join(names, ", "))
}

const membershipsShown = 8
