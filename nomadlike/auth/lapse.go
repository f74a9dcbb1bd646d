package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// LapseGraceDefault is how long after its end a certificate still proves who
// an agent is, to have it renewed and for nothing else.
const LapseGraceDefault = 30 * 24 * time.Hour

// ErrExpired is returned by the handshakes of an agent whose own certificate
// is over: peers would refuse it without saying why.
var ErrExpired = errors.New("the certificate of this agent has expired")

// lapseContext begins what an agent signs to prove that it holds the key of
// its old certificate, so that the signature means nothing elsewhere.
const lapseContext = "nomadlike renewal of a lapsed certificate\x00"

// Over reports whether the certificate is past its end at now.
func (c *Credentials) Over(now time.Time) bool { return !now.Before(c.ExpiresAt()) }

// Early reports whether the certificate begins after now: the clock by which it
// was signed, or this one, was far from true, and peers refuse it.
func (c *Credentials) Early(now time.Time) bool {
	return now.Before(c.Certificate.Leaf.NotBefore)
}

// ProveKey signs a certificate request with the key of the certificate that
// the agent has, which may be over.
func (c *Credentials) ProveKey(csrPEM []byte) ([]byte, error) {
	key, ok := c.Certificate.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("prove key: a %T cannot sign", c.Certificate.PrivateKey)
	}
	proof, err := key.Sign(rand.Reader, lapseDigest(csrPEM), crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("prove key: %w", err)
	}
	return proof, nil
}

// ChainPEM is the agent's certificate with its CA's, as PEM.
func (c *Credentials) ChainPEM() []byte { return chainPEM(c.Certificate) }

func chainPEM(cert tls.Certificate) []byte {
	var text []byte
	for _, der := range cert.Certificate {
		text = append(text, encodePEM(pemCertificate, der)...)
	}
	return text
}

func lapseDigest(csrPEM []byte) []byte {
	sum := sha256.Sum256(append([]byte(lapseContext), csrPEM...))
	return sum[:]
}

// VerifyLapsed returns whom a certificate names that was good until at most
// grace before now, or still is, or will be, and whose holder has signed csrPEM with its
// key. A grace below zero means that the certificate's age does not matter.
// The request is what the signature covers: whoever repeats it gets a
// certificate for a key that it does not have.
func (t *Trust) VerifyLapsed(chain, csrPEM, proof []byte, expect Expect, grace time.Duration, now time.Time) (Identity, time.Time, error) {
	certs, err := ParseCertificates(chain)
	if err != nil {
		return Identity{}, time.Time{}, err
	}
	leaf, at := certs[0], now
	if now.After(leaf.NotAfter) {
		at = leaf.NotAfter
	} else if now.Before(leaf.NotBefore) {
		at = leaf.NotBefore // it was signed by a clock that was ahead
	}
	identity, err := t.Verify(certs, x509.ExtKeyUsageClientAuth, expect, at)
	if err != nil {
		return Identity{}, time.Time{}, err
	}
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok || !ecdsa.VerifyASN1(key, lapseDigest(csrPEM), proof) {
		return Identity{}, time.Time{}, fmt.Errorf("verify peer %s: %w: it does not hold the key", identity, ErrUntrusted)
	}
	if grace >= 0 && now.Sub(leaf.NotAfter) > grace {
		return identity, leaf.NotAfter, fmt.Errorf("verify peer %s: %w since %s", identity, ErrExpired, leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return identity, leaf.NotAfter, nil
}

// LapsedTLS is the configuration with which an agent whose certificate is over
// dials a server's HTTPS door: it shows nothing and expects a server.
func LapsedTLS(trust func() *Trust, now func() time.Time) *tls.Config {
	return verifiedDial(trust, ALPNHTTP, Expect{Role: RoleServer}, now)
}
