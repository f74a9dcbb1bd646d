package directories

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certified is a folder of a test with the certificate of a server.
type certified struct {
	t   testing.TB
	Dir string // has cert.pem, which is its own authority, key.pem, and other.pem of another authority
}

// certify makes the certificate of a server at an address.
func certify(t testing.TB, at net.IP) certified {
	t.Helper()
	s := certified{t: t, Dir: t.TempDir()}
	for _, name := range []string{"other", "cert"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{at}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		s.Write(name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o600)
		s.Write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), 0o600)
	}
	return s
}

// CA is the file of the authority that the server's certificate goes by.
func (s *certified) CA() string { return filepath.Join(s.Dir, "cert.pem") }

// Write writes a file into the folder, and returns its path.
func (s *certified) Write(name, text string, mode os.FileMode) string {
	s.t.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// trust has the server's certificate be trusted.
func (s *certified) trust() *tls.Config {
	s.t.Helper()
	text, err := os.ReadFile(s.CA())
	if err != nil {
		s.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}
