package config

import (
	"net/url"
	"strings"
	"time"

	"nomadlike/nomadlike/auth/oidc"
)

// OIDCBlock is the block of a provider of OpenID Connect, labelled with its name.
type OIDCBlock struct {
	Name             string
	Caption          *string
	Grants           []GrantBlock
	Issuer           string
	ClientID         string
	ClientSecretFile *string
	Scopes           []string
	NameClaim        *string
	GroupsClaim      *string
	CAFile           *string
	EndSession       *bool
}

// OIDC is a provider of OpenID Connect.
type OIDC struct {
	Provider
	Issuer           string
	ClientID         string
	ClientSecretFile string // absolute; "": a public client
	Scopes           []string
	NameClaim        string
	GroupsClaim      string
	CAFile           string // absolute; "": the authorities that the machine trusts
	EndSession       bool
}

// walkOIDC goes over a block; what it comes to depends on all of it.
func walkOIDC(v visitor, b *OIDCBlock) { walkOIDCTo(v, b, new(OIDC)) }

func walkOIDCTo(v visitor, b *OIDCBlock, c *OIDC) {
	v.label(&b.Name)
	v.setting("caption", text(&b.Caption, new(string), "").unset().apart())
	v.setting("issuer", plain(&b.Issuer).needed())
	v.setting("client_id", plain(&b.ClientID).needed())
	v.setting("client_secret_file", text(&b.ClientSecretFile, &c.ClientSecretFile, "").unset())
	v.setting("scopes", list(&b.Scopes, &c.Scopes))
	v.setting("name_claim", text(&b.NameClaim, &c.NameClaim, oidc.NameClaimDefault))
	v.setting("groups_claim", text(&b.GroupsClaim, &c.GroupsClaim, oidc.GroupsClaimDefault))
	v.setting("ca_file", text(&b.CAFile, &c.CAFile, "").unset())
	v.setting("end_session", toggle(&b.EndSession, &c.EndSession, false))
	every(v, "grant", "group", &b.Grants, walkGrant, nil)
}

// resolveOIDC reads the block of a provider of OpenID Connect.
func resolveOIDC(r *resolver, path string, b *OIDCBlock, names *[]string) OIDC {
	out := OIDC{Provider: resolveProvider(r, path, b.Name, b.Caption, b.Grants, names), Issuer: b.Issuer, ClientID: b.ClientID}
	r.settle(path, func(v visitor) { walkOIDCTo(v, b, &out) })
	issuer, err := url.Parse(b.Issuer)
	if err != nil || issuer.Scheme != "https" || issuer.Host == "" || issuer.User != nil || issuer.RawQuery != "" || issuer.Fragment != "" {
		r.refuse(path+".issuer", "agent.config.oidc_issuer", "value", b.Issuer)
	}
	if b.ClientID == "" || strings.ContainsAny(b.ClientID, " \t\r\n") {
		r.refuse(path+".client_id", "agent.config.oidc_client")
	}
	if b.Scopes == nil {
		out.Scopes = oidc.ScopesDefault()
	}
	for _, scope := range out.Scopes {
		if scope == "" || strings.ContainsAny(scope, " \t\r\n\"\\") {
			r.refuse(path+".scopes", "agent.config.oidc_scope", "value", scope)
		}
	}
	r.file(path+".client_secret_file", out.ClientSecretFile)
	r.file(path+".ca_file", out.CAFile)
	if out.ClientSecretFile != "" {
		r.config.Files = append(r.config.Files, out.ClientSecretFile) // no task sees it
	}
	return out
}

// RelyingOn is what a server asks the provider with; secret is what stands in its file.
func (c *OIDC) RelyingOn(secret string, now func() time.Time) oidc.Config {
	return oidc.Config{
		Name: c.Name, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: oidc.Secret(secret), Scopes: c.Scopes,
		NameClaim: c.NameClaim, GroupsClaim: c.GroupsClaim, EndSession: c.EndSession, Now: now,
	}
}
