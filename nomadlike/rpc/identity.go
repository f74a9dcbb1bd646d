package rpc

import (
	"net"
	"sync/atomic"

	"nomadlike/nomadlike/auth"
)

// Identity holds the agent's current credentials. A renewal stores new ones,
// and every later handshake, in both directions, uses them; open connections
// go on with those they were made with.
type Identity struct {
	current atomic.Pointer[auth.Credentials]
}

// NewIdentity makes a holder of credentials, which must not be nil.
func NewIdentity(credentials *auth.Credentials) *Identity {
	identity := new(Identity)
	identity.Store(credentials)
	return identity
}

// Load returns the current credentials. Callers must not change them.
func (i *Identity) Load() *auth.Credentials { return i.current.Load() }

// Store replaces the credentials, which must not be nil.
func (i *Identity) Store(credentials *auth.Credentials) {
	if credentials == nil {
		panic("rpc: an agent without credentials")
	}
	i.current.Store(credentials)
}

// SetTrust replaces what the credentials trust, whichever they are by now.
func (i *Identity) SetTrust(trust *auth.Trust) {
	for {
		held := i.current.Load()
		if held.Trust == trust {
			return
		}
		after := *held
		after.Trust = trust
		if i.current.CompareAndSwap(held, &after) {
			return
		}
	}
}

// Self is who this agent is.
func (i *Identity) Self() auth.Identity { return i.Load().Self }

// Peer is the agent at the other end, as its certificate proves it.
type Peer struct {
	auth.Identity
	Addr net.Addr // where its connection comes from; not the address it serves at
}
