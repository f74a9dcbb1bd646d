package oidc

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// identify checks an ID token and reads who it speaks of.
func (p *Provider) identify(ctx context.Context, m *metadata, raw, access, nonce string) (*auth.External, error) {
	if raw == "" || len(raw) > idTokenMax {
		return nil, p.wrong("oidc.wrong_token", nil)
	}
	token, err := m.verifier.Verify(oidc.ClientContext(ctx, p.client), raw)
	if err != nil {
		return nil, p.notVerified(err)
	}
	var all claims
	if err := token.Claims(&all); err != nil {
		return nil, p.wrong("oidc.wrong_token", err)
	}
	if id := p.check(token, all, nonce); id != "" {
		return nil, p.wrong(id, nil)
	}
	if token.AccessTokenHash != "" {
		if err := token.VerifyAccessToken(access); err != nil {
			return nil, p.wrong("oidc.wrong_token", err)
		}
	}
	if all.find(p.config.NameClaim) == nil || all.find(p.config.GroupsClaim) == nil || all["name"] == nil {
		more, err := p.userinfo(ctx, m, access)
		if err != nil {
			return nil, err
		}
		if more != nil && text(more["sub"]) != token.Subject { // Core, 5.3.2
			return nil, p.wrong("oidc.wrong_subject", nil)
		}
		all.complete(more)
	}
	return p.read(token.Subject, all)
}

// notVerified names the check that a token failed, where whoever operates the provider
// would look for another cause.
func (p *Provider) notVerified(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "different provider"):
		return p.wrong("oidc.wrong_issuer", err)
	case strings.Contains(text, "expected audience"):
		return p.wrong("oidc.wrong_audience", err)
	case strings.Contains(text, "fetching keys"):
		return p.unreachable(err)
	}
	return p.wrong("oidc.wrong_signature", err)
}

// check reports what an ID token with a good signature lacks, as a message id.
func (p *Provider) check(token *oidc.IDToken, all claims, nonce string) string {
	now := p.config.Now()
	switch {
	case token.Subject == "" || len(token.Subject) > subjectMax || !structs.PlainText(token.Subject, subjectMax):
		return "oidc.wrong_subject"
	case nonce != "" && token.Nonce != nonce:
		return "oidc.wrong_nonce"
	case all["azp"] != nil && text(all["azp"]) != p.config.ClientID, len(token.Audience) > 1 && all["azp"] == nil: // Core, 3.1.3.7
		return "oidc.wrong_audience"
	case token.Expiry.IsZero() || !now.Before(token.Expiry.Add(Skew)):
		return "oidc.wrong_time"
	case token.IssuedAt.IsZero() || token.IssuedAt.After(now.Add(Skew)) || token.IssuedAt.Before(now.Add(-PendingFor-Skew)):
		return "oidc.wrong_time"
	case all["nbf"] != nil && seconds(all["nbf"]).After(now.Add(Skew)):
		return "oidc.wrong_time"
	}
	return ""
}

// userinfo asks the provider for what an ID token does not say; nil where it has no
// place for that.
func (p *Provider) userinfo(ctx context.Context, m *metadata, access string) (claims, error) {
	if m.UserinfoEndpoint == "" || access == "" {
		return nil, nil
	}
	var more claims
	if err := p.get(ctx, m.UserinfoEndpoint, access, &more); err != nil {
		return nil, p.unreachable(err)
	}
	return more, nil
}

// read takes from claims what an account is made of.
func (p *Provider) read(subject string, all claims) (*auth.External, error) {
	who := &auth.External{Subject: subject, Name: text(all.find(p.config.NameClaim)), DisplayName: text(all["name"]), Groups: list(all.find(p.config.GroupsClaim))}
	if email := text(all["email"]); truth(all["email_verified"]) && structs.PlainText(email, textMax) {
		who.Email = email
	}
	if !structs.PlainText(who.DisplayName, textMax) {
		who.DisplayName = ""
	}
	// An address that nobody has verified names nobody: whoever may set it there
	// could take another's account here.
	if who.Name == "" || !structs.PlainText(who.Name, textMax) || p.config.NameClaim == "email" && who.Email == "" {
		return nil, structs.NewError(structs.CodeForbidden, "oidc.no_name", "provider", p.config.Name, "claim", p.config.NameClaim)
	}
	return who, nil
}

// claims are what a provider says of somebody.
type claims map[string]any

// find returns a claim by its name, or else by the way to it through objects, as in
// realm_access.roles.
func (c claims) find(name string) any {
	if value, ok := c[name]; ok {
		return value
	}
	first, rest, nested := strings.Cut(name, ".")
	inner, ok := c[first].(map[string]any)
	if !nested || !ok {
		return nil
	}
	return claims(inner).find(rest)
}

// complete adds what is not said yet: the ID token is signed, so it goes before.
func (c claims) complete(more claims) {
	for name, value := range more {
		if name == "email" || name == "email_verified" { // these belong together
			continue
		}
		if _, said := c[name]; !said {
			c[name] = value
		}
	}
	if c["email"] == nil {
		c["email"], c["email_verified"] = more["email"], more["email_verified"]
	}
}

func text(value any) string {
	said, _ := value.(string)
	return said
}

func truth(value any) bool { return value == true || value == "true" } // some providers quote it

func seconds(value any) time.Time {
	said, _ := value.(float64)
	return time.Unix(int64(said), 0)
}

// list reads a claim that is one text or several. What cannot be the name of a group is
// left out: it would match nothing.
func list(value any) []string {
	var said []string
	switch value := value.(type) {
	case string:
		said = []string{value}
	case []any:
		for _, one := range value {
			said = append(said, text(one))
		}
	}
	said = slices.DeleteFunc(said, func(one string) bool { return one == "" || !structs.PlainText(one, groupMax) })
	slices.Sort(said)
	return slices.Compact(said)
}
