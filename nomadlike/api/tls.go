package api

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// untrustedError says that the peer could not prove to be of the cluster.
type untrustedError struct{ reason string }

func (e *untrustedError) Error() string { return e.reason }

// clientTLS verifies agents by the cluster's CA alone: an agent is its
// certificate, not its address, so that address changes need no new
// certificates and no name is trusted because of a resolver.
func clientTLS(caPEM []byte, fingerprint string) (*tls.Config, error) {
	verify, err := verifier(caPEM, strings.ToLower(fingerprint))
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{"http/1.1"},
		InsecureSkipVerify: true, // host names are not checked; verify below runs on every handshake
		VerifyConnection:   verify,
	}, nil
}

func verifier(caPEM []byte, fingerprint string) (func(tls.ConnectionState) error, error) {
	if len(caPEM) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(caPEM) {
			return nil, structs.NewError(structs.CodeInvalid, "api.bad_ca")
		}
		return func(state tls.ConnectionState) error { return verifyChain(state.PeerCertificates, pool) }, nil
	}
	if fingerprint == "" {
		return nil, structs.NewError(structs.CodeInvalid, "api.no_ca")
	}
	if raw, err := hex.DecodeString(fingerprint); err != nil || len(raw) != sha256.Size {
		return nil, structs.NewError(structs.CodeInvalid, "api.bad_fingerprint", "fingerprint", fingerprint)
	}
	return func(state tls.ConnectionState) error {
		_, err := pinnedCA(state.PeerCertificates, fingerprint)
		return err
	}, nil
}

// pinnedCA finds the CA with the fingerprint in the peer's chain and checks
// that it signed the peer's certificate.
func pinnedCA(chain []*x509.Certificate, fingerprint string) (*x509.Certificate, error) {
	for _, cert := range chain {
		sum := sha256.Sum256(cert.Raw)
		if !cert.IsCA || hex.EncodeToString(sum[:]) != fingerprint {
			continue
		}
		pool := x509.NewCertPool()
		pool.AddCert(cert)
		return cert, verifyChain(chain, pool)
	}
	return nil, &untrustedError{"its certificate is not of the expected CA"}
}

func verifyChain(chain []*x509.Certificate, roots *x509.CertPool) error {
	if len(chain) == 0 {
		return &untrustedError{"it showed no certificate"}
	}
	if chain[0].IsCA {
		return &untrustedError{"it showed a CA instead of its own certificate"}
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots:       roots,
		CurrentTime: time.Now(),
		KeyUsages:   []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return &untrustedError{err.Error()}
	}
	return nil
}

// FetchCA connects to address (host:port), checks that the peer's CA has the
// fingerprint, and returns that CA as PEM: what a person's first login keeps.
func FetchCA(ctx context.Context, address, fingerprint string) ([]byte, error) {
	base, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	var found *x509.Certificate
	config, err := clientTLS(nil, fingerprint)
	if err != nil {
		return nil, err
	}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		ca, err := pinnedCA(state.PeerCertificates, strings.ToLower(fingerprint))
		found = ca
		return err
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: patienceAlone}, Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", base.Host)
	if err != nil {
		var untrusted *untrustedError
		if errors.As(err, &untrusted) {
			return nil, structs.NewError(structs.CodeUnauthorized, "api.untrusted_server", "address", base.Host, "reason", untrusted.Error()).Because(err)
		}
		return nil, structs.NewError(structs.CodeUnavailable, "api.unreachable", "address", base.Host, "reason", rootCause(err)).Because(err)
	}
	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("close connection to %s: %w", base.Host, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: found.Raw}), nil
}
