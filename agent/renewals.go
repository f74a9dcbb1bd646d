package agent

import (
	"slices"
	"sync"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
)

// renewals are the certificates of this agent that are kept good: its own, and
// on a server that is a node as well, that of the node.
type renewals struct {
	mu   sync.Mutex
	kept []renewal
}

type renewal struct {
	identity *rpc.Identity
	wake     chan struct{} // something changed: look again
}

// join adds a certificate.
func (r *renewals) join(identity *rpc.Identity) renewal {
	one := renewal{identity, make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, one)
	return one
}

// credentials are the certificates in use.
func (r *renewals) credentials() []*auth.Credentials {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*auth.Credentials
	for _, one := range r.kept {
		all = append(all, one.identity.Load())
	}
	return all
}

// trust has all of them trust what the agent trusts now, and be looked at again:
// another CA may sign.
func (r *renewals) trust(trust *auth.Trust) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.kept {
		one.identity.SetTrust(trust)
		select {
		case one.wake <- struct{}{}:
		default: // it will look
		}
	}
}

// ownCAs names the CAs that this agent trusts, first the one that signed its
// certificates: of several, the one that is to go.
func (a *Agent) ownCAs() []string {
	trust := a.identity.trust()
	var names []string
	for _, cert := range trust.Certificates() {
		names = append(names, auth.Fingerprint(cert))
	}
	for _, credentials := range a.renewals.credentials() {
		issuer := trust.Issuer(credentials.Certificate.Leaf)
		if issuer == nil {
			return nil
		}
		if name := auth.Fingerprint(issuer); name != names[0] {
			at := slices.Index(names, name)
			return append([]string{name}, slices.Delete(names, at, at+1)...)
		}
	}
	return names
}

// stale reports whether a certificate is to be replaced because the CA that
// signed it is: another signs now, or a peer showed that there is another.
func (a *Agent) stale(held *auth.Credentials) bool {
	return a.replaced(held) || held.Trust.Issuer(held.Certificate.Leaf) != held.Trust.Certificates()[0]
}

// replaced reports whether a node was away while the CA was replaced: servers
// follow the log, and hold its keys.
func (a *Agent) replaced(held *auth.Credentials) bool {
	return a.identity.ca() == nil && held.Trust.HasFollowed()
}
