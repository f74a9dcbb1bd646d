package oidc

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// Config is what an administrator says of one provider.
type Config struct {
	Name         string // of the provider in this cluster
	Issuer       string // https address, exactly as the provider calls itself
	ClientID     string
	ClientSecret Secret   // empty: a public client, which PKCE alone protects
	Scopes       []string // beside openid
	NameClaim    string   // that names the account; "": preferred_username
	GroupsClaim  string   // that lists groups; "": groups
	EndSession   bool     // who signs out here is asked to sign out there too

	Transport http.RoundTripper // to the provider; checks its certificate
	Now       func() time.Time
	Rand      func() string // a text of at least 128 bits that nobody guesses
}

// Secret prints as nothing.
type Secret string

// String hides the secret.
func (Secret) String() string { return "***" }

// GoString hides the secret.
func (Secret) GoString() string { return "***" }

// Claims and scopes of a provider of which nothing else is said.
const (
	NameClaimDefault   = "preferred_username"
	GroupsClaimDefault = "groups"
)

// ScopesDefault are asked for beside openid.
func ScopesDefault() []string { return []string{"profile", "email"} }

// Paths that a provider sends people back to. Each provider has its own, so that what
// one says cannot be taken for the word of another.
const (
	PagePath     = "/sign-in/"  // and the provider's name, below the address of the pages
	LoopbackPath = "/signed-in" // of a command line that waits
)

// Bounds of what a provider sends, and of time.
const (
	Skew       = time.Minute      // that clocks of provider and server may differ
	PendingFor = 10 * time.Minute // that a person may take to sign in

	timeout    = 10 * time.Second // of one request to a provider
	answerMax  = 1 << 20          // bytes of one answer
	idTokenMax = 128 << 10
	codeMax    = 8 << 10
	textMax    = 200 // bytes of a name, and of an e-mail address
	subjectMax = 255 // OpenID Connect Core, section 2
	groupMax   = 512
	addressMax = 2000
)

// PageAddress is where a provider sends a browser back to, at a host that the pages are
// reached by.
func PageAddress(host, provider string) string {
	return "https://" + host + PagePath + url.PathEscape(provider)
}

// HomeAddress is where a provider sends a browser that has signed out: the pages of the
// host that it asked here, and nothing that a request names.
func HomeAddress(host string) string { return "https://" + host + "/" }

// Loopback reports whether a command line may wait at an address: on the machine that
// its browser runs on, and nowhere else (RFC 8252, section 7.3). Names are none: localhost
// may be another machine (section 8.3).
func Loopback(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" || parsed.Path != LoopbackPath || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return false
	}
	host, text, err := net.SplitHostPort(parsed.Host)
	if err != nil || host != "127.0.0.1" && host != "::1" {
		return false
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0 && address == "http://"+netip.AddrPortFrom(netip.MustParseAddr(host), uint16(port)).String()+LoopbackPath
}
