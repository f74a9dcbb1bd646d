// Package oidc signs people in with an OpenID Connect provider: the cluster's servers
// are its relying party, and nobody else holds the client's secret.
//
//	page, command line ── Begin ──▶ server            an address, and a sealed Pending
//	browser            ───────────▶ provider          the person signs in there
//	page, command line ── Finish ─▶ server ── code ──▶ provider ── ID token
//
// A Pending is what has to be known again when the person comes back: the state, the
// nonce, the verifier of PKCE. Whoever began keeps it, sealed (a browser in a cookie,
// the command line in its memory), so nobody can fill a server's memory by beginning; and
// nobody can finish what another has begun. Desk opens each once.
//
// What a provider says is believed only when all of this holds: it came over TLS from
// the very provider that the sign-in was begun with; the ID token is signed with a key that
// this provider publishes, by an algorithm with a public key (never none, never one
// that takes the client's secret for a key); it is for this client, by this issuer, for
// this sign-in (nonce), and of now, within Skew.
//
// Limits: a server forgets keys and metadata when it stops. Tokens of the provider are read
// and dropped, so what changes there later is seen at the next sign-in.
package oidc
