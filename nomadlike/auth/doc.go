// Package auth answers two questions: who is at the other end, and may they
// do this?
//
// Who: a cluster has one certificate authority (CA). It signs a certificate
// for each agent that carries its identity as a URI,
// nomadlike://<cluster>/{server|client}/<id>; the functions in tls.go build
// the TLS configurations that check it, in both directions. People and
// programs present API tokens (token.go); new agents present join tokens,
// which also pin the CA, so that a joiner tells its secret to nobody else
// (join_token.go).
//
// May: Allowed looks at a principal, a verb and an object, and refuses
// whatever no rule grants (policy.go holds the rules, as one table).
//
// Limits: pure. Randomness comes in as an io.Reader, time as an argument or,
// for handshakes, as a function; nothing is logged, read or written. Storing
// and revoking tokens is the server's work.
package auth
