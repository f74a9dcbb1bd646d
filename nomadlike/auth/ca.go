package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"slices"
	"time"
)

// Lives and bounds of certificates.
const (
	// AgentTTL is the life of an agent's certificate; agents renew theirs
	// when half of it is over.
	AgentTTL = 72 * time.Hour
	// CATTL is the life of a cluster's own CA.
	CATTL = 10 * 365 * 24 * time.Hour
	// clockSkew is how far before now a certificate begins, because the
	// clock of the machine that checks it may be behind the signer's.
	clockSkew = time.Hour

	sanMax     = 16       // extra DNS names, and extra addresses, of one agent
	dnsMax     = 253      // bytes of a DNS name
	pemSizeMax = 64 << 10 // bytes of PEM text that the parsers here accept
	serialBits = 127
)

// PEM block types of the files we write.
const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
	pemRequest     = "CERTIFICATE REQUEST"
)

// CA is a cluster's certificate authority with its private key. Only servers
// hold one. It is immutable; any goroutine may use it.
type CA struct {
	Cluster     string            // the cluster it vouches for
	Certificate *x509.Certificate // its own, self-signed certificate

	key crypto.Signer
}

// NewCA makes the CA of a new cluster: ECDSA on P-256, valid for CATTL from
// now, unable to sign further CAs.
func NewCA(cluster string, rand io.Reader, now time.Time) (*CA, error) {
	if !validID(cluster) {
		return nil, fmt.Errorf("make CA: %q is no cluster id", cluster)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand)
	if err != nil {
		return nil, fmt.Errorf("make key of CA: %w", err)
	}
	serial, err := newSerial(rand)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "nomadlike CA " + cluster},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(CATTL),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		URIs:                  []*url.URL{clusterURI(cluster)},
	}
	der, err := x509.CreateCertificate(rand, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse certificate of CA: %w", err)
	}
	return &CA{Cluster: cluster, Certificate: cert, key: key}, nil
}

// ParseCA reads what CertificatePEM and KeyPEM wrote. The cluster argument
// is needed only for an external CA, whose certificate does not name it.
func ParseCA(certPEM, keyPEM []byte, cluster string) (*CA, error) {
	certs, err := ParseCertificates(certPEM)
	if err != nil {
		return nil, fmt.Errorf("parse certificate of CA: %w", err)
	}
	cert := certs[0]
	if !cert.IsCA || !cert.BasicConstraintsValid {
		return nil, errors.New("parse certificate of CA: it may not sign others")
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("parse key of CA: %w", err)
	}
	if !publicEqual(key.Public(), cert.PublicKey) {
		return nil, errors.New("parse CA: key and certificate do not belong together")
	}
	if named := ClusterOf(cert); named != "" {
		if cluster != "" && cluster != named {
			return nil, fmt.Errorf("parse CA of cluster %s: %w: it is of %s", cluster, ErrWrongCluster, named)
		}
		cluster = named
	}
	if !validID(cluster) {
		return nil, fmt.Errorf("parse CA: %q is no cluster id", cluster)
	}
	return &CA{Cluster: cluster, Certificate: cert, key: key}, nil
}

// CertificatePEM is the CA's public half, for every agent and for people.
func (ca *CA) CertificatePEM() []byte { return encodePEM(pemCertificate, ca.Certificate.Raw) }

// KeyPEM is the CA's secret half (PKCS #8). Write it with mode 0600.
func (ca *CA) KeyPEM() ([]byte, error) { return marshalKey(ca.key) }

// Derived is a key of 32 bytes for one purpose, the same at all servers of the
// cluster, and no help to whoever wants the key that it comes from.
func (ca *CA) Derived(purpose string) ([]byte, error) {
	secret, err := ca.KeyPEM()
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, secret, []byte(ca.Cluster), purpose, sha256.Size)
}

// Fingerprint is what join tokens pin.
func (ca *CA) Fingerprint() string { return Fingerprint(ca.Certificate) }

// Fingerprint is the SHA-256 of a certificate's DER bytes, as 64 lower-case
// hexadecimal digits.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// Grant is what a CA puts into an agent's certificate. All of it is the
// signer's decision; of a request only the public key is used.
type Grant struct {
	Role     Role
	ID       string
	DNSNames []string      // besides "localhost"; at most 16
	IPs      []net.IP      // besides 127.0.0.1 and ::1; at most 16
	TTL      time.Duration // 0 means AgentTTL; never beyond the CA's own end
}

// SignCSR signs the public key of a PEM certificate request for the agent
// that grant describes. It returns the agent's certificate followed by the
// CA's, as PEM. The requester's wishes for names in the CSR are ignored.
func (ca *CA) SignCSR(csrPEM []byte, grant Grant, rand io.Reader, now time.Time) ([]byte, error) {
	csr, err := ParseCSR(csrPEM)
	if err != nil {
		return nil, err
	}
	return ca.sign(csr.PublicKey, grant, rand, now)
}

// Issued is a certificate with its key, for an agent on the CA's own machine.
type Issued struct {
	ChainPEM []byte // the agent's certificate, then the CA's
	KeyPEM   []byte // PKCS #8; write with mode 0600
}

// IssueAgent makes a key and a certificate in one step: for the first
// server, which is its own CA, and for tests.
func (ca *CA) IssueAgent(grant Grant, rand io.Reader, now time.Time) (*Issued, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand)
	if err != nil {
		return nil, fmt.Errorf("make key of %s %s: %w", grant.Role, grant.ID, err)
	}
	chain, err := ca.sign(key.Public(), grant, rand, now)
	if err != nil {
		return nil, err
	}
	keyPEM, err := marshalKey(key)
	if err != nil {
		return nil, err
	}
	return &Issued{ChainPEM: chain, KeyPEM: keyPEM}, nil
}

// sign makes the one kind of certificate that agents have: good as TLS
// client and TLS server, so that RPC, Raft and HTTPS share it.
func (ca *CA) sign(public crypto.PublicKey, grant Grant, rand io.Reader, now time.Time) ([]byte, error) {
	identity := Identity{Cluster: ca.Cluster, Role: grant.Role, ID: grant.ID}
	if err := identity.Validate(); err != nil {
		return nil, err
	}
	if len(grant.DNSNames) > sanMax || len(grant.IPs) > sanMax {
		return nil, fmt.Errorf("sign certificate of %s: more than %d names or addresses", identity, sanMax)
	}
	for _, name := range grant.DNSNames {
		if !validDNSName(name) {
			return nil, fmt.Errorf("sign certificate of %s: %q is no host name", identity, name)
		}
	}
	// A clock that stands before the CA began makes a certificate that is good
	// at no instant: nobody would believe its holder again, not even at the
	// door for those whose certificate is over.
	if begin := ca.Certificate.NotBefore; now.Before(begin) {
		return nil, fmt.Errorf("sign certificate of %s: the clock of this machine says %s, and the CA began at %s: set the clock (chronyc tracking)",
			identity, now.UTC().Format(time.RFC3339), begin.UTC().Format(time.RFC3339))
	}
	ttl := grant.TTL
	if ttl == 0 {
		ttl = AgentTTL
	}
	end := now.Add(ttl)
	if end.After(ca.Certificate.NotAfter) {
		end = ca.Certificate.NotAfter
	}
	serial, err := newSerial(rand)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: string(grant.Role) + " " + grant.ID},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		URIs:                  []*url.URL{identity.uri()},
		DNSNames:              withDefault(grant.DNSNames, "localhost"),
		IPAddresses:           withLoopback(grant.IPs),
	}
	der, err := x509.CreateCertificate(rand, template, ca.Certificate, public, ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", identity, err)
	}
	return append(encodePEM(pemCertificate, der), ca.CertificatePEM()...), nil
}

// NewCSR makes a key for a joining or renewing agent and a request to sign
// it, both as PEM. The key never leaves the agent. The identity in the
// request is for logs only: the signer decides it.
func NewCSR(role Role, id string, rand io.Reader) (csrPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand)
	if err != nil {
		return nil, nil, fmt.Errorf("make key of %s %s: %w", role, id, err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(role) + " " + id}}
	der, err := x509.CreateCertificateRequest(rand, template, key)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate request of %s %s: %w", role, id, err)
	}
	keyPEM, err = marshalKey(key)
	if err != nil {
		return nil, nil, err
	}
	return encodePEM(pemRequest, der), keyPEM, nil
}

// ParseCSR reads a PEM certificate request and checks that its sender holds
// the key, which must be on P-256.
func ParseCSR(csrPEM []byte) (*x509.CertificateRequest, error) {
	der, err := decodePEM(csrPEM, pemRequest)
	if err != nil {
		return nil, fmt.Errorf("parse certificate request: %w", err)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("parse certificate request: %w", err)
	}
	key, ok := csr.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("parse certificate request: want an ECDSA key on P-256")
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("check signature of certificate request: %w", err)
	}
	return csr, nil
}

// ParseCertificates reads one or more PEM certificates, and nothing else.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	if len(text) > pemSizeMax {
		return nil, fmt.Errorf("parse certificates: %d bytes are over the limit of %d", len(text), pemSizeMax)
	}
	var certs []*x509.Certificate
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != pemCertificate {
			return nil, fmt.Errorf("parse certificates: unexpected PEM block %q", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse certificate %d: %w", len(certs)+1, err)
		}
		certs = append(certs, cert)
		text = rest
	}
	if len(certs) == 0 {
		return nil, errors.New("parse certificates: no PEM block found")
	}
	return certs, nil
}

func newSerial(rand io.Reader) (*big.Int, error) {
	bytes := make([]byte, (serialBits+7)/8)
	if _, err := io.ReadFull(rand, bytes); err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	bytes[0] &= 0x7f // positive, as RFC 5280 asks
	bytes[0] |= 0x40 // and never zero
	return new(big.Int).SetBytes(bytes), nil
}

// validDNSName accepts plain host names. A wildcard or an absolute name in
// an agent's certificate would let it speak for others.
func validDNSName(name string) bool {
	if name == "" || len(name) > dnsMax {
		return false
	}
	start := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '.' {
			c := name[i]
			letter := (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
			if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
			continue
		}
		if label := i - start; label == 0 || label > 63 || name[start] == '-' {
			return false
		}
		start = i + 1
	}
	return true
}

func withDefault(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append([]string{name}, names...)
}

func withLoopback(ips []net.IP) []net.IP {
	all := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, ip := range ips {
		if !slices.ContainsFunc(all, ip.Equal) {
			all = append(all, ip)
		}
	}
	return all
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func decodePEM(text []byte, kind string) ([]byte, error) {
	if len(text) > pemSizeMax {
		return nil, fmt.Errorf("%d bytes are over the limit of %d", len(text), pemSizeMax)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("no PEM block %q found", kind)
	}
	return block.Bytes, nil
}

func marshalKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return encodePEM(pemKey, der), nil
}

func parseKey(keyPEM []byte) (crypto.Signer, error) {
	der, err := decodePEM(keyPEM, pemKey)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

func publicEqual(a, b crypto.PublicKey) bool {
	equal, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && equal.Equal(b)
}
