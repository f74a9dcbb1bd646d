package api

import (
	"context"
	"net/http"

	"nomadlike/nomadlike/structs"
)

// LoginBeginRequest begins a sign-in through a provider that people sign in with in a
// browser of theirs.
type LoginBeginRequest struct {
	Provider string `json:"provider"`
	Redirect string `json:"redirect,omitempty"` // where a command line waits: http://127.0.0.1:PORT/signed-in, or [::1]
	Device   bool   `json:"device,omitempty"`   // there is no browser here: a code is typed elsewhere
}

// LoginBegun is a sign-in that was begun. Who began it keeps Pending, and finishes with it.
type LoginBegun struct {
	Pending   string           `json:"pending"` // sealed; nobody else can finish
	Address   string           `json:"address"` // at the provider, for a browser
	UserCode  string           `json:"user_code,omitempty"`
	Every     structs.Duration `json:"every,omitempty"` // after which to ask whether the code was typed
	ExpiresAt structs.UnixNano `json:"expires_at"`
}

// ProviderAnswer is what a browser brings back from a provider, as it stands in the
// address that it was sent to.
type ProviderAnswer struct {
	Code   string `json:"code,omitempty"`
	State  string `json:"state,omitempty"`
	Issuer string `json:"iss,omitempty"`
	Error  string `json:"error,omitempty"`
}

// SessionBeginRequest begins a sign-in of a browser through a provider.
type SessionBeginRequest struct {
	Provider string `json:"provider"`
}

// SessionBegun says where the browser goes. What it finishes with is in a cookie that no
// script can read.
type SessionBegun struct {
	Address string `json:"address"`
}

// The endpoints of sign-ins that begin here and go on at a provider.
var (
	LoginBegin = endpoint[LoginBeginRequest, LoginBegun](Route{
		Name: "login.begin", Method: http.MethodPost, Pattern: "/v1/login/begin", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
		Summary: "Begin a sign-in through a provider of OpenID Connect; `POST /v1/login` finishes it",
	})
	SessionBegin = endpoint[SessionBeginRequest, SessionBegun](Route{
		Name: "session.begin", Method: http.MethodPost, Pattern: "/v1/session/begin", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
		Summary: "Begin a sign-in of a browser through a provider of OpenID Connect; `POST /v1/session` finishes it",
	})
)

func beginRoutes() []Route { return []Route{LoginBegin.route, SessionBegin.route} }

// BeginLogin begins a sign-in through a provider; Login finishes it.
func (c *Client) BeginLogin(ctx context.Context, request LoginBeginRequest) (*LoginBegun, error) {
	return change(ctx, c, LoginBegin, "", request)
}
