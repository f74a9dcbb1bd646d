package oidc

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// DeviceCode is what a person types at the provider, on whatever machine has a browser
// (RFC 8628).
type DeviceCode struct {
	UserCode string
	Address  string        // where to type it
	Complete string        // the same with the code in it; "" where the provider has none
	Every    time.Duration // between two questions whether it is done
}

// Bounds of what a provider says of its device flow.
const (
	deviceEvery    = 5 * time.Second // where it says nothing (RFC 8628, section 3.2)
	deviceEveryMax = time.Minute
	deviceCodeMax  = 2 << 10
	userCodeMax    = 64
)

// BeginDevice begins a sign-in without a browser.
func (p *Provider) BeginDevice(ctx context.Context) (*DeviceCode, *Pending, error) {
	m, err := p.learn(ctx)
	if err != nil {
		return nil, nil, err
	}
	if m.DeviceEndpoint == "" {
		return nil, nil, structs.NewError(structs.CodeNotAvailable, "oidc.no_device", "provider", p.config.Name)
	}
	var said struct {
		DeviceCode string  `json:"device_code"`
		UserCode   string  `json:"user_code"`
		Address    string  `json:"verification_uri"`
		Complete   string  `json:"verification_uri_complete"`
		Expires    float64 `json:"expires_in"`
		Interval   float64 `json:"interval"`
	}
	err = p.post(ctx, m, m.DeviceEndpoint, url.Values{"scope": {strings.Join(m.client.Scopes, " ")}}, &said)
	var refused *oauthError
	switch {
	case errors.As(err, &refused):
		return nil, nil, p.refused(refused.Code)
	case err != nil:
		return nil, nil, p.unreachable(err)
	case said.DeviceCode == "" || len(said.DeviceCode) > deviceCodeMax || said.UserCode == "" || !structs.PlainText(said.UserCode, userCodeMax) || !secure(said.Address) || !structs.PlainText(said.Address, addressMax):
		return nil, nil, p.unreachable(errors.New("what it answers is no device authorisation"))
	}
	if !secure(said.Complete) || !structs.PlainText(said.Complete, addressMax) {
		said.Complete = ""
	}
	every := deviceEvery
	if said.Interval > 0 {
		every = time.Duration(min(said.Interval, deviceEveryMax.Seconds()) * float64(time.Second))
	}
	life := PendingFor
	if said.Expires > 0 {
		life = time.Duration(min(said.Expires, PendingFor.Seconds()) * float64(time.Second))
	}
	return &DeviceCode{UserCode: said.UserCode, Address: said.Address, Complete: said.Complete, Every: every},
		&Pending{ID: p.config.Rand(), Provider: p.config.Name, Expires: p.config.Now().Add(life), DeviceCode: said.DeviceCode, Every: every}, nil
}

// Poll asks whether somebody has typed the code. nil: not yet; slow says that the
// provider was asked too often.
func (p *Provider) Poll(ctx context.Context, pending *Pending) (who *auth.External, slow bool, err error) {
	if pending.Provider != p.config.Name || !pending.Device() {
		return nil, false, p.wrong("oidc.wrong_state", nil)
	}
	m, err := p.learn(ctx)
	if err != nil {
		return nil, false, err
	}
	var said struct {
		Access string `json:"access_token"`
		ID     string `json:"id_token"`
	}
	err = p.post(ctx, m, m.TokenEndpoint, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {pending.DeviceCode}}, &said)
	var refused *oauthError
	switch {
	case errors.As(err, &refused) && (refused.Code == "authorization_pending" || refused.Code == "slow_down"):
		return nil, refused.Code == "slow_down", nil
	case errors.As(err, &refused):
		return nil, false, p.refused(refused.Code)
	case err != nil:
		return nil, false, p.unreachable(err)
	}
	who, err = p.identify(ctx, m, said.ID, said.Access, "")
	return who, false, err
}
