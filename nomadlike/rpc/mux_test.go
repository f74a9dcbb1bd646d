package rpc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/auth"
)

const patience = 10 * time.Second // for real sockets on a busy machine

// acceptOne takes one connection and closes it, telling what came.
func acceptOne(listener net.Listener) <-chan net.Conn {
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			accepted <- conn
		}
		close(accepted)
	}()
	return accepted
}

func TestHTTPThroughMux(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	lane := server.mux.HTTP()
	api := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		who := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			if identity, err := auth.ParseIdentity(r.TLS.PeerCertificates[0]); err == nil {
				who = identity.ID
			}
		}
		fmt.Fprintf(rw, "hello %s", who)
	})}
	served := make(chan error, 1)
	go func() { served <- api.Serve(lane) }()
	get := func(config *tls.Config) string {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: patience}
		defer client.CloseIdleConnections()
		response, err := client.Get("https://" + server.addr + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	trust := server.identity.Load().Trust
	if got := get(auth.CLITLS(trust, time.Now)); got != "hello nobody" {
		t.Errorf("without certificate: %q", got)
	}
	node := NewIdentity(w.credentials(auth.RoleClient, "n1"))
	if got := get(auth.ClientTLS(node.Load, auth.ALPNHTTP, auth.Expect{}, time.Now)); got != "hello n1" {
		t.Errorf("with certificate: %q", got)
	}
	// Ordinary HTTPS clients check host names; the certificate has them.
	pool := x509.NewCertPool()
	pool.AddCert(w.ca.Certificate)
	if got := get(&tls.Config{RootCAs: pool}); got != "hello nobody" {
		t.Errorf("an ordinary client: %q", got)
	}
	if err := api.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("serve HTTP: %v", err)
	}
	// The other protocols go on when HTTP has stopped.
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	if _, err := Ping(t.Context(), client.conn(t, server)); err != nil {
		t.Errorf("ping after HTTP has stopped: %v", err)
	}
}

func TestRaftLayer(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, nil)
	other := w.onLoopback(auth.RoleServer, "s2", MuxConfig{}, nil)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	layer := server.mux.RaftLayer(server.dialer, nil)
	dial := func(from *agent) (net.Conn, error) {
		return from.mux.RaftLayer(from.dialer, nil).Dial(raft.ServerAddress(server.addr), patience)
	}
	accepted := acceptOne(layer)
	conn, err := dial(other)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("append")); err != nil {
		t.Fatal(err)
	}
	far := <-accepted
	defer far.Close()
	heard := make([]byte, 6)
	if _, err := io.ReadFull(far, heard); err != nil || string(heard) != "append" {
		t.Errorf("heard %q, %v", heard, err)
	}
	// A node may shake hands (TLS 1.3 tells it late), but never gets through.
	accepted = acceptOne(layer)
	refused, err := dial(client)
	if err == nil {
		_, err = io.ReadFull(refused, heard)
		refused.Close()
	}
	if err == nil {
		t.Error("a node speaks Raft")
	}
	// A server does not speak Raft to a node's agent either.
	if _, err := other.mux.RaftLayer(other.dialer, nil).Dial(raft.ServerAddress(client.addr), patience); err == nil {
		t.Error("a server speaks Raft to a node")
	}
	if err := layer.Close(); err != nil {
		t.Error(err)
	}
	if conn := <-accepted; conn != nil {
		t.Errorf("%s came through as Raft", conn.RemoteAddr())
	}
}

// TestStrangersAreRefused lets nobody of the list past the handshake of the
// machine protocols, whatever certificate they bring.
func TestStrangersAreRefused(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	raftLane := server.mux.Raft()
	leaked := acceptOne(raftLane)
	twin, err := auth.NewCA("c0ffee", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := auth.NewCA("beef", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	grant := auth.Grant{Role: auth.RoleServer, ID: "s2"}
	expired := credentialsOf(t, w.ca, auth.Grant{Role: auth.RoleServer, ID: "s2", TTL: -time.Minute})
	good := w.credentials(auth.RoleServer, "s2")
	strangers := map[string]*tls.Config{
		"no certificate": {},
		"self-signed":    {Certificates: []tls.Certificate{selfSigned(t)}},
		"expired":        {Certificates: []tls.Certificate{expired.Certificate}},
		"twin CA":        {Certificates: []tls.Certificate{credentialsOf(t, twin, grant).Certificate}},
		"other cluster":  {Certificates: []tls.Certificate{credentialsOf(t, foreign, grant).Certificate}},
		"TLS 1.2":        {Certificates: []tls.Certificate{good.Certificate}, MaxVersion: tls.VersionTLS12},
		"unknown ALPN":   {Certificates: []tls.Certificate{good.Certificate}, NextProtos: []string{"h2"}},
	}
	for name, config := range strangers {
		for _, proto := range []string{auth.ALPNRPC, auth.ALPNRaft} {
			t.Run(name+" "+proto, func(t *testing.T) {
				config := config.Clone()
				config.InsecureSkipVerify = true
				if config.NextProtos == nil {
					config.NextProtos = []string{proto}
				}
				before := server.mux.Counts().Failed
				conn, err := tls.Dial("tcp", server.addr, config)
				if err == nil {
					// TLS 1.3 tells the client of a refusal after its handshake.
					_ = conn.SetDeadline(time.Now().Add(patience))
					_, err = conn.Read(make([]byte, 1))
					conn.Close()
				}
				var timeout net.Error
				if err == nil || (errors.As(err, &timeout) && timeout.Timeout()) {
					t.Fatalf("not refused: %v", err)
				}
				eventually.Within(t, patience, "the refusal is counted", func() bool { return server.mux.Counts().Failed == before+1 })
			})
		}
	}
	if err := raftLane.Close(); err != nil {
		t.Error(err)
	}
	if conn := <-leaked; conn != nil {
		t.Error("a stranger came through to Raft")
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse(auth.Identity{Cluster: "c0ffee", Role: auth.RoleServer, ID: "s2"}.String())
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: x509Serial(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{uri}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestJoinerSendsNoSecretToAWrongCA(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, nil)
	lane := server.mux.HTTP()
	defer lane.Close()
	join := func(fingerprint string) error {
		client := &http.Client{
			Timeout: patience,
			Transport: &http.Transport{
				TLSClientConfig: auth.PinnedTLS(fingerprint, time.Now, func(*x509.Certificate, auth.Identity) {}),
			},
		}
		defer client.CloseIdleConnections()
		response, err := client.Post("https://"+server.addr+"/v1/join", "text/plain", http.NoBody)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	// The listener records every byte that any joiner says inside TLS.
	said := make(chan string, 2)
	go func() {
		for {
			conn, err := lane.Accept()
			if err != nil {
				close(said)
				return
			}
			buffer := make([]byte, 4096)
			count, _ := conn.Read(buffer)
			said <- string(buffer[:count])
			conn.Close()
		}
	}()
	other, err := auth.NewCA("c0ffee", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := join(other.Fingerprint()); !errors.Is(err, auth.ErrWrongCA) {
		t.Errorf("pinned to another CA: %v", err)
	}
	if err := join(w.ca.Fingerprint()); err == nil || errors.Is(err, auth.ErrWrongCA) {
		t.Errorf("pinned to our CA: %v", err) // the test's server hangs up after reading
	}
	heard := ""
	for heard == "" { // the wrong joiner's connection may show, but empty
		heard = <-said
	}
	if want := "POST /v1/join HTTP/1.1\r\n"; len(heard) < len(want) || heard[:len(want)] != want {
		t.Errorf("the right joiner said %q", heard)
	}
	select {
	case more := <-said:
		t.Errorf("somebody else said %q", more)
	default:
	}
}

func TestHandshakesThatNeverEnd(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{HandshakesMax: 8}, nil)
	var silent []net.Conn
	for range 12 { // half-open: connected, saying nothing
		conn, err := net.Dial("tcp", server.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent = append(silent, conn)
	}
	eventually.Within(t, patience, "the surplus makes room", func() bool { return server.mux.Counts().Ended >= 4 })
	// Agents get through at once, of the same address too.
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	eventually.Within(t, patience, "an agent gets through", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Ping(ctx, client.conn(t, server))
		return err == nil
	})
	for i, conn := range silent {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, err := conn.Read(make([]byte, 1))
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("silent connection %d is still open", i)
		}
	}
}

func TestConnectionsPerAddressAndPerAgent(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{ConnsPerIPMax: 4, ConnsPerPeerMax: 2}, nil)
	lane := server.mux.HTTP()
	defer lane.Close()
	var conns []*tls.Conn
	dialHTTP := func() error {
		conn, err := tls.Dial("tcp", server.addr, auth.CLITLS(server.identity.Load().Trust, time.Now))
		if err == nil {
			conns = append(conns, conn)
		}
		return err
	}
	for range 4 {
		if err := dialHTTP(); err != nil {
			t.Fatal(err)
		}
	}
	ended := func(conn net.Conn) bool {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, err := conn.Read(make([]byte, 1))
		return err != nil && !isTimeout(err)
	}
	if err := dialHTTP(); err == nil { // one of the five is too many
		eventually.Within(t, patience, "a fifth connection of one address is refused", func() bool { return server.mux.Counts().Limited == 1 })
	}
	// Agents of the same address have room of their own.
	raftLane := server.mux.Raft()
	dialRaft := func(id string) net.Conn {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		dialer := Dialer{Identity: NewIdentity(w.credentials(auth.RoleServer, id))}.withDefaults()
		raw, err := dialer.raw(ctx, server.addr)
		if err != nil {
			t.Fatal(err)
		}
		conn, _, err := dialer.secure(ctx, raw, auth.ALPNRaft, Target{Addr: server.addr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	open := func(id string) net.Conn {
		t.Helper()
		conn := dialRaft(id)
		if _, err := raftLane.Accept(); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	one, two := open("s2"), open("s2")
	if !ended(dialRaft("s2")) {
		t.Error("a third connection of one agent")
	}
	open("s3")
	if count := server.mux.Disconnect(auth.RoleServer, "s2"); count != 2 || !ended(one) || !ended(two) {
		t.Errorf("disconnected %d", count)
	}
	open("s2")
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestDisconnectedAgentsLoseTheirStreams(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	removed := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	stays := w.onLoopback(auth.RoleClient, "n2", MuxConfig{}, nil)
	open := func(a *agent) *ClientStream[echo, echo] {
		stream, err := OpenStream[echo, echo](t.Context(), a.conn(t, server), "Echo.Stream")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stream.Close)
		if err := stream.Send(&echo{}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		return stream
	}
	gone, kept := open(removed), open(stays)
	if count := server.mux.Disconnect(auth.RoleClient, "n1"); count != 1 {
		t.Errorf("disconnected %d", count)
	}
	if _, err := gone.Recv(); err == nil {
		t.Error("the removed agent's stream lives")
	}
	if err := kept.Send(&echo{}); err != nil {
		t.Error(err)
	}
	if _, err := kept.Recv(); err != nil {
		t.Errorf("the other agent's stream: %v", err)
	}
}

func TestRemovedAgentsStayOut(t *testing.T) {
	w := newCluster(t)
	var removed atomic.Bool
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{Admit: func(identity auth.Identity) error {
		if removed.Load() && identity.ID == "n1" {
			return errors.New("it was removed")
		}
		return nil
	}}, nil)
	first := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	second := w.onLoopback(auth.RoleClient, "n2", MuxConfig{}, nil)
	ping := func(a *agent) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := Ping(ctx, a.conn(t, server))
		return err
	}
	for _, a := range []*agent{first, second} {
		if err := ping(a); err != nil {
			t.Fatal(err)
		}
	}
	removed.Store(true)
	if count := server.mux.Disconnect(auth.RoleClient, "n1"); count != 1 {
		t.Errorf("disconnected %d", count)
	}
	// The first call after that may still meet the dying connection.
	for range 3 {
		if err := ping(first); err == nil {
			t.Error("the removed agent is answered")
		}
	}
	if err := ping(second); err != nil {
		t.Errorf("the other agent: %v", err)
	}
}

func TestMuxCloseEndsHandshakes(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{HandshakeTimeout: time.Hour}, nil)
	conn, err := net.Dial("tcp", server.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually.Within(t, patience, "the connection is taken", func() bool { return server.mux.Counts().Accepted == 1 })
	server.stop() // hangs if the handshake does not end
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the silent connection is open: %v", err)
	}
}
