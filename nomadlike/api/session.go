package api

import "nomadlike/nomadlike/structs"

// SessionRequest signs a browser in with the password of an account, with the secret of
// a token, with a code that the agent gave out and that works once, or with what a
// provider says. Requests that
// a browser makes with the cookie that it gets, and this one, must carry
// HeaderRequestedBy when they change something: other sites cannot add it.
type SessionRequest struct {
	Token string `json:"token,omitempty"`
	Code  string `json:"code,omitempty"`

	User        string `json:"user,omitempty"`
	Password    string `json:"password,omitempty"`
	Provider    string `json:"provider,omitempty"`     // whose user and password these are; "": of an account
	NewPassword string `json:"new_password,omitempty"` // in the place of a first password

	Answer *ProviderAnswer `json:"answer,omitempty"` // of Provider, to what SessionBegin began
}

// Session reports who signed in, and until when at the latest. The cookie comes
// in a header, out of the reach of scripts.
type Session struct {
	Token     structs.Token    `json:"token"`
	ExpiresAt structs.UnixNano `json:"expires_at"`
}

// SessionEnded answers a sign-out.
type SessionEnded struct {
	Address string `json:"address,omitempty"` // where to sign out at the provider, too
}
