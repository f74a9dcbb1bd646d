package auth

import (
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The application protocols of an agent's one TCP port. The client names one
// in its TLS hello, and the listener hands the connection to its owner.
const (
	ALPNHTTP = "http/1.1"
	ALPNRPC  = "nomadlike-rpc/1"
	ALPNRaft = "nomadlike-raft/1"
)

// ServerName is the name (SNI) by which people's programs ask for a server of
// the cluster. No certificate carries it; nodes know by it that they pass the
// connection on to a server, unopened.
const ServerName = "server.nomadlike"

// Trust is what an agent or a person believes: which CA certificates vouch
// for which cluster. It is immutable, but that it remembers whether it was
// followed (see Followed); a rotation makes a new one. During a rotation it holds
// the old and the new CA, the one that signs first.
type Trust struct {
	Cluster string

	certs    []*x509.Certificate
	roots    *x509.CertPool
	followed chan struct{}
	once     sync.Once // closes followed
}

func newTrust(cluster string, certs []*x509.Certificate) *Trust {
	trust := &Trust{Cluster: cluster, certs: certs, roots: x509.NewCertPool(), followed: make(chan struct{})}
	for _, cert := range certs {
		trust.roots.AddCert(cert)
	}
	return trust
}

// NewTrust reads the CA certificates of a cluster from PEM. The cluster
// argument may be "" when the certificates name it.
func NewTrust(cluster string, caPEM []byte) (*Trust, error) {
	certs, err := ParseCertificates(caPEM)
	if err != nil {
		return nil, err
	}
	trust := newTrust(cluster, certs)
	for _, cert := range certs {
		if !cert.IsCA {
			return nil, fmt.Errorf("read CA certificate %q: it may not sign others", cert.Subject.CommonName)
		}
		named := ClusterOf(cert)
		if trust.Cluster == "" {
			trust.Cluster = named
		}
		if named != "" && named != trust.Cluster {
			return nil, fmt.Errorf("read CA of cluster %s: %w: it is of %s", trust.Cluster, ErrWrongCluster, named)
		}
	}
	if !validID(trust.Cluster) {
		return nil, fmt.Errorf("read CA certificate: %q is no cluster id", trust.Cluster)
	}
	return trust, nil
}

// Certificates are the CA certificates, first the one that was given first.
// The caller must not change them.
func (t *Trust) Certificates() []*x509.Certificate { return t.certs }

// Expect narrows which agent may answer a call. A zero field means any.
type Expect struct {
	Role Role
	ID   string
}

// Verify checks a peer's certificates (its own first) and returns whom they
// name: signed by a CA of the cluster, valid at now, made for usage, and as
// expected. A CA that took the place of one that is trusted signs as well, when
// the chain has the certificate that says so (CA.Cross). Host names play no part:
// an agent is its identity, not its address.
func (t *Trust) Verify(chain []*x509.Certificate, usage x509.ExtKeyUsage, expect Expect, now time.Time) (Identity, error) {
	if len(chain) == 0 {
		return Identity{}, fmt.Errorf("verify peer: %w: it sent no certificate", ErrUntrusted)
	}
	leaf := chain[0]
	if leaf.IsCA {
		return Identity{}, fmt.Errorf("verify peer: %w: a CA is no agent", ErrUntrusted)
	}
	options := x509.VerifyOptions{Roots: t.roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}
	_, err := leaf.Verify(options)
	followed := false
	if err != nil {
		if options.Roots = t.follow(chain[1:], now); options.Roots == nil {
			return Identity{}, fmt.Errorf("verify peer %q: %w: %w", leaf.Subject.CommonName, ErrUntrusted, err)
		}
		if _, err = leaf.Verify(options); err != nil {
			return Identity{}, fmt.Errorf("verify peer %q: %w: %w", leaf.Subject.CommonName, ErrUntrusted, err)
		}
		followed = true
	}
	identity, err := ParseIdentity(leaf)
	switch {
	case err != nil:
		return Identity{}, err
	case identity.Cluster != t.Cluster:
		return Identity{}, fmt.Errorf("verify peer %s: %w: want %s", identity, ErrWrongCluster, t.Cluster)
	case expect.Role != "" && identity.Role != expect.Role:
		return Identity{}, fmt.Errorf("verify peer %s: %w: want a %s", identity, ErrWrongRole, expect.Role)
	case expect.ID != "" && identity.ID != expect.ID:
		return Identity{}, fmt.Errorf("verify peer %s: %w: want %s", identity, ErrWrongPeer, expect.ID)
	}
	if followed {
		t.tellFollowed()
	}
	return identity, nil
}

// Credentials are what an agent shows and what it trusts. They are
// immutable; renewing a certificate makes new ones.
type Credentials struct {
	Self        Identity
	Certificate tls.Certificate // the agent's chain and key; Leaf is set
	Trust       *Trust
}

// ParseCredentials reads an agent's chain, key and CA certificates from PEM
// and checks that they belong together.
func ParseCredentials(chainPEM, keyPEM, caPEM []byte) (*Credentials, error) {
	trust, err := NewTrust("", caPEM)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(chainPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read agent certificate: %w", err)
	}
	self, err := ParseIdentity(cert.Leaf)
	if err != nil {
		return nil, err
	}
	if self.Cluster != trust.Cluster {
		return nil, fmt.Errorf("read agent certificate: %w: CA is of %s, certificate of %s",
			ErrWrongCluster, trust.Cluster, self.Cluster)
	}
	return &Credentials{Self: self, Certificate: cert, Trust: trust}, nil
}

// RenewAt is when half of the certificate's life is over and the agent should
// ask for a new one.
func (c *Credentials) RenewAt() time.Time {
	leaf := c.Certificate.Leaf
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
}

// ExpiresAt is when peers begin to refuse the certificate.
func (c *Credentials) ExpiresAt() time.Time { return c.Certificate.Leaf.NotAfter }

// ServerTLS is the configuration of an agent's listener. Machine protocols
// (ALPNRPC, ALPNRaft) need TLS 1.3 and an agent's certificate, Raft a
// server's; ALPNHTTP takes TLS 1.2 too and a certificate only if one is
// given, and checks it then. The credentials function is asked at every
// handshake, so renewed certificates and CAs take effect at once. Hellos
// without ALPN are HTTP.
func ServerTLS(credentials func() *Credentials, now func() time.Time) *tls.Config {
	server := &serverTLS{credentials: credentials, now: now}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		Time:       now,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return server.choose(hello), nil
		},
		// Never used for a handshake; net/http wants a certificate here.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &credentials().Certificate, nil
		},
	}
}

// serverTLS builds one configuration per protocol and keeps them until the
// credentials change.
type serverTLS struct {
	credentials func() *Credentials
	now         func() time.Time
	built       atomic.Pointer[serverConfigs]
}

type serverConfigs struct {
	credentials     *Credentials
	http, rpc, raft *tls.Config
}

func (s *serverTLS) choose(hello *tls.ClientHelloInfo) *tls.Config {
	configs := s.built.Load()
	if current := s.credentials(); configs == nil || configs.credentials != current {
		configs = &serverConfigs{
			credentials: current,
			http:        s.config(current, ALPNHTTP, tls.VersionTLS12, tls.RequestClientCert),
			rpc:         s.config(current, ALPNRPC, tls.VersionTLS13, tls.RequireAnyClientCert),
			raft:        s.config(current, ALPNRaft, tls.VersionTLS13, tls.RequireAnyClientCert),
		}
		s.built.Store(configs)
	}
	// The most demanding protocol that the hello names wins, so offering
	// several never weakens what is asked.
	offered := configs.http
	for _, proto := range hello.SupportedProtos {
		switch proto {
		case ALPNRaft:
			return configs.raft
		case ALPNRPC:
			offered = configs.rpc
		}
	}
	return offered
}

func (s *serverTLS) config(c *Credentials, proto string, minVersion uint16, clientAuth tls.ClientAuthType) *tls.Config {
	var expect Expect
	if proto == ALPNRaft {
		expect.Role = RoleServer
	}
	return &tls.Config{
		MinVersion:   minVersion,
		Time:         s.now,
		NextProtos:   []string{proto},
		Certificates: []tls.Certificate{c.Certificate},
		ClientAuth:   clientAuth,
		// Only a hint to browsers, which then do not ask their user to pick
		// a certificate; VerifyConnection below is what decides.
		ClientCAs: c.Trust.roots,
		// Machines keep their connections, so resumption would save nothing
		// and would outlive a removed certificate.
		SessionTicketsDisabled: proto != ALPNHTTP,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 && clientAuth == tls.RequestClientCert {
				return nil
			}
			_, err := c.Trust.Verify(state.PeerCertificates, x509.ExtKeyUsageClientAuth, expect, s.now())
			return err
		},
	}
}

// ClientTLS is the configuration with which an agent dials another one for
// proto. Both sides show certificates; the peer must be of the same cluster
// and as expected, whatever address it was reached at.
func ClientTLS(credentials func() *Credentials, proto string, expect Expect, now func() time.Time) *tls.Config {
	config := verifiedDial(func() *Trust { return credentials().Trust }, proto, expect, now)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		held := credentials()
		if held.Over(now()) {
			return nil, fmt.Errorf("%w: it was good until %s", ErrExpired, held.ExpiresAt().UTC().Format(time.RFC3339))
		}
		return &held.Certificate, nil
	}
	return config
}

// CLITLS is the configuration with which a person's command line or program
// dials the HTTP API, knowing the cluster's CA. Only a server of the cluster
// may answer: whoever is root on a node holds that node's certificate, and
// must not be told a token.
func CLITLS(trust *Trust, now func() time.Time) *tls.Config {
	config := verifiedDial(func() *Trust { return trust }, ALPNHTTP, Expect{Role: RoleServer}, now)
	config.ServerName = ServerName
	return config
}

// LearningTLS is CLITLS for whoever remembers the CA: learn is called, in the
// handshake's goroutine, with the one that took the place of what is trusted.
func LearningTLS(trust *Trust, now func() time.Time, learn func(ca *x509.Certificate)) *tls.Config {
	config := CLITLS(trust, now)
	verify := config.VerifyConnection
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if err := verify(state); err != nil {
			return err
		}
		if trust.HasFollowed() && trust.Issuer(state.PeerCertificates[0]) == nil {
			if ca := issuerShown(state.PeerCertificates); ca != nil {
				learn(ca)
			}
		}
		return nil
	}
	return config
}

func verifiedDial(trust func() *Trust, proto string, expect Expect, now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		Time:       now,
		NextProtos: []string{proto},
		// The usual check is of host names; ours, below, is of identities
		// and runs on every handshake.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			_, err := trust().Verify(state.PeerCertificates, x509.ExtKeyUsageServerAuth, expect, now())
			return err
		},
	}
}

// PinnedTLS is the configuration of somebody who knows nothing of the
// cluster but the fingerprint of its CA: a joining agent, or a person at
// first login. The peer must show that CA in its chain and be a server that
// the CA signed, or one that took its place (CA.Cross); the handshake fails
// before a byte of ours is sent otherwise. After it succeeded, accept is called
// with the CA that signed and whom we talk to, in the handshake's goroutine.
func PinnedTLS(fingerprint string, now func() time.Time, accept func(ca *x509.Certificate, peer Identity)) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Time:               now,
		NextProtos:         []string{ALPNHTTP},
		InsecureSkipVerify: true, // replaced by the check below
		VerifyConnection: func(state tls.ConnectionState) error {
			ca, peer, err := verifyPinned(state.PeerCertificates, fingerprint, now())
			if err != nil {
				return err
			}
			accept(ca, peer)
			return nil
		},
	}
}

func verifyPinned(chain []*x509.Certificate, fingerprint string, now time.Time) (*x509.Certificate, Identity, error) {
	for _, cert := range chain {
		if subtle.ConstantTimeCompare([]byte(Fingerprint(cert)), []byte(fingerprint)) != 1 {
			continue
		}
		if !cert.IsCA {
			break
		}
		leaf, err := ParseIdentity(chain[0])
		if err != nil {
			return nil, Identity{}, err
		}
		cluster := ClusterOf(cert)
		if cluster == "" { // an external CA: the leaf it signed names the cluster
			cluster = leaf.Cluster
		}
		trust := newTrust(cluster, []*x509.Certificate{cert})
		peer, err := trust.Verify(chain, x509.ExtKeyUsageServerAuth, Expect{Role: RoleServer}, now)
		if err == nil && trust.HasFollowed() {
			if cert = issuerShown(chain); cert == nil {
				err = fmt.Errorf("verify peer %s: %w: it does not show its CA", peer, ErrUntrusted)
			}
		}
		return cert, peer, err
	}
	return nil, Identity{}, fmt.Errorf("verify peer: %w %s", ErrWrongCA, fingerprint)
}
