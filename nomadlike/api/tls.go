package api

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// untrustedError says that the peer could not prove to be a server of the
// cluster.
type untrustedError struct{ cause error }

func (e *untrustedError) Error() string { return e.cause.Error() }
func (e *untrustedError) Unwrap() error { return e.cause }

// clientTLS lets only a server of the cluster answer, as its certificate
// proves: it is its certificate, not its address, so that address changes
// need no new certificates and no name is trusted because of a resolver. A
// node's certificate is of the same CA and is refused.
func clientTLS(caPEM []byte, fingerprint string, learn func(caPEM []byte)) (*tls.Config, error) {
	if len(caPEM) == 0 {
		return pinnedTLS(fingerprint, func(*x509.Certificate, auth.Identity) {})
	}
	trust, err := auth.NewTrust("", caPEM)
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "api.bad_ca").Because(err)
	}
	if learn == nil {
		return tellUntrusted(auth.CLITLS(trust, time.Now)), nil
	}
	return tellUntrusted(auth.LearningTLS(trust, time.Now, func(ca *x509.Certificate) { learn(auth.CertificatePEM(ca)) })), nil
}

// pinnedTLS knows of the cluster only its CA's fingerprint.
func pinnedTLS(fingerprint string, accept func(*x509.Certificate, auth.Identity)) (*tls.Config, error) {
	if fingerprint == "" {
		return nil, structs.NewError(structs.CodeInvalid, "api.no_ca")
	}
	fingerprint = strings.ToLower(fingerprint)
	if raw, err := hex.DecodeString(fingerprint); err != nil || len(raw) != sha256.Size {
		return nil, structs.NewError(structs.CodeInvalid, "api.bad_fingerprint", "fingerprint", fingerprint)
	}
	return tellUntrusted(auth.PinnedTLS(fingerprint, time.Now, accept)), nil
}

// tellUntrusted marks refusals of the peer, so that they are told apart from
// a connection that failed.
func tellUntrusted(config *tls.Config) *tls.Config {
	verify := config.VerifyConnection
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if err := verify(state); err != nil {
			return &untrustedError{err}
		}
		return nil
	}
	return config
}

// refusedPeer tells a person about a peer that is not to be trusted, nil when
// err is something else.
func refusedPeer(host string, err error) error {
	var untrusted *untrustedError
	switch {
	case !errors.As(err, &untrusted):
		return nil
	case errors.Is(err, auth.ErrWrongRole):
		return structs.NewError(structs.CodeUnauthorized, "api.not_a_server", "address", host).Because(err)
	}
	return structs.NewError(structs.CodeUnauthorized, "api.untrusted_server", "address", host, "reason", untrusted.Error()).Because(err)
}

// FetchCA connects to address (host:port), checks that a server answers whose
// CA has the fingerprint, or followed one that has, and returns the present CA as
// PEM: what a person's first login keeps.
func FetchCA(ctx context.Context, address, fingerprint string) ([]byte, error) {
	base, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	var found *x509.Certificate
	config, err := pinnedTLS(fingerprint, func(ca *x509.Certificate, _ auth.Identity) { found = ca })
	if err != nil {
		return nil, err
	}
	config.ServerName = auth.ServerName // nothing is told here, so a node may pass it on
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: patienceAlone}, Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", base.Host)
	if err != nil {
		if refused := refusedPeer(base.Host, err); refused != nil {
			return nil, refused
		}
		return nil, structs.NewError(structs.CodeUnavailable, "api.unreachable", "address", base.Host, "reason", rootCause(err)).Because(err)
	}
	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("close connection to %s: %w", base.Host, err)
	}
	return auth.CertificatePEM(found), nil
}
