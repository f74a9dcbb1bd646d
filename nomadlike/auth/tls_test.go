package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

const (
	testCluster = "c0ffee"
	serverID    = "51"
	clientID    = "c1"
)

func newTestCA(t testing.TB, cluster string) *CA {
	t.Helper()
	ca, err := NewCA(cluster, rand.Reader, testNow)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// issue makes credentials that trust the CA that signed them.
func issue(t testing.TB, ca *CA, grant Grant, now time.Time) *Credentials {
	t.Helper()
	issued, err := ca.IssueAgent(grant, rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := ParseCredentials(issued.ChainPEM, issued.KeyPEM, ca.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	return credentials
}

func constant(c *Credentials) func() *Credentials { return func() *Credentials { return c } }
func clockAt(now time.Time) func() time.Time      { return func() time.Time { return now } }

func TestCAThroughFiles(t *testing.T) {
	ca := newTestCA(t, testCluster)
	key, err := ca.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseCA(ca.CertificatePEM(), key, "")
	if err != nil {
		t.Fatal(err)
	}
	if again.Cluster != testCluster || again.Fingerprint() != ca.Fingerprint() || !isHex(ca.Fingerprint(), 32) {
		t.Errorf("CA changed: %s %s", again.Cluster, again.Fingerprint())
	}
	other := newTestCA(t, testCluster)
	if _, err := ParseCA(other.CertificatePEM(), key, ""); err == nil {
		t.Error("accepted a key of another CA")
	}
	if _, err := ParseCA(ca.CertificatePEM(), key, "another"); !errors.Is(err, ErrWrongCluster) {
		t.Errorf("CA of another cluster: %v", err)
	}
	agent, err := ca.IssueAgent(Grant{Role: RoleServer, ID: serverID}, rand.Reader, testNow)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseCA(agent.ChainPEM, agent.KeyPEM, ""); err == nil {
		t.Error("an agent's certificate passed for a CA")
	}
}

func TestSignCSR(t *testing.T) {
	ca := newTestCA(t, testCluster)
	csr, key, err := NewCSR(RoleServer, "i-wish-i-were-server", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	grant := Grant{Role: RoleClient, ID: clientID, DNSNames: []string{"gpu-01.lab"}, IPs: []net.IP{net.IPv4(10, 0, 0, 7)}}
	chain, err := ca.SignCSR(csr, grant, rand.Reader, testNow)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := ParseCredentials(chain, key, ca.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	if want := (Identity{testCluster, RoleClient, clientID}); credentials.Self != want {
		t.Errorf("certificate is of %s, want %s", credentials.Self, want)
	}
	leaf := credentials.Certificate.Leaf
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "gpu-01.lab", "10.0.0.7"} {
		if err := leaf.VerifyHostname(host); err != nil {
			t.Errorf("not good for https://%s: %v", host, err)
		}
	}
	if err := leaf.VerifyHostname("gpu-02.lab"); err == nil {
		t.Error("good for a name that was not granted")
	}
	if got := credentials.ExpiresAt(); !got.Equal(testNow.Add(AgentTTL)) {
		t.Errorf("expires at %s", got)
	}
	if at := credentials.RenewAt(); at.Before(testNow.Add(AgentTTL/2-clockSkew)) || at.After(testNow.Add(AgentTTL/2)) {
		t.Errorf("renews at %s", at)
	}
}

func TestSigningRefuses(t *testing.T) {
	ca := newTestCA(t, testCluster)
	good, _, err := NewCSR(RoleClient, clientID, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	grants := map[string]Grant{
		"no role":        {ID: "x"},
		"unknown role":   {Role: "admin", ID: "x"},
		"no id":          {Role: RoleClient},
		"slash in id":    {Role: RoleClient, ID: "a/b"},
		"dots":           {Role: RoleClient, ID: ".."},
		"escape in id":   {Role: RoleClient, ID: "a%2fb"},
		"upper-case id":  {Role: RoleClient, ID: "A"},
		"long id":        {Role: RoleClient, ID: strings.Repeat("a", 65)},
		"wildcard name":  {Role: RoleClient, ID: "x", DNSNames: []string{"*.lab"}},
		"absolute name":  {Role: RoleClient, ID: "x", DNSNames: []string{"lab."}},
		"NUL in name":    {Role: RoleClient, ID: "x", DNSNames: []string{"lab\x00.org"}},
		"too many names": {Role: RoleClient, ID: "x", DNSNames: make([]string, 17)},
	}
	for name, grant := range grants {
		if _, err := ca.SignCSR(good, grant, rand.Reader, testNow); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
	bad := map[string][]byte{
		"empty":       nil,
		"no PEM":      []byte("hello"),
		"certificate": ca.CertificatePEM(),
		"huge":        bytes.Repeat([]byte("a"), 1<<20),
		"forged":      forgedCSR(t),
		"P-384":       otherCSR(t, ecdsaKey(t, elliptic.P384())),
		"RSA":         otherCSR(t, rsaKey(t)),
	}
	for name, csr := range bad {
		if _, err := ca.SignCSR(csr, Grant{Role: RoleClient, ID: "x"}, rand.Reader, testNow); err == nil {
			t.Errorf("request that is %s: signed", name)
		}
	}
}

// A certificate of a clock that stands before the CA began would be good at no
// instant: its holder could never renew it.
func TestSigningBeforeTheCABeganIsRefused(t *testing.T) {
	ca := newTestCA(t, testCluster)
	csr, _, err := NewCSR(RoleClient, clientID, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	began := ca.Certificate.NotBefore
	for clock, wrong := range map[time.Time]string{
		began.Add(-time.Second):    "the clock of this machine says",
		began.Add(-2 * AgentTTL):   "the clock of this machine says",
		began:                      "",
		began.Add(365 * time.Hour): "",
	} {
		_, err := ca.SignCSR(csr, Grant{Role: RoleClient, ID: clientID}, rand.Reader, clock)
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("signed at %s: %v, want %q", clock, err, wrong)
		}
	}
}

func ecdsaKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func otherCSR(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return encodePEM(pemRequest, der)
}

// forgedCSR carries a key that its sender cannot prove to hold.
func forgedCSR(t *testing.T) []byte {
	t.Helper()
	csr, _, err := NewCSR(RoleClient, clientID, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := decodePEM(csr, pemRequest)
	if err != nil {
		t.Fatal(err)
	}
	der[len(der)-1] ^= 1 // in the signature
	return encodePEM(pemRequest, der)
}

func TestParseIdentity(t *testing.T) {
	parse := func(texts ...string) (Identity, error) {
		cert := &x509.Certificate{}
		for _, text := range texts {
			uri, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			cert.URIs = append(cert.URIs, uri)
		}
		return ParseIdentity(cert)
	}
	got, err := parse("nomadlike://c1/server/ab-12")
	if err != nil || got != (Identity{"c1", RoleServer, "ab-12"}) {
		t.Errorf("parsed %+v, %v", got, err)
	}
	for _, text := range []string{
		"nomadlike://c1/server/", "nomadlike://c1/server", "nomadlike://c1/", "nomadlike:///server/x", "nomadlike://c1/ca",
		"spiffe://c1/server/x", "nomadlike://c1/root/x", "nomadlike://c1/server/x/y", "nomadlike://c1//server/x",
		"nomadlike://user@c1/server/x", "nomadlike://c1:80/server/x", "nomadlike://c1/server/x?y", "nomadlike://c1/server/x#y",
		"nomadlike://c1/server/%78", "nomadlike://c1/server/a%2fb", "nomadlike:server/x", "NOMADLIKE://C1/server/x",
	} {
		if got, err := parse(text); !errors.Is(err, ErrNoIdentity) {
			t.Errorf("%s: parsed as %+v, %v", text, got, err)
		}
	}
	if _, err := parse(); !errors.Is(err, ErrNoIdentity) {
		t.Errorf("no URI: %v", err)
	}
	if _, err := parse("nomadlike://c1/server/x", "nomadlike://c1/client/x"); !errors.Is(err, ErrNoIdentity) {
		t.Errorf("two URIs: %v", err)
	}
}

// shake runs one TLS handshake over loopback, then lets the client say its
// secret, and returns both sides' errors and what the server heard.
func shake(t *testing.T, server, client *tls.Config) (heard string, serverErr, clientErr error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	type outcome struct {
		err   error
		heard string
	}
	done := make(chan outcome, 1)
	go func() {
		raw, err := listener.Accept()
		if err != nil {
			done <- outcome{err: err}
			return
		}
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(time.Minute))
		conn := tls.Server(raw, server)
		if err := conn.Handshake(); err != nil {
			done <- outcome{err: err}
			return
		}
		data, err := io.ReadAll(conn)
		done <- outcome{err, string(data)}
	}()
	raw, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(time.Minute))
	conn := tls.Client(raw, client)
	if clientErr = conn.Handshake(); clientErr == nil {
		_, clientErr = conn.Write([]byte("secret"))
		_ = conn.CloseWrite()
		if _, err := io.Copy(io.Discard, conn); clientErr == nil {
			clientErr = err
		}
	}
	raw.Close()
	got := <-done
	return got.heard, got.err, clientErr
}

func TestHandshakes(t *testing.T) {
	ca := newTestCA(t, testCluster)
	twin := newTestCA(t, testCluster) // the same cluster's name, another key
	foreign := newTestCA(t, "beef")
	server := issue(t, ca, Grant{Role: RoleServer, ID: serverID}, testNow)
	client := issue(t, ca, Grant{Role: RoleClient, ID: clientID}, testNow)
	renewedCA := newTestCA(t, testCluster)
	both, err := NewTrust("", append(ca.CertificatePEM(), renewedCA.CertificatePEM()...))
	if err != nil {
		t.Fatal(err)
	}
	rotating := *server
	rotating.Trust = both
	trusting := func(own, trusted *Credentials) *Credentials {
		mixed := *own
		mixed.Trust = trusted.Trust
		return &mixed
	}
	later := testNow.Add(AgentTTL + time.Second)
	dial := func(c *Credentials, proto string, expect Expect) *tls.Config {
		return ClientTLS(constant(c), proto, expect, clockAt(testNow))
	}
	without := func(config *tls.Config, change func(*tls.Config)) *tls.Config {
		change(config)
		return config
	}
	twinClient := trusting(issue(t, twin, Grant{Role: RoleServer, ID: serverID}, testNow), client)
	cases := []struct {
		name   string
		server *Credentials
		at     time.Time // the server's clock; zero means testNow
		client *tls.Config
		want   error // what the side that refuses reports; nil for success
	}{
		{"node calls rpc", server, testNow, dial(client, ALPNRPC, Expect{}), nil},
		{"node calls the server it means", server, testNow, dial(client, ALPNRPC, Expect{RoleServer, serverID}), nil},
		{"server calls raft", server, testNow, dial(server, ALPNRaft, Expect{Role: RoleServer}), nil},
		{"node calls raft", server, testNow, dial(client, ALPNRaft, Expect{}), ErrWrongRole},
		{
			"node calls raft and rpc at once", server, testNow,
			without(dial(client, ALPNRPC, Expect{}), func(c *tls.Config) { c.NextProtos = []string{ALPNRPC, ALPNRaft} }), ErrWrongRole,
		},
		{"a node answers as server", client, testNow, dial(client, ALPNRPC, Expect{Role: RoleServer}), ErrWrongRole},
		{"another server answers", server, testNow, dial(client, ALPNRPC, Expect{ID: "52"}), ErrWrongPeer},
		{
			"no certificate for rpc", server, testNow,
			without(dial(client, ALPNRPC, Expect{}), func(c *tls.Config) { c.GetClientCertificate = nil }), errAny,
		},
		{
			"TLS 1.2 for rpc", server, testNow,
			without(dial(client, ALPNRPC, Expect{}), func(c *tls.Config) { c.MinVersion, c.MaxVersion = 0, tls.VersionTLS12 }), errAny,
		},
		{"expired certificate", server, later, dial(client, ALPNRPC, Expect{}), ErrUntrusted},
		{"certificate not yet valid", server, testNow.Add(-2 * clockSkew), dial(client, ALPNRPC, Expect{}), ErrUntrusted},
		{"certificate of a twin CA", server, testNow, dial(twinClient, ALPNRPC, Expect{}), ErrUntrusted},
		{
			"server of another cluster", issue(t, foreign, Grant{Role: RoleServer, ID: serverID}, testNow), testNow,
			dial(client, ALPNRPC, Expect{}), ErrUntrusted,
		},
		{"http without certificate", server, testNow, CLITLS(server.Trust, clockAt(testNow)), nil},
		{"http at a node", client, testNow, CLITLS(server.Trust, clockAt(testNow)), ErrWrongRole},
		{"http with certificate", server, testNow, dial(client, ALPNHTTP, Expect{}), nil},
		{"http with a twin CA's certificate", server, testNow, dial(twinClient, ALPNHTTP, Expect{}), ErrUntrusted},
		{
			"http over TLS 1.2", server, testNow,
			without(CLITLS(server.Trust, clockAt(testNow)), func(c *tls.Config) { c.MinVersion, c.MaxVersion = 0, tls.VersionTLS12 }), nil,
		},
		{
			"hello without protocol is http", server, testNow,
			without(CLITLS(server.Trust, clockAt(testNow)), func(c *tls.Config) { c.NextProtos = nil }), nil,
		},
		{"unknown protocol", server, testNow, dial(client, "smtp", Expect{}), errAny},
		{"during a CA rotation, old certificate", &rotating, testNow, dial(client, ALPNRPC, Expect{}), nil},
		{
			"during a CA rotation, new certificate", &rotating, testNow,
			dial(trusting(issue(t, renewedCA, Grant{Role: RoleClient, ID: clientID}, testNow), server), ALPNRPC, Expect{}), nil,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			heard, serverErr, clientErr := shake(t, ServerTLS(constant(c.server), clockAt(c.at)), c.client)
			if c.want == nil {
				if serverErr != nil || clientErr != nil || heard != "secret" {
					t.Fatalf("server: %v, client: %v, heard %q", serverErr, clientErr, heard)
				}
				return
			}
			if heard != "" {
				t.Errorf("the server heard %q", heard)
			}
			if serverErr == nil && clientErr == nil {
				t.Fatal("nobody refused")
			}
			if !errors.Is(c.want, errAny) && !errors.Is(serverErr, c.want) && !errors.Is(clientErr, c.want) {
				t.Errorf("want %v; server: %v, client: %v", c.want, serverErr, clientErr)
			}
		})
	}
}

// errAny stands for refusals that the TLS library itself words.
var errAny = errors.New("any refusal")

func TestSelfSignedPeersAreRefused(t *testing.T) {
	ca := newTestCA(t, testCluster)
	server := issue(t, ca, Grant{Role: RoleServer, ID: serverID}, testNow)
	key := ecdsaKey(t, elliptic.P256())
	serial, err := newSerial(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(time.Hour),
		URIs: []*url.URL{Identity{testCluster, RoleServer, serverID}.uri()},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	self := *server
	self.Certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	heard, serverErr, _ := shake(t, ServerTLS(constant(server), clockAt(testNow)),
		ClientTLS(constant(&self), ALPNRaft, Expect{}, clockAt(testNow)))
	if !errors.Is(serverErr, ErrUntrusted) || heard != "" {
		t.Errorf("self-signed client: %v, heard %q", serverErr, heard)
	}
	heard, _, clientErr := shake(t, ServerTLS(constant(&self), clockAt(testNow)),
		ClientTLS(constant(server), ALPNRPC, Expect{}, clockAt(testNow)))
	if !errors.Is(clientErr, ErrUntrusted) || heard != "" {
		t.Errorf("self-signed server: %v, heard %q", clientErr, heard)
	}
}

func TestPinnedJoinerTellsNoSecretToOthers(t *testing.T) {
	ca := newTestCA(t, testCluster)
	attacker := newTestCA(t, testCluster)
	real := issue(t, ca, Grant{Role: RoleServer, ID: serverID}, testNow)
	node := issue(t, ca, Grant{Role: RoleClient, ID: clientID}, testNow)
	false_ := issue(t, attacker, Grant{Role: RoleServer, ID: serverID}, testNow)
	// The man in the middle also shows the real CA, which is public.
	borrowed := *false_
	borrowed.Certificate.Certificate = append(append([][]byte{}, false_.Certificate.Certificate...), ca.Certificate.Raw)

	var accepted []Identity
	pinned := func() *tls.Config {
		return PinnedTLS(ca.Fingerprint(), clockAt(testNow), func(_ *x509.Certificate, peer Identity) { accepted = append(accepted, peer) })
	}
	for name, peer := range map[string]*Credentials{"another CA": false_, "another CA showing ours": &borrowed, "a node": node} {
		heard, _, err := shake(t, ServerTLS(constant(peer), clockAt(testNow)), pinned())
		if err == nil || heard != "" || accepted != nil {
			t.Errorf("%s: error %v, heard %q, accepted %v", name, err, heard, accepted)
		}
	}
	heard, serverErr, err := shake(t, ServerTLS(constant(real), clockAt(testNow)), pinned())
	if serverErr != nil || err != nil || heard != "secret" || len(accepted) != 1 || accepted[0] != real.Self {
		t.Errorf("the real server: %v, %v, heard %q, accepted %v", serverErr, err, heard, accepted)
	}
}

func TestRenewedCredentialsTakeEffect(t *testing.T) {
	ca := newTestCA(t, testCluster)
	current := issue(t, ca, Grant{Role: RoleServer, ID: serverID, TTL: time.Minute}, testNow)
	client := issue(t, ca, Grant{Role: RoleClient, ID: clientID}, testNow)
	now := testNow
	config := ServerTLS(func() *Credentials { return current }, func() time.Time { return now })
	dial := ClientTLS(constant(client), ALPNRPC, Expect{}, func() time.Time { return now })
	if _, serverErr, clientErr := shake(t, config, dial); serverErr != nil || clientErr != nil {
		t.Fatalf("before: %v, %v", serverErr, clientErr)
	}
	now = now.Add(2 * time.Minute)
	if _, _, clientErr := shake(t, config, dial); !errors.Is(clientErr, ErrUntrusted) {
		t.Fatalf("expired server: %v", clientErr)
	}
	current = issue(t, ca, Grant{Role: RoleServer, ID: serverID}, now)
	if _, serverErr, clientErr := shake(t, config, dial); serverErr != nil || clientErr != nil {
		t.Fatalf("after: %v, %v", serverErr, clientErr)
	}
}
