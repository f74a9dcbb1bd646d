package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// nobody is a well-formed id that nothing has.
const nobody = "00000000000000000000000000000000"

// ask sends one request to a route of the first server, with an id for {id},
// and returns the status.
func (t *target) ask(ctx context.Context, route api.Route, id, token string) (int, error) {
	var body io.Reader
	if route.Request != nil {
		body = strings.NewReader("{}")
	}
	path := strings.NewReplacer("{id}", id, "{name}", id, "{device}", "0").Replace(route.Pattern)
	request, err := http.NewRequestWithContext(ctx, route.Method, "https://"+t.servers[0]+path, body)
	if err != nil {
		return 0, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := t.browser(nil).Do(request)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close() // a stream is not waited for
	return response.StatusCode, nil
}

// browser trusts the cluster's CA and shows a certificate, if there is one.
func (t *target) browser(certificate *tls.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(t.ca)
	config := &tls.Config{RootCAs: roots, NextProtos: []string{auth.ALPNHTTP}}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

// raw sends text to the first server and returns the first line of the answer.
func (t *target) raw(ctx context.Context, text string) (string, error) {
	conn, err := secured(ctx, t.servers[0], careless())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

// opens reports whether a machine protocol lets a certificate in: it waits for
// what we have to say then.
func opens(ctx context.Context, addr string, config *tls.Config) (bool, error) {
	conn, err := secured(ctx, addr, config)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	_, err = conn.Read(make([]byte, 1))
	var waits net.Error
	if err == nil || errors.As(err, &waits) && waits.Timeout() { // gRPC greets, raft waits
		return true, nil
	}
	return false, err
}

// credentials are those of an agent, stolen from its data directory.
func credentials(dir string) (*auth.Credentials, error) {
	base := filepath.Join(dir, "identity")
	held, err := auth.ParseCredentials([]byte(read(filepath.Join(base, "agent.pem"))+"\n"), []byte(read(filepath.Join(base, "agent-key.pem"))+"\n"),
		[]byte(read(filepath.Join(base, "ca.pem"))+"\n"))
	if err != nil {
		return nil, fmt.Errorf("read credentials of %s: %w", dir, err)
	}
	return held, nil
}

// machineTLS speaks a machine protocol with a certificate, or without one.
func machineTLS(proto string, certificate *tls.Certificate, version uint16) *tls.Config {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{proto}, MaxVersion: version}
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	return config
}

// selfSigned is a certificate of a stranger that names him a server.
func selfSigned(uri *x509.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: uri.Subject, URIs: uri.URIs, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// stranger has nothing but the addresses.
func (t *target) stranger() {
	host := "Host: " + t.servers[0] + "\r\n"
	health := "GET /v1/agent/health HTTP/1.1\r\n" + host
	answers := func(text, status string) func(context.Context) error {
		return func(ctx context.Context) error {
			line, err := t.raw(ctx, text)
			if err != nil || !strings.Contains(line, " "+status) {
				return fmt.Errorf("answered %q, %v; want %s", line, err, status)
			}
			return nil
		}
	}
	t.line("6.1 every route without credentials", "an administrator's token reads more than 10 of them", func(ctx context.Context) error {
		read := 0
		for _, route := range api.Routes() {
			if route.Mutates() || route.Stream != api.StreamNone || strings.Contains(route.Pattern, "{") {
				continue
			}
			status, err := t.ask(ctx, route, nobody, t.adminToken)
			if err != nil {
				return err
			}
			if status == http.StatusOK {
				read++
			}
		}
		if read < 10 {
			return fmt.Errorf("%d routes are read", read)
		}
		return nil
	}, func(ctx context.Context) error {
		for _, route := range api.Routes() {
			if route.Verb == api.VerbHealth || route.Verb == api.VerbLogin {
				continue // open, or proven by a secret of their own
			}
			if status, err := t.ask(ctx, route, nobody, ""); err != nil || status != http.StatusUnauthorized {
				return fmt.Errorf("%s: status %d, %v", route.Name, status, err)
			}
		}
		return nil
	})
	for _, bad := range []struct{ name, text, status string }{
		{"6.16 a folded header", health + "X-A: b\r\n c\r\n\r\n", "400"},
		{"6.16 a bare line feed", health + "X-A: b\n\r\n", "400"},
		{"6.16 two lengths", "POST /v1/session HTTP/1.1\r\n" + host + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", "400"},
		{"6.16 a length and chunks", "POST /v1/session HTTP/1.1\r\n" + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"6.16 two codings", "POST /v1/session HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "400"},
		{"6.16 two hosts", health + "Host: evil\r\n\r\n", "400"},
		{"6.21 a foreign host", "GET /v1/agent/health HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"},
		{"6.19 a foreign origin", health + "Origin: https://evil.example\r\n\r\n", "403"},
		{"6.23 a header of 64 KiB", health + "X-A: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", "431"},
	} {
		t.line(bad.name, "the request without it is answered 200", answers(health+"Connection: close\r\n\r\n", "200"), answers(bad.text, bad.status))
	}
	anonymous, err := t.client("")
	if err != nil {
		fmt.Println("BROKEN ", err)
		t.broken++
		return
	}
	t.line("6.10 the setup secret again", "this secret made the first token", func(context.Context) error {
		if t.setup == "" {
			return errors.New("no secret was kept")
		}
		return nil
	}, func(ctx context.Context) error {
		for range 20 {
			if _, err := anonymous.BootstrapToken(ctx, t.setup); err == nil {
				return errors.New("another token was made")
			}
		}
		return nil
	})
	t.line("6.9 joining with invented secrets", "a good token's id is used, whose own secret joins nodes", func(ctx context.Context) error {
		_, err := t.admin.CreateJoinToken(ctx, api.JoinTokenRequest{Role: "server"})
		return err
	}, func(ctx context.Context) error {
		made, err := t.admin.CreateJoinToken(ctx, api.JoinTokenRequest{Role: "server"})
		if err != nil {
			return err
		}
		for _, role := range []auth.Role{auth.RoleServer, auth.RoleClient} {
			csr, _, err := auth.NewCSR(role, nobody, rand.Reader)
			if err != nil {
				return err
			}
			_, err = anonymous.Join(ctx, api.JoinRequest{TokenID: made.Token.ID, Secret: strings.Repeat("a", 32), Role: string(role), AgentID: nobody, Name: "evil", CSR: string(csr)})
			if err := refusedAs(err, structs.CodeUnauthorized, structs.CodeForbidden, structs.CodeInvalid); err != nil {
				return fmt.Errorf("as %s: %w", role, err)
			}
		}
		return nil
	})
	t.line("6.11 guessing tokens", "the holder of a good token at another address goes on", func(ctx context.Context) error {
		_, err := t.admin.SelfToken(ctx)
		return err
	}, func(ctx context.Context) error {
		slowed := false
		for range 200 {
			status, err := t.ask(ctx, api.Route{Method: http.MethodGet, Pattern: "/v1/jobs"}, "", "nl_user_"+strings.Repeat("a", 32))
			switch {
			case err != nil:
				return err
			case status == http.StatusTooManyRequests:
				slowed = true
			case status != http.StatusUnauthorized:
				return fmt.Errorf("status %d", status)
			}
		}
		if !slowed {
			return errors.New("200 guesses were answered without a pause")
		}
		return nil
	})
	server, err := credentials(t.server)
	if err != nil {
		fmt.Println("BROKEN ", err)
		t.broken++
		return
	}
	own := server.Certificate
	forged, err := selfSigned(own.Leaf)
	if err != nil {
		fmt.Println("BROKEN ", err)
		t.broken++
		return
	}
	for _, proto := range []string{auth.ALPNRPC, auth.ALPNRaft} {
		works := func(ctx context.Context) error {
			ok, err := opens(ctx, t.servers[0], machineTLS(proto, &own, 0))
			if !ok {
				return fmt.Errorf("not even a server is let in: %w", err)
			}
			return nil
		}
		for _, bad := range []struct {
			name   string
			config *tls.Config
		}{
			{"no certificate", machineTLS(proto, nil, 0)},
			{"a certificate of one's own with a server's name", machineTLS(proto, forged, 0)},
			{"TLS 1.2", machineTLS(proto, &own, tls.VersionTLS12)},
		} {
			t.line(fmt.Sprintf("6.49 %s with %s", proto, bad.name), "a server's certificate is let in", works, func(ctx context.Context) error {
				if ok, _ := opens(ctx, t.servers[0], bad.config); ok {
					return errors.New("it was let in")
				}
				return nil
			})
		}
	}
	t.line("6.45 gossip without the key, and with a wrong one", "members are counted before and after; the rogue node's line shows that such a packet is heard with the key", t.countMembers, func(ctx context.Context) error {
		before := t.members
		for _, key := range [][]byte{nil, bytes.Repeat([]byte{7}, 32)} {
			liar, err := forge(nobody, t.bind, key, server.Self.Cluster, net.JoinHostPort(t.bind, "1"))
			if err != nil {
				return err
			}
			for range 5 {
				_, _ = liar.Join(t.gossip)
			}
			_ = liar.Shutdown()
		}
		if err := t.countMembers(ctx); err != nil || t.members != before {
			return fmt.Errorf("%d members, were %d: %v", t.members, before, err)
		}
		return nil
	})
}

// countMembers counts everybody that gossip knows.
func (t *target) countMembers(ctx context.Context) error {
	list, err := t.admin.Members(ctx)
	if err != nil {
		return err
	}
	t.members = len(list.Members)
	return nil
}
