package directory

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/go-ldap/ldap/v3"
)

var errMuch = errors.New("the directory answers with more than a sign-in needs")

// conn is a connection to one server, which ends with the time of one sign-in.
type conn struct {
	*ldap.Conn
	stop func() bool
}

func (c *conn) close() {
	c.stop()
	_ = c.Conn.Close()
}

// dial connects to the first server that answers.
func (d *Directory) dial(ctx context.Context) (*conn, error) {
	var failures []error
	for _, server := range d.config.Servers {
		c, err := d.dialOne(ctx, server)
		if err == nil {
			return c, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", server, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(failures...)
}

func (d *Directory) dialOne(ctx context.Context, server string) (*conn, error) {
	at, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	secured := at.Scheme == "ldaps"
	port := at.Port()
	if port == "" {
		port = "389"
		if secured {
			port = "636"
		}
	}
	trusted, err := d.trust(at.Hostname())
	if err != nil {
		return nil, err
	}
	// Each server has its share of the time, so that one that hangs leaves some to the next.
	dialer := net.Dialer{Timeout: d.config.Timeout / 2}
	plain, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(at.Hostname(), port))
	if err != nil {
		return nil, err
	}
	if until, ok := ctx.Deadline(); ok {
		if err := plain.SetDeadline(until); err != nil {
			return nil, errors.Join(err, plain.Close())
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = plain.Close() })
	var through net.Conn = &bounded{Conn: plain, left: answerMax}
	if secured {
		over := tls.Client(through, trusted)
		if err := over.HandshakeContext(ctx); err != nil {
			stop()
			return nil, errors.Join(err, plain.Close())
		}
		through = over
	}
	c := &conn{ldap.NewConn(through, secured), stop}
	c.SetTimeout(d.config.Timeout)
	c.Start()
	if !secured && d.config.StartTLS {
		if err := c.StartTLS(trusted); err != nil {
			c.close()
			return nil, err
		}
		secured = true
	}
	if !secured && !d.config.Insecure {
		c.close()
		return nil, errors.New("the connection is not encrypted")
	}
	return c, nil
}

// trust is by whom a server's certificate goes.
func (d *Directory) trust(host string) (*tls.Config, error) {
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if d.config.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(d.config.CAFile)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", d.config.CAFile)
	}
	return config, nil
}

// bind proves a password. It must not be empty: the caller sees to that, and the
// library refuses it once more.
func (c *conn) bind(dn, password string) error { return c.Bind(dn, password) }

// search returns entries, at most so many. That there are more is no error here; that a
// server keeps some back is. Referrals among them are left alone.
func (c *conn) search(base string, scope int, filter string, most int, attributes []string) ([]*ldap.Entry, error) {
	var asked []string
	for _, name := range attributes {
		if name != "" {
			asked = append(asked, name)
		}
	}
	const seconds = 10
	result, err := c.Search(ldap.NewSearchRequest(base, scope, ldap.NeverDerefAliases, most, seconds, false, filter, asked, nil))
	if ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) && result != nil && len(result.Entries) >= most {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return result.Entries, nil
}

// bounded ends a connection on which more is answered than a sign-in needs.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errMuch
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
