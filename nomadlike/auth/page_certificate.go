package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"strings"
	"time"
)

// ValidPageDomain reports whether IssuePages makes a certificate for a domain: two labels
// at least, in lower case, and room for a label of 63 bytes before them.
func ValidPageDomain(domain string) bool {
	const roomMax = 253 - 64
	return len(domain) <= roomMax && strings.Contains(domain, ".") && strings.ToLower(domain) == domain && validDNSName(domain)
}

// IssuePages makes a certificate for all names one label below a domain, for browsers. It
// names no agent, so it is of no use among them.
func (ca *CA) IssuePages(domain string, rand io.Reader, now time.Time) (*tls.Certificate, error) {
	if !ValidPageDomain(domain) {
		return nil, fmt.Errorf("sign certificate of pages: %q is no domain", domain)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand)
	if err != nil {
		return nil, fmt.Errorf("make key of pages: %w", err)
	}
	serial, err := newSerial(rand)
	if err != nil {
		return nil, err
	}
	end := now.Add(AgentTTL)
	if end.After(ca.Certificate.NotAfter) {
		end = ca.Certificate.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "pages of tasks"},
		NotBefore: now.Add(-clockSkew), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		DNSNames: []string{"*." + domain},
	}
	der, err := x509.CreateCertificate(rand, template, ca.Certificate, key.Public(), ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of pages: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read certificate of pages: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, ca.Certificate.Raw}, PrivateKey: key, Leaf: leaf}, nil
}
