package agent

import (
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
