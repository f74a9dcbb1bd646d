package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/auth/oidc"
	"nomadlike/nomadlike/structs"
)

// askedMax bounds the questions to providers of OpenID Connect at a time: each may take
// seconds, and anybody may cause one.
const askedMax = 64

// begin answers login.begin.
func (h *loginHandlers) begin(r *front.Request, body *api.LoginBeginRequest) (*api.LoginBegun, error) {
	provider, err := h.relying(body.Provider)
	if err != nil {
		return nil, err
	}
	r.Through = provider.through()
	if body.Device {
		return h.beginDevice(r, provider)
	}
	redirect := body.Redirect
	if host := front.PageHost(r.Request); host != "" { // a server of the cluster asks for a browser
		redirect = oidc.PageAddress(host, provider.Name)
	} else if !oidc.Loopback(redirect) {
		return nil, structs.NewError(structs.CodeInvalid, "oidc.redirect")
	}
	return h.beginAt(r, provider, redirect)
}

// beginAt begins a sign-in with a browser that comes back to redirect.
func (h *loginHandlers) beginAt(r *front.Request, provider *Provider, redirect string) (*api.LoginBegun, error) {
	var address string
	var pending *oidc.Pending
	err := h.ask(r.Context(), provider, func(ctx context.Context) (err error) {
		address, pending, err = provider.Relying.Begin(ctx, redirect)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.LoginBegun{Pending: h.desk.Seal(pending), Address: address, ExpiresAt: structs.At(pending.Expires)}, nil
}

func (h *loginHandlers) beginDevice(r *front.Request, provider *Provider) (*api.LoginBegun, error) {
	var code *oidc.DeviceCode
	var pending *oidc.Pending
	err := h.ask(r.Context(), provider, func(ctx context.Context) (err error) {
		code, pending, err = provider.Relying.BeginDevice(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	begun := &api.LoginBegun{Pending: h.desk.Seal(pending), Address: code.Address, UserCode: code.UserCode, Every: structs.Duration(code.Every), ExpiresAt: structs.At(pending.Expires)}
	return begun, nil
}

// throughBrowser signs in whoever comes back from a provider with what was begun here.
func (h *loginHandlers) throughBrowser(r *front.Request, body *api.LoginRequest) (string, structs.Token, error) {
	none := structs.Token{}
	provider, err := h.relying(body.Provider)
	if err != nil {
		return "", none, err
	}
	r.Through = provider.through()
	pending, err := h.desk.Open(body.Pending)
	if err != nil {
		return "", none, err
	}
	var who *auth.External
	if pending.Device() {
		who, err = h.pollDevice(r, provider, pending)
	} else {
		who, err = h.finish(r, provider, pending, body.Answer)
	}
	if err != nil {
		return "", none, err
	}
	return h.admit(r, provider, who)
}

// finish has the provider say who a browser is. The pending sign-in is spent before the
// provider is asked, so that of two who bring the same answer one is asked for; and
// after it is known that the answer belongs to it, so that nobody spends another's by a link.
func (h *loginHandlers) finish(r *front.Request, provider *Provider, pending *oidc.Pending, brought *api.ProviderAnswer) (who *auth.External, err error) {
	if brought == nil || !pending.Answers(provider.Name, brought.State) {
		return nil, structs.NewError(structs.CodeUnauthorized, "oidc.wrong_state", "provider", provider.Name)
	}
	if err := h.desk.Spend(pending); err != nil {
		return nil, err
	}
	err = h.ask(r.Context(), provider, func(ctx context.Context) (err error) {
		who, err = provider.Relying.Finish(ctx, pending, &oidc.Answer{Code: brought.Code, State: brought.State, Issuer: brought.Issuer, Error: brought.Error})
		return err
	})
	return who, err
}

// pollDevice asks the provider, as often as it wants to be asked, whether somebody has
// typed the code.
func (h *loginHandlers) pollDevice(r *front.Request, provider *Provider, pending *oidc.Pending) (who *auth.External, err error) {
	waits := structs.NewError(structs.CodeConflict, "oidc.device_waits", "provider", provider.Name)
	if !h.desk.Ask(pending) {
		return nil, waits
	}
	slow := false
	err = h.ask(r.Context(), provider, func(ctx context.Context) (err error) {
		who, slow, err = provider.Relying.Poll(ctx, pending)
		return err
	})
	if slow {
		h.desk.Slow(pending)
	}
	switch {
	case structs.CodeOf(err) == structs.CodeUnauthorized: // refused there, for good
		return nil, cmp.Or(h.desk.Spend(pending), err)
	case err != nil:
		return nil, err
	case who == nil:
		return nil, waits
	}
	return who, h.desk.Spend(pending)
}

// ask asks a provider something when there is a place for it. What went wrong there is
// for the log of this server: callers read what they can do.
func (h *loginHandlers) ask(ctx context.Context, provider *Provider, do func(context.Context) error) error {
	select {
	case h.asking <- struct{}{}:
	case <-ctx.Done():
		return structs.NewError(structs.CodeUnavailable, "auth.sign_in_busy").Because(ctx.Err())
	}
	defer func() { <-h.asking }()
	err := do(ctx)
	if err != nil && ctx.Err() == nil {
		h.log.Warn("sign-in through a provider failed", logkey.Provider, provider.Name, logkey.Error, err)
	}
	return err
}

// relying finds a provider that people sign in with in a browser of theirs.
func (h *loginHandlers) relying(name string) (*Provider, error) {
	provider, err := h.provider(name)
	if err != nil {
		return nil, err
	}
	if provider.Relying == nil {
		return nil, structs.NewError(structs.CodeInvalid, "oidc.not_here", "provider", provider.Name)
	}
	return provider, nil
}

// signOutPatience bounds how long signing out here waits for a provider that has to say
// where one signs out there.
const signOutPatience = 3 * time.Second

// signOutAt is where the holder of a token signs out at the provider, "" for nowhere: the
// token went through none, or through one that is not there any more, or is away. The
// browser is sent on to back, "" for nowhere.
func (h *loginHandlers) signOutAt(ctx context.Context, token *structs.Token, back string) string {
	provider, err := h.relying(token.Provider)
	if token.Provider == "" || err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, signOutPatience)
	defer cancel()
	return provider.Relying.SignOutAddress(ctx, back)
}

// Begin implements front.Signer.
func (s *doorSigner) Begin(r *front.Request, name string) (*api.LoginBegun, error) {
	provider, err := s.login.relying(name)
	if err != nil {
		return nil, err
	}
	r.Through = provider.through()
	if s.leads() {
		return s.login.beginAt(r, provider, oidc.PageAddress(r.Host, provider.Name))
	}
	client, err := s.toLeader(r)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.BeginLogin(r.Context(), api.LoginBeginRequest{Provider: name})
}

// toLeader is a client of the leader that says for whom it asks.
func (s *doorSigner) toLeader(r *front.Request) (*api.Client, error) {
	leader := s.leader()
	if leader == "" {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.no_server")
	}
	return api.New(api.Config{
		Address: "https://" + leader, Language: r.Header.Get("Accept-Language"), RetryFor: -1,
		HTTPClient: &http.Client{Transport: onBehalf{s.agents, front.Address(r.Request), r.Host}},
	})
}
