package auth

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"nomadlike/nomadlike/structs"
)

// sshHostTTL is how long a host certificate is good: for the handshake of the one
// connection that it is made for.
const sshHostTTL = 10 * time.Minute

// sshAuthority is the key with which the cluster certifies host keys of ssh. It
// follows from the CA's, so all servers have it and none has to store it.
func (ca *CA) sshAuthority() (ssh.Signer, error) {
	seed, err := ca.Derived("host keys of ssh")
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromSigner(ed25519.NewKeyFromSeed(seed))
}

// SSHAuthority is the public half of the key that certifies host keys, as a line of
// known_hosts has it: "ssh-ed25519 AAAA…".
func (ca *CA) SSHAuthority() (string, error) {
	signer, err := ca.sshAuthority()
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

// SSHHost makes the key of a host that clients know by the names, for one
// connection. A node that is given it can answer for these names, and for no others.
func (ca *CA) SSHHost(names []string, rand io.Reader, now time.Time) (*structs.SSHHost, error) {
	signer, err := ca.sshAuthority()
	if err != nil {
		return nil, err
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, fmt.Errorf("make host key: %w", err)
	}
	public, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(seed).Public())
	if err != nil {
		return nil, fmt.Errorf("make host key: %w", err)
	}
	certificate := &ssh.Certificate{
		Key: public, CertType: ssh.HostCert, KeyId: ca.Cluster, ValidPrincipals: names,
		ValidAfter: uint64(now.Add(-clockSkew).Unix()), ValidBefore: uint64(now.Add(sshHostTTL).Unix()),
	}
	if err := certificate.SignCert(rand, signer); err != nil {
		return nil, fmt.Errorf("certify host key: %w", err)
	}
	return &structs.SSHHost{Key: seed, Certificate: certificate.Marshal()}, nil
}

// SSHHostSigner is what a node answers one connection with.
func SSHHostSigner(host *structs.SSHHost) (ssh.Signer, error) {
	if len(host.Key) != ed25519.SeedSize {
		return nil, fmt.Errorf("host key of %d bytes", len(host.Key))
	}
	signer, err := ssh.NewSignerFromSigner(ed25519.NewKeyFromSeed(host.Key))
	if err != nil {
		return nil, err
	}
	parsed, err := ssh.ParsePublicKey(host.Certificate)
	if err != nil {
		return nil, fmt.Errorf("parse host certificate: %w", err)
	}
	certificate, ok := parsed.(*ssh.Certificate)
	if !ok || certificate.CertType != ssh.HostCert || !bytes.Equal(certificate.Key.Marshal(), signer.PublicKey().Marshal()) {
		return nil, fmt.Errorf("host certificate is of another key")
	}
	return ssh.NewCertSigner(certificate, signer)
}
