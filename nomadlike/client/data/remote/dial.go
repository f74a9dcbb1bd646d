package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	headerBytesMax   = 64 << 10
	redirectsMax     = 5
	connectionsMax   = 64 // to one host; workers are fewer
	idleTimeout      = 30 * time.Second
)

// errRefused is returned when a server leads to where it may not.
var errRefused = errors.New("not allowed by the storage's settings")

// transport makes connections to a server, and to nothing else.
func transport(server *Server, base *url.URL) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if server.CAFile != "" {
		pem, err := os.ReadFile(server.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read %s: no certificate in it", server.CAFile)
		}
	}
	own := loopbackName(base.Hostname())
	dialer := &net.Dialer{Timeout: dialTimeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return dialable(address, own)
	}}
	return &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, TLSClientConfig: config, TLSHandshakeTimeout: handshakeTimeout,
		// Many connections are faster than one with many streams.
		ForceAttemptHTTP2: false, DisableCompression: true, MaxResponseHeaderBytes: headerBytesMax,
		MaxConnsPerHost: connectionsMax, MaxIdleConnsPerHost: connectionsMax, IdleConnTimeout: idleTimeout,
		ResponseHeaderTimeout: server.StallMax,
	}, nil
}

// loopbackName reports whether an administrator has named this machine itself.
func loopbackName(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// dialable reports whether a connection may go to an address, which is what a
// name has led to. Private networks are where most storages are.
func dialable(address string, loopback bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, errRefused)
	}
	ip := at.Addr().Unmap()
	switch {
	case ip.IsLoopback() && loopback:
		return nil
	case ip.IsLoopback(), ip.IsUnspecified(), ip.IsMulticast(), ip.IsLinkLocalUnicast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("dial %s: %w", address, errRefused)
	}
	return nil
}

// redirects decides where a web server may lead to: its own host, or one that
// the administrator has named; never from TLS to plain text, and to nobody
// with the credentials of another.
func redirects(server *Server, base *url.URL) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, before []*http.Request) error {
		if len(before) > redirectsMax {
			return fmt.Errorf("more than %d redirects: %w", redirectsMax, errRefused)
		}
		same := strings.EqualFold(next.URL.Host, base.Host)
		allowed := same
		for _, host := range server.RedirectHosts {
			allowed = allowed || strings.EqualFold(host, next.URL.Host)
		}
		secure := next.URL.Scheme == "https" || next.URL.Scheme == "http" && base.Scheme == "http"
		if !allowed || !secure || next.URL.User != nil {
			return fmt.Errorf("redirect to %s://%s: %w", next.URL.Scheme, next.URL.Host, errRefused)
		}
		if !same || next.URL.Scheme != base.Scheme {
			next.Header.Del("Authorization")
		}
		next.Header.Del("Referer")
		return nil
	}
}
