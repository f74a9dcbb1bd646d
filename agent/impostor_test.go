package agent

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// impostor stands on the path with a real certificate of the cluster that is
// not the one it should be, speaks every protocol, and keeps what it is told.
type impostor struct {
	addr  string
	calls atomic.Int64 // connections
	told  atomic.Int64 // bytes beneath TLS
}

func startImpostor(t testing.TB, certificate tls.Certificate) *impostor {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &impostor{addr: listener.Addr().String()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			i.calls.Add(1)
			go i.listen(raw, certificate)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return i
}

func (i *impostor) listen(raw net.Conn, certificate tls.Certificate) {
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(time.Minute))
	conn := tls.Server(raw, &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert,
		NextProtos: []string{auth.ALPNHTTP, auth.ALPNRPC, auth.ALPNRaft},
	})
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		i.told.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// A node's certificate is of the cluster's CA and opens nothing: whoever is
// root on a node and stands on the path hears no token, no join secret, no
// registration and no entry of the log, whichever road is taken.
func TestNodesCertificateIsToldNothing(t *testing.T) {
	c := startCluster(t, 1, 1)
	server, node := c.servers[0], c.clients[0]
	fingerprint := server.identity.ca().Fingerprint()
	admin, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[auth.Role]string{}
	for _, role := range []auth.Role{auth.RoleServer, auth.RoleClient} {
		made, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: string(role)})
		if err != nil {
			t.Fatal(err)
		}
		tokens[role] = made.Join
	}
	roads := []struct {
		name string
		walk func(t *testing.T, addr string) error
	}{
		{"the command line with a token", func(t *testing.T, addr string) error {
			_, err := clientFor(t, "https://"+addr, string(server.CA()), admin.Secret).SelfToken(t.Context())
			return err
		}},
		{"the first token", func(t *testing.T, addr string) error {
			_, err := clientFor(t, "https://"+addr, string(server.CA()), "").BootstrapToken(t.Context(), "setup-secret")
			return err
		}},
		{"login with a fingerprint", func(t *testing.T, addr string) error {
			_, err := api.FetchCA(t.Context(), addr, fingerprint)
			return err
		}},
		{"a token for a pinned CA", func(t *testing.T, addr string) error {
			client, err := api.New(api.Config{Address: addr, CAFingerprint: fingerprint, Token: admin.Secret})
			if err != nil {
				return err
			}
			defer client.Close()
			_, err = client.SelfToken(t.Context())
			return err
		}},
		{"a joining server", func(t *testing.T, addr string) error {
			return joinAtAddress(t, serverSettings(t.TempDir(), "server-9", 1, nil), tokens[auth.RoleServer], addr)
		}},
		{"a joining node", func(t *testing.T, addr string) error {
			return joinAtAddress(t, clientSettings(t.TempDir(), "client-9", nil), tokens[auth.RoleClient], addr)
		}},
		{"a node's call to a server", func(t *testing.T, addr string) error {
			conn, err := node.pool.Conn(rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer}})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err = rpc.Call[structs.RenewRequest, structs.RenewReply](ctx, conn, structs.MethodServerRenew, &structs.RenewRequest{CSR: []byte("x")})
			node.pool.Forget(addr)
			return err
		}},
		{"raft", func(t *testing.T, addr string) error {
			layer := server.mux.RaftLayer(rpc.Dialer{Identity: server.ident}, server.servers.raftIDAt)
			conn, err := layer.Dial(raft.ServerAddress(addr), 5*time.Second)
			if err == nil {
				_ = conn.Close()
			}
			return err
		}},
	}
	for _, road := range roads {
		t.Run(road.name, func(t *testing.T) {
			i := startImpostor(t, node.ident.Load().Certificate)
			if err := road.walk(t, i.addr); err == nil {
				t.Error("it was let through")
			}
			if i.calls.Load() == 0 {
				t.Error("nobody came: the test tests nothing")
			}
			if n := i.told.Load(); n != 0 {
				t.Errorf("the impostor was told %d bytes", n)
			}
		})
	}
	t.Run("a node whose configuration names it", func(t *testing.T) {
		i := startImpostor(t, node.ident.Load().Certificate)
		settings := clientSettings(t.TempDir(), "client-8", text(tokens[auth.RoleClient]))
		settings.Client.Servers = []string{i.addr}
		agent := startAgent(t, settings, testOptions(t))
		eventually.Within(t, time.Minute, "find the real server", agent.node.client.Connected)
		if n := i.told.Load(); n != 0 {
			t.Errorf("the impostor was told %d bytes", n)
		}
	})
}

// joinAtAddress joins with a token that leads to addr.
func joinAtAddress(t *testing.T, settings config.Settings, token, addr string) error {
	t.Helper()
	parsed, err := auth.ParseJoinToken(token)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Addr = addr
	settings.JoinToken = text(parsed.String())
	_, err = joinOnce(t, settings)
	return err
}

// Raft's own stream goes to the server that the configuration has at an
// address, and to no other server.
func TestRaftAsksForTheServerItMeans(t *testing.T) {
	c := startCluster(t, 1, 0)
	server := c.servers[0]
	issued, err := server.identity.ca().IssueAgent(auth.Grant{Role: auth.RoleServer, ID: strings.Repeat("d", 32)}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(issued.ChainPEM, issued.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	i := startImpostor(t, pair)
	layer := server.mux.RaftLayer(rpc.Dialer{Identity: server.ident}, func(string) (string, error) { return strings.Repeat("e", 32), nil })
	if conn, err := layer.Dial(raft.ServerAddress(i.addr), 5*time.Second); err == nil {
		_ = conn.Close()
		t.Error("another server was taken for it")
	}
	if i.calls.Load() == 0 || i.told.Load() != 0 {
		t.Errorf("%d connections, %d bytes", i.calls.Load(), i.told.Load())
	}
	if id, err := server.servers.raftIDAt(server.Addr()); err != nil || id != server.ID() {
		t.Errorf("id at its address: %q %v", id, err)
	}
}

// A certificate carries the address that its agent's own connection comes
// from, never one that gossip tells or that a node lends.
func TestAddressesInCertificatesAreNotClaimed(t *testing.T) {
	c := startCluster(t, 1, 1)
	node := c.clients[0]
	meta := node.gossip.View(node.ID()).Meta
	meta.RPCAddr = "192.0.2.7:4646"
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := node.gossip.UpdateMeta(ctx, meta); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "hear the claim", func() bool {
		return c.servers[0].gossip.View(node.ID()).Meta.RPCAddr == meta.RPCAddr
	})
	renewed, err := node.certificates.renew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, ip := range renewed.Certificate.Leaf.IPAddresses {
		if !ip.IsLoopback() {
			t.Errorf("the certificate is good for %s", ip)
		}
	}
}
