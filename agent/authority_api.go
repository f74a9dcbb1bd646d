package agent

import (
	"crypto/rand"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// What the HTTP API asks of the identity.

// Self is who this agent is.
func (i *identity) Self() auth.Identity { return i.credentials.Self }

// Sign makes an agent's certificate, see sign.
func (i *identity) Sign(csrPEM []byte, who auth.Identity, now time.Time, address string) ([]byte, error) {
	return i.sign(csrPEM, who, now, address)
}

// Proofs is what a certificate of this cluster is checked against, of whichever
// of its CAs it is.
func (i *identity) Proofs(now structs.UnixNano) (*auth.Trust, error) {
	return i.held.Load().proofs(now)
}

// SSHAuthority is the public half of the key that certifies host keys of ssh.
func (i *identity) SSHAuthority() (string, error) { return i.ca().SSHAuthority() }

// SSHHost makes the host key of one connection of ssh.
func (i *identity) SSHHost(names []string, now time.Time) (*structs.SSHHost, error) {
	return i.ca().SSHHost(names, rand.Reader, now)
}

// Welcome is what a new agent of a role is given besides its certificate: on
// servers the CA's key too.
func (i *identity) Welcome(role auth.Role) (api.Joined, error) {
	held := i.held.Load()
	out := api.Joined{GossipKey: encodeGossipKey(i.gossip.primary()), CA: string(held.caPEM), PastCA: held.stored.Past}
	if role != auth.RoleServer {
		return out, nil
	}
	key, err := held.ca.KeyPEM()
	if err != nil {
		return api.Joined{}, err
	}
	out.CAKey, out.Init = string(key), i.record()
	if next := held.stored.Offered; next != nil {
		out.NextCA, out.NextCAKey = string(next.Certificate), string(next.Key)
	}
	return out, nil
}
