package structs

import (
	"strings"
	"time"
)

// ServiceAccount is who a program is: a pipeline, a dashboard, another system. It
// belongs to a project, or to the cluster as a whole, signs in nowhere, and acts with
// tokens that expire. Written by administrators of its project, or of the cluster.
type ServiceAccount struct {
	Name        string `json:"name"`              // unique in its project
	Project     string `json:"project,omitempty"` // "": of the whole cluster
	Description string `json:"description,omitempty"`
	Owner       string `json:"owner,omitempty"` // the account of whom to ask about it; gives no rights
	Role        string `json:"role"`            // viewer | user | project-admin in its project; operator in the cluster

	// Disabled ones may do nothing, and have no tokens.
	Disabled   bool     `json:"disabled,omitempty"`
	DisabledAt UnixNano `json:"disabled_at,omitempty"`
	DisabledBy string   `json:"disabled_by,omitempty"`

	CreatedAt   UnixNano `json:"created_at,omitempty"`
	CreatedBy   string   `json:"created_by,omitempty"`
	CreateIndex uint64   `json:"create_index,omitempty"`
	ModifyIndex uint64   `json:"modify_index,omitempty"`
}

// Limits of service accounts.
const (
	ServiceAccountsPerProject = 200 // and of the cluster as a whole
	ServiceTokensMax          = 16  // of one service account at a time
	ServiceDescriptionMax     = 500 // bytes

	ServiceTokenTTLDefault = 90 * 24 * time.Hour
	ServiceTokenTTLMax     = 90 * 24 * time.Hour      // unless Settings.ServiceTokenTTL says another
	ServiceTokenTTLBound   = 5 * 365 * 24 * time.Hour // of Settings.ServiceTokenTTL
)

// servicePrefix begins what service accounts are called wherever names of users stand:
// as whom a job belongs to, as who did something. No account of a person has a + in
// its name, so neither can be taken for the other.
const servicePrefix = "service+"

// ServiceAccountID is what a service account is called where names of users stand:
// service+PROJECT+NAME, or service+NAME of one of the cluster.
func ServiceAccountID(project, name string) string {
	if project == "" {
		return servicePrefix + name
	}
	return servicePrefix + project + "+" + name
}

// IsServiceAccount reports whether the name of a user is kept for service accounts,
// whether or not there is one.
func IsServiceAccount(user string) bool { return strings.HasPrefix(user, servicePrefix) }

// ID is ServiceAccountID of the account.
func (a *ServiceAccount) ID() string { return ServiceAccountID(a.Project, a.Name) }

// Validate lists everything that is wrong with the record, in the order of its fields;
// an empty list means that it may be stored. Pure.
func (a *ServiceAccount) Validate() []Problem {
	v := &validator{}
	v.name("name", a.Name)
	if a.Project != "" {
		v.name("project", a.Project)
	}
	v.plain("description", a.Description, ServiceDescriptionMax)
	if a.Owner != "" && UserNameProblem(a.Owner) != "" {
		v.add("owner", UserNameProblem(a.Owner), "", "name", a.Owner, "max", UserNameLengthMax)
	}
	v.choice("role", a.Role, false, ServiceRoles(a.Project)...)
	return v.problems
}

// ServiceRoles lists the roles that a service account may have in a project, or in the
// whole cluster where project is "", the least first.
func ServiceRoles(project string) []string {
	if project == "" {
		return []string{RoleOperator}
	}
	return []string{RoleViewer, RoleUser, RoleProjectAdmin}
}

// ServiceAccountPut makes a service account, or replaces what it says. Whether it is
// disabled, and who made it when, stays.
type ServiceAccountPut struct {
	Account ServiceAccount `json:"account"`
}

// ServiceAccountState disables a service account, or enables it. To disable one revokes
// its tokens, and says what becomes of the jobs that it has queued or running.
type ServiceAccountState struct {
	ID       string `json:"id"`
	Disabled bool   `json:"disabled,omitempty"`
	Jobs     string `json:"jobs,omitempty"` // JobsRunOn | JobsStop | JobsHandOver
	To       string `json:"to,omitempty"`   // the user that they are handed over to
}

// ServiceAccountDelete forgets a service account with its tokens. With JobsRunOn it is
// refused while a job of it has not ended: whoever gets the name would get the job.
type ServiceAccountDelete struct {
	ID   string `json:"id"`
	Jobs string `json:"jobs,omitempty"` // JobsRunOn | JobsStop | JobsHandOver
	To   string `json:"to,omitempty"`
}

// ServiceAccountRevoke revokes all tokens of a service account.
type ServiceAccountRevoke struct {
	ID string `json:"id"`
}

// TokensUsed says when tokens of service accounts were used last, and from where.
type TokensUsed struct {
	Uses []TokenUse `json:"uses"`
}

// TokenUsesMax bounds TokensUsed.Uses.
const TokenUsesMax = 1024

// TokenUse is the last use of a token that a server saw.
type TokenUse struct {
	TokenID string   `json:"token_id"`
	At      UnixNano `json:"at"`
	From    string   `json:"from"` // address, without a port
}
