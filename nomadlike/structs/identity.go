package structs

import "slices"

// Identity is who an account is to a provider of sign-ins, which is a directory or
// a server of OpenID Connect. Written by sign-ins, and by administrators who link.
type Identity struct {
	Provider string   `json:"provider"`            // its name in the configuration of servers
	Subject  string   `json:"subject"`             // what the provider knows the person by for good
	Role     string   `json:"role,omitempty"`      // operator | admin, that the provider's rules gave at the last sign-in
	SeenAt   UnixNano `json:"seen_at,omitempty"`   // of the last sign-in; 0: none yet
	LinkedBy string   `json:"linked_by,omitempty"` // the administrator who linked it; "": the first sign-in made the account
}

// Granted is a membership that the rules of a provider gave at a user's last sign-in.
type Granted struct {
	User     string `json:"user"`
	Provider string `json:"provider"`
	Role     string `json:"role"` // viewer | user | project-admin
}

// Bounds of identities.
const (
	IdentitiesMax   = 8   // of one account
	SubjectMax      = 255 // bytes, as OpenID Connect has it
	SignInGrantsMax = 512 // projects that the rules give at one sign-in
)

// How a token was made, beside MethodPassword.
const (
	MethodLDAP = "ldap"
	MethodOIDC = "oidc"
)

// SubjectProblem reports why a text may not be a subject, as the message id of the
// reason, or "" when it may.
func SubjectProblem(subject string) string {
	if subject == "" || !PlainText(subject, SubjectMax) {
		return "user.subject"
	}
	return ""
}

// IdentityAt returns who the account is to a provider, nil when it is nobody there.
func (u *User) IdentityAt(provider string) *Identity {
	if u == nil {
		return nil
	}
	for i := range u.Identities {
		if u.Identities[i].Provider == provider {
			return &u.Identities[i]
		}
	}
	return nil
}

// WithIdentity is the account with one more identity, in the place of the one that it
// had at the same provider. The list is new.
func (u User) WithIdentity(identity Identity) User {
	u = u.WithoutIdentity(identity.Provider)
	u.Identities = append(u.Identities, identity)
	return u
}

// WithoutIdentity is the account with no identity at a provider. The list is new.
func (u User) WithoutIdentity(provider string) User {
	u.Identities = slices.DeleteFunc(slices.Clone(u.Identities), func(i Identity) bool { return i.Provider == provider })
	return u
}

// ClusterRole is the higher of the role that administrators gave the account in the
// whole cluster and of those that providers gave; "" for none.
func (u *User) ClusterRole() string {
	role := u.Role
	for _, identity := range u.Identities {
		if identity.Role == RoleAdmin || role == "" {
			role = identity.Role
		}
		if role == RoleAdmin {
			break
		}
	}
	return role
}

// roleRank orders the roles of a project.
func roleRank(role string) int {
	return slices.Index([]string{"", RoleViewer, RoleUser, RoleProjectAdmin}, role)
}

// GivenRole is the role that administrators gave a user in the project, "" for none:
// the highest of those that the lists of the record give.
func (p *Project) GivenRole(user string) string {
	switch {
	case p == nil || user == "":
		return ""
	case slices.Contains(p.Admins, user):
		return RoleProjectAdmin
	case slices.Contains(p.Members, user):
		return RoleUser
	case slices.Contains(p.Viewers, user):
		return RoleViewer
	}
	return ""
}

// GrantedRole is the role that a provider gave a user in the project, "" for none;
// of any provider where none is named.
func (p *Project) GrantedRole(user, provider string) (role string) {
	if p == nil || user == "" {
		return ""
	}
	for _, g := range p.Granted {
		if g.User == user && (provider == "" || g.Provider == provider) && roleRank(g.Role) > roleRank(role) {
			role = g.Role
		}
	}
	return role
}

// WithGranted is the record with what a provider gives a user, "" for nothing. The
// list is new where it changes.
func (p Project) WithGranted(user, provider, role string) Project {
	if p.GrantedRole(user, provider) == role {
		return p
	}
	p.Granted = slices.DeleteFunc(slices.Clone(p.Granted), func(g Granted) bool { return g.User == user && g.Provider == provider })
	if role != "" {
		p.Granted = append(p.Granted, Granted{User: user, Provider: provider, Role: role})
	}
	return p
}

// Without is the record without a user, whoever gave them a role.
func (p Project) Without(user string) Project {
	p = p.WithRole(user, "")
	if p.GrantedRole(user, "") != "" {
		p.Granted = slices.DeleteFunc(slices.Clone(p.Granted), func(g Granted) bool { return g.User == user })
	}
	return p
}

// Names are those of all who belong to the project, each once, in no order that
// means anything.
func (p *Project) Names() []string {
	names := slices.Concat(p.Admins, p.Members, p.Viewers)
	for _, g := range p.Granted {
		names = append(names, g.User)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
