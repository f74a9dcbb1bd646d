package api

import (
	"context"
	"net/http"

	"nomadlike/nomadlike/structs"
)

// LoginRequest signs a person in with the name and the password of an account, or,
// where it names a provider, with those that the person has there.
// NewPassword takes the place of a first password, which serves for nothing else.
type LoginRequest struct {
	User        string `json:"user"`
	Password    string `json:"password"`
	NewPassword string `json:"new_password,omitempty"`
	Provider    string `json:"provider,omitempty"` // by its name; see LoginProviders

	Pending string          `json:"pending,omitempty"` // of LoginBegun: finishes what was begun at a provider of kind oidc
	Answer  *ProviderAnswer `json:"answer,omitempty"`  // that a browser brought back; none for a code that was typed elsewhere
}

// LoginProviders are what one may sign in through beside the passwords of accounts.
type LoginProviders struct {
	Providers []LoginProvider `json:"providers"` // in the order of the configuration
}

// LoginProvider is one of them, as everybody may know it.
type LoginProvider struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`              // ldap: name and password; oidc: in a browser
	Caption string `json:"caption,omitempty"` // for people
}

// IdentityRequest links an account to who somebody is to a provider.
type IdentityRequest struct {
	Provider string `json:"provider"`
	Subject  string `json:"subject,omitempty"` // what the provider knows the person by; "": nobody from now on
}

// PasswordRequest makes the password of an account another: the caller's own with
// the one before, another's with one that is drawn and serves for the first sign-in.
type PasswordRequest struct {
	Current  string `json:"current,omitempty"`
	Password string `json:"password,omitempty"`
	Reset    bool   `json:"reset,omitempty"`  // draw a first password; all that is signed in with the one before ends
	Forget   bool   `json:"forget,omitempty"` // the account has none from now on
}

// PasswordChanged answers users.password.
type PasswordChanged struct {
	Index uint64           `json:"index"`
	First string           `json:"first,omitempty"` // the password that was drawn, shown this once
	Until structs.UnixNano `json:"until,omitempty"` // when it ends
}

// The endpoints of signing in.
var (
	LoginCreate = endpoint[LoginRequest, NewToken](Route{
		Name: "login.create", Method: http.MethodPost, Pattern: "/v1/login", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
		Summary: "Sign in with the password of an account, or of a directory: makes a token for whatever the account may; its secret is shown this once",
	})
	LoginList = endpoint[None, LoginProviders](Route{
		Name: "login.list", Method: http.MethodGet, Pattern: "/v1/login", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
		Summary: "List the providers that one may sign in through",
	})
	UsersIdentity = endpoint[IdentityRequest, Changed](Route{
		Name: "users.identity", Method: http.MethodPut, Pattern: "/v1/users/{id}/identity", Verb: VerbWrite, Kind: ObjectUser, From: FromUser,
		Summary: "Link an account to who somebody is to a provider of sign-ins, or take that away with all that came of it",
	})
	TokensExtend = endpoint[None, structs.Token](Route{
		Name: "tokens.extend", Method: http.MethodPost, Pattern: "/v1/tokens/self/extend", Verb: VerbExtend, Kind: ObjectToken, From: FromCaller,
		Summary: "Put off the end of a token that a sign-in made, while it is in use",
	})
	UsersPassword = endpoint[PasswordRequest, PasswordChanged](Route{
		Name: "users.password", Method: http.MethodPost, Pattern: "/v1/users/{id}/password", Verb: VerbProfile, Kind: ObjectUser, From: FromUser,
		Summary: "Make a password another: one's own, or have one drawn for another's first sign-in",
	})
)

func loginRoutes() []Route {
	return append(beginRoutes(), LoginCreate.route, LoginList.route, TokensExtend.route, UsersPassword.route)
}

// LoginProviders lists what one may sign in through; it needs no token.
func (c *Client) LoginProviders(ctx context.Context) (*LoginProviders, error) {
	list, _, err := read(ctx, c, LoginList, "", nil)
	return list, err
}

// SetIdentity links an account to who somebody is to a provider, or takes that away.
func (c *Client) SetIdentity(ctx context.Context, user string, request IdentityRequest) (*Changed, error) {
	return change(ctx, c, UsersIdentity, user, request)
}

// Login signs in with a password, and returns the token that it made.
func (c *Client) Login(ctx context.Context, request LoginRequest) (*NewToken, error) {
	return change(ctx, c, LoginCreate, "", request)
}

// ExtendToken puts off the end of the client's token, which a sign-in made.
func (c *Client) ExtendToken(ctx context.Context) (*structs.Token, error) {
	return change(ctx, c, TokensExtend, "", None{})
}

// SetPassword makes the password of an account another.
func (c *Client) SetPassword(ctx context.Context, user string, request PasswordRequest) (*PasswordChanged, error) {
	return change(ctx, c, UsersPassword, user, request)
}
