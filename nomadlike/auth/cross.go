package auth

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"time"
)

// CrossMax bounds the certificates of a chain that are looked at for a way from
// a CA that is trusted to the one that signed: a peer must not make us check
// signatures without end.
const CrossMax = 6

// Cross certifies the CA that takes the place of this one, until end: whoever
// trusts only this CA, and is shown that certificate, follows to the new one.
// The new CA's own certificate stands beside it; both name the same key.
func (ca *CA) Cross(next *x509.Certificate, end time.Time, rand io.Reader, now time.Time) (*x509.Certificate, error) {
	if !next.IsCA || ClusterOf(next) != ca.Cluster {
		return nil, fmt.Errorf("certify the next CA: %w: it is of %q", ErrWrongCluster, ClusterOf(next))
	}
	for _, bound := range []time.Time{ca.Certificate.NotAfter, next.NotAfter} {
		if end.After(bound) {
			end = bound
		}
	}
	serial, err := newSerial(rand)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		RawSubject:            next.RawSubject,
		SubjectKeyId:          next.SubjectKeyId,
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		URIs:                  []*url.URL{clusterURI(ca.Cluster)},
	}
	der, err := x509.CreateCertificate(rand, template, ca.Certificate, next.PublicKey, ca.key)
	if err != nil {
		return nil, fmt.Errorf("certify the next CA: %w", err)
	}
	return x509.ParseCertificate(der)
}

// CertificatePEM is the PEM text of certificates, one after the other.
func CertificatePEM(certs ...*x509.Certificate) []byte {
	var text []byte
	for _, cert := range certs {
		text = append(text, encodePEM(pemCertificate, cert.Raw)...)
	}
	return text
}

// follow finds the CAs that a chain leads to from those that are trusted: each
// was certified by the one before, whose place it took (RFC 4210 §4.4 calls these
// certificates "new with old"). Nil when it leads nowhere.
//
// The CAs of this program may not have CAs below them, so that crypto/x509 itself
// would refuse such a chain: what is followed here is not a CA below another, but
// one in its place, with the same rights over the same cluster.
func (t *Trust) follow(chain []*x509.Certificate, now time.Time) *x509.CertPool {
	known, found := append([]*x509.Certificate(nil), t.certs...), x509.NewCertPool()
	left := append([]*x509.Certificate(nil), chain[:min(len(chain), CrossMax)]...)
	any := false
	for again := true; again; {
		again = false
		for i, cert := range left {
			if cert == nil || !cert.IsCA || now.Before(cert.NotBefore) || now.After(cert.NotAfter) || ClusterOf(cert) != t.Cluster || !certifiedBy(cert, known) {
				continue
			}
			left[i], again = nil, true
			known, any = append(known, cert), true
			found.AddCert(cert)
		}
	}
	if !any {
		return nil
	}
	return found
}

// certifiedBy reports whether one of the issuers made cert, and cert is of
// another key than it: a CA's certificate of itself says nothing.
func certifiedBy(cert *x509.Certificate, issuers []*x509.Certificate) bool {
	for _, issuer := range issuers {
		if !bytes.Equal(cert.RawIssuer, issuer.RawSubject) || bytes.Equal(cert.RawSubjectPublicKeyInfo, issuer.RawSubjectPublicKeyInfo) {
			continue
		}
		if cert.CheckSignatureFrom(issuer) == nil {
			return true
		}
	}
	return false
}

// Issuer is the CA of the trust that signed a certificate, nil when none did.
func (t *Trust) Issuer(leaf *x509.Certificate) *x509.Certificate {
	for _, cert := range t.certs {
		if leaf.CheckSignatureFrom(cert) == nil {
			return cert
		}
	}
	return nil
}

// issuerShown is the CA's own certificate in a chain whose key signed the leaf.
func issuerShown(chain []*x509.Certificate) *x509.Certificate {
	for _, cert := range chain[1:min(len(chain), CrossMax)] {
		if cert.IsCA && cert.CheckSignatureFrom(cert) == nil && chain[0].CheckSignatureFrom(cert) == nil {
			return cert
		}
	}
	return nil
}

// Followed is closed once a peer was believed because of a Cross: the cluster has
// another CA than the ones that are trusted here.
func (t *Trust) Followed() <-chan struct{} { return t.followed }

// HasFollowed reports whether Followed is closed.
func (t *Trust) HasFollowed() bool {
	select {
	case <-t.followed:
		return true
	default:
		return false
	}
}

func (t *Trust) tellFollowed() { t.once.Do(func() { close(t.followed) }) }
