package api

import (
	"context"
	"net/http"

	"nomadlike/nomadlike/structs"
)

// UserDetail is an account with the projects that it belongs to.
type UserDetail struct {
	User        structs.User         `json:"user"`
	Memberships []structs.Membership `json:"memberships"`
	Live        int                  `json:"live"` // subjobs that have not ended
}

// UserList answers users.list, by name.
type UserList struct {
	Users []UserDetail `json:"users"`
}

// UserStateRequest disables an account, or enables it. To disable one says what
// becomes of its jobs.
type UserStateRequest struct {
	Disabled bool   `json:"disabled,omitempty"`
	Jobs     string `json:"jobs,omitempty"` // run_on (default) | stop | hand_over
	To       string `json:"to,omitempty"`   // the user that they are handed over to
}

// MemberRequest sets the role of a user in a project; without a role the user belongs
// to it no more.
type MemberRequest struct {
	User string `json:"user"`
	Role string `json:"role,omitempty"` // viewer | user | project-admin
}

// Self is who asks, and as what.
type Self struct {
	Token       structs.Token           `json:"token"`
	User        *structs.User           `json:"user,omitempty"`    // nil: the token's user has no account
	Service     *structs.ServiceAccount `json:"service,omitempty"` // of a service account
	Name        string                  `json:"name"`              // that jobs and the record of changes carry
	Project     string                  `json:"project"`           // that the request acts in
	Role        string                  `json:"role"`              // there
	Cluster     string                  `json:"cluster,omitempty"` // operator | admin, in the whole cluster
	Memberships []structs.Membership    `json:"memberships"`       // that a request may act in, by name; an archived one only where this one does
}

// The endpoints of user routes.
var (
	SelfRead = endpoint[None, Self](Route{
		Name: "self.read", Method: http.MethodGet, Pattern: "/v1/self", Verb: VerbSelf, Kind: ObjectToken, From: FromCaller,
		Summary: "Who asks, in which project, and as what",
	})
	SSHAuthorityRead = endpoint[None, SSHAuthority](Route{
		Name: "ssh.authority", Method: http.MethodGet, Pattern: "/v1/ssh", Verb: VerbSelf, Kind: ObjectToken, From: FromCaller,
		Summary: "The key that certifies the host keys of tasks for ssh",
	})
	UsersList = endpoint[None, UserList](Route{
		Name: "users.list", Method: http.MethodGet, Pattern: "/v1/users", Verb: VerbList, Kind: ObjectUser, From: FromKind,
		Summary: "List accounts with the projects that they belong to",
	})
	UsersRead = endpoint[None, UserDetail](Route{
		Name: "users.read", Method: http.MethodGet, Pattern: "/v1/users/{id}", Verb: VerbRead, Kind: ObjectUser, From: FromUser,
		Summary: "Read one account by name",
	})
	UsersPut = endpoint[structs.User, Changed](Route{
		Name: "users.put", Method: http.MethodPut, Pattern: "/v1/users/{id}", Verb: VerbProfile, Kind: ObjectUser, From: FromUser,
		Summary: "Make an account, or replace what it says; everybody may change display name, language, SSH keys and project of their own",
	})
	UsersState = endpoint[UserStateRequest, Changed](Route{
		Name: "users.state", Method: http.MethodPut, Pattern: "/v1/users/{id}/state", Verb: VerbWrite, Kind: ObjectUser, From: FromUser,
		Summary: "Disable an account, which ends its tokens, sessions and streams, or enable it",
	})
	UsersDelete = endpoint[None, Changed](Route{
		Name: "users.delete", Method: http.MethodDelete, Pattern: "/v1/users/{id}", Verb: VerbWrite, Kind: ObjectUser, From: FromUser,
		Summary: "Forget an account that is disabled and has no live jobs",
	})
	ProjectsMember = endpoint[MemberRequest, Changed](Route{
		Name: "projects.member", Method: http.MethodPost, Pattern: "/v1/projects/{id}/members", Verb: VerbMembers, Kind: ObjectProject, From: FromProject,
		Summary: "Give a user a role in a project, or take it away",
	})
)

func userRoutes() []Route {
	return []Route{
		SelfRead.route,
		SSHAuthorityRead.route,
		SelfUsage.route,
		UsersList.route,
		UsersRead.route,
		UsersPut.route,
		UsersState.route,
		UsersIdentity.route,
		UsersDelete.route,
		ProjectsMember.route,
	}
}

// Self is who the client's token speaks for, in which project, and as what.
func (c *Client) Self(ctx context.Context) (*Self, error) {
	self, _, err := read(ctx, c, SelfRead, "", nil)
	return self, err
}

// Users lists the accounts, for operators and administrators.
func (c *Client) Users(ctx context.Context) (*UserList, error) {
	list, _, err := read(ctx, c, UsersList, "", nil)
	return list, err
}

// User reads one account.
func (c *Client) User(ctx context.Context, name string) (*UserDetail, error) {
	user, _, err := read(ctx, c, UsersRead, name, nil)
	return user, err
}

// PutUser makes an account, or replaces what it says.
func (c *Client) PutUser(ctx context.Context, user *structs.User) (*Changed, error) {
	return change(ctx, c, UsersPut, user.Name, *user)
}

// SetUserState disables an account, or enables it.
func (c *Client) SetUserState(ctx context.Context, name string, to UserStateRequest) (*Changed, error) {
	return change(ctx, c, UsersState, name, to)
}

// DeleteUser forgets an account.
func (c *Client) DeleteUser(ctx context.Context, name string) (*Changed, error) {
	return change(ctx, c, UsersDelete, name, None{})
}

// SetMember sets the role of a user in a project; "" takes it away.
func (c *Client) SetMember(ctx context.Context, project string, member MemberRequest) (*Changed, error) {
	return change(ctx, c, ProjectsMember, project, member)
}
