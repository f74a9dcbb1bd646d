package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// Provider is one OpenID Connect provider that people of this cluster sign in with. It
// may be used by several goroutines.
type Provider struct {
	config Config
	client *http.Client
	wire   *transport     // of client
	known  chan *metadata // holds one: what the provider said of itself, nil for nothing yet
}

// metadata is what a provider announces, and how to talk to it.
type metadata struct {
	client   oauth2.Config
	verifier *oidc.IDTokenVerifier
	announced
	fresh time.Time // until then it is not asked again
}

// announced are the fields of a provider's metadata that go-oidc does not keep.
type announced struct {
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	JWKSURI               string   `json:"jwks_uri"`
	UserinfoEndpoint      string   `json:"userinfo_endpoint"`
	DeviceEndpoint        string   `json:"device_authorization_endpoint"`
	EndSessionEndpoint    string   `json:"end_session_endpoint"`
	Algorithms            []string `json:"id_token_signing_alg_values_supported"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	SaysIssuer            bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

const (
	freshFor = time.Hour   // metadata is looked at anew after it
	retryFor = time.Minute // and so long after a failure, where something is known
)

// algorithms are those that an ID token may be signed by: all of them with a key that
// only the provider has.
func algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}
}

// New makes a provider. Nothing is asked of it before somebody signs in, so a
// cluster starts without it.
func New(config Config) *Provider {
	config.NameClaim = firstOf(config.NameClaim, NameClaimDefault)
	config.GroupsClaim = firstOf(config.GroupsClaim, GroupsClaimDefault)
	p := &Provider{config: config, known: make(chan *metadata, 1)}
	p.wire = newTransport(config.Transport, config.Now)
	p.client = &http.Client{Transport: p.wire, Timeout: timeout, CheckRedirect: noRedirects}
	p.known <- nil
	return p
}

// learn returns what the provider announces, and asks it where that is not known or old.
func (p *Provider) learn(ctx context.Context) (*metadata, error) {
	var known *metadata
	select {
	case known = <-p.known:
	case <-ctx.Done():
		return nil, p.unreachable(ctx.Err())
	}
	defer func() { p.known <- known }()
	now := p.config.Now()
	if known != nil && now.Before(known.fresh) {
		return known, nil
	}
	found, err := p.discover(ctx)
	switch {
	case err == nil:
		found.fresh = now.Add(freshFor)
		known = found
	case known == nil:
		return nil, p.unreachable(err)
	default: // what it said before will do for a while
		kept := *known
		kept.fresh = now.Add(retryFor)
		known = &kept
	}
	return known, nil
}

func (p *Provider) discover(ctx context.Context) (*metadata, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.config.Issuer) // refuses another issuer
	if err != nil {
		return nil, err
	}
	m := new(metadata)
	if err := found.Claims(&m.announced); err != nil {
		return nil, err
	}
	for _, address := range []string{m.AuthorizationEndpoint, m.TokenEndpoint, m.JWKSURI} {
		if !secure(address) {
			return nil, fmt.Errorf("it announces %.200q, which is no https address", address)
		}
	}
	for _, address := range []*string{&m.UserinfoEndpoint, &m.DeviceEndpoint, &m.EndSessionEndpoint} {
		if !secure(*address) {
			*address = ""
		}
	}
	good := algorithms()
	if len(m.Algorithms) > 0 {
		good = slices.DeleteFunc(good, func(a string) bool { return !slices.Contains(m.Algorithms, a) })
	}
	if len(good) == 0 {
		return nil, errors.New("it signs with no algorithm that has a public key")
	}
	style := oauth2.AuthStyleInHeader
	if p.config.ClientSecret == "" || len(m.TokenAuthMethods) > 0 && !slices.Contains(m.TokenAuthMethods, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	m.client = oauth2.Config{
		ClientID: p.config.ClientID, ClientSecret: string(p.config.ClientSecret), Scopes: append([]string{oidc.ScopeOpenID}, p.config.Scopes...),
		Endpoint: oauth2.Endpoint{AuthURL: m.AuthorizationEndpoint, TokenURL: m.TokenEndpoint, DeviceAuthURL: m.DeviceEndpoint, AuthStyle: style},
	}
	p.wire.keysAt(m.JWKSURI)
	// Times are checked by check, within Skew.
	m.verifier = oidc.NewVerifier(p.config.Issuer, oidc.NewRemoteKeySet(oidc.ClientContext(ctx, p.client), m.JWKSURI), &oidc.Config{
		ClientID: p.config.ClientID, SupportedSigningAlgs: good, SkipExpiryCheck: true, Now: p.config.Now,
	})
	return m, nil
}

func secure(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && parsed.Scheme == "https" && parsed.Host != "" && parsed.User == nil
}

// Begin begins a sign-in with a browser, which the provider sends back to redirect. It
// returns the address at the provider.
func (p *Provider) Begin(ctx context.Context, redirect string) (string, *Pending, error) {
	m, err := p.learn(ctx)
	if err != nil {
		return "", nil, err
	}
	pending := &Pending{
		ID: p.config.Rand(), Provider: p.config.Name, Expires: p.config.Now().Add(PendingFor), Redirect: redirect,
		State: p.config.Rand(), Nonce: p.config.Rand(), Verifier: p.config.Rand() + p.config.Rand(),
	}
	client := m.client
	client.RedirectURL = redirect
	return client.AuthCodeURL(pending.State, oidc.Nonce(pending.Nonce), oauth2.S256ChallengeOption(pending.Verifier)), pending, nil
}

// Answer is what a browser brings back from a provider. All of it is hostile.
type Answer struct {
	Code   string
	State  string
	Issuer string // RFC 9207; "" where the provider did not say
	Error  string
}

// Finish finds out who has signed in. The pending sign-in must have been spent.
func (p *Provider) Finish(ctx context.Context, pending *Pending, answer *Answer) (*auth.External, error) {
	if !pending.Answers(p.config.Name, answer.State) {
		return nil, p.wrong("oidc.wrong_state", nil)
	}
	m, err := p.learn(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case answer.Issuer != "" && answer.Issuer != p.config.Issuer, answer.Issuer == "" && m.SaysIssuer:
		return nil, p.wrong("oidc.wrong_issuer", nil)
	case answer.Error != "":
		return nil, p.refused(answer.Error)
	case answer.Code == "" || len(answer.Code) > codeMax:
		return nil, p.wrong("oidc.wrong_state", nil)
	}
	client := m.client
	client.RedirectURL = pending.Redirect
	token, err := client.Exchange(oidc.ClientContext(ctx, p.client), answer.Code, oauth2.VerifierOption(pending.Verifier))
	if err != nil {
		return nil, p.tokenFailure(err)
	}
	raw, _ := token.Extra("id_token").(string)
	return p.identify(ctx, m, raw, token.AccessToken, pending.Nonce)
}

// SignOutAddress is where a browser signs out at the provider too, "" for nowhere. It
// comes back to back, if the provider has that address registered for this client; without
// one it stays there (OpenID Connect RP-Initiated Logout, section 2).
func (p *Provider) SignOutAddress(ctx context.Context, back string) string {
	if !p.config.EndSession {
		return ""
	}
	m, err := p.learn(ctx)
	if err != nil || m.EndSessionEndpoint == "" {
		return ""
	}
	address, err := url.Parse(m.EndSessionEndpoint)
	if err != nil {
		return ""
	}
	query := address.Query()
	query.Set("client_id", p.config.ClientID)
	query.Del("post_logout_redirect_uri")
	if back != "" {
		query.Set("post_logout_redirect_uri", back)
	}
	address.RawQuery = query.Encode()
	return address.String()
}

func (p *Provider) unreachable(err error) error {
	return structs.NewError(structs.CodeUnavailable, "oidc.unreachable", "provider", p.config.Name).Because(brief(err))
}

func (p *Provider) wrong(id string, err error) error {
	return structs.NewError(structs.CodeUnauthorized, id, "provider", p.config.Name).Because(brief(err))
}

// refused is what a provider answers in words of OAuth; others are not repeated.
func (p *Provider) refused(reason string) *structs.Error {
	if len(reason) > 64 || strings.Trim(reason, "abcdefghijklmnopqrstuvwxyz_") != "" {
		reason = "?"
	}
	return structs.NewError(structs.CodeUnauthorized, "oidc.refused", "provider", p.config.Name, "reason", reason)
}

// tokenFailure tells a provider that refuses from one that cannot be reached.
func (p *Provider) tokenFailure(err error) error {
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode != "":
		return p.refused(refused.ErrorCode)
	case errors.As(err, &refused): // its text is the whole answer, in which tokens may stand
		return p.unreachable(fmt.Errorf("it answered %d", refused.Response.StatusCode))
	}
	return p.unreachable(err)
}

// brief is a cause for the log: what a provider sends is quoted by some libraries.
func brief(err error) error {
	if err == nil {
		return nil
	}
	const most = 300
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return errors.New(strings.ToValidUTF8(text, "?"))
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
