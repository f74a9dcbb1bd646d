package client

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// port is one agent's listener with its RPC server and pool, over real TLS.
type port struct {
	addr   string
	server *rpc.Server
	pool   *rpc.Pool
	serve  func() // once all methods are declared
}

func openPort(t *testing.T, ca *auth.CA, role auth.Role, id string) *port {
	t.Helper()
	issued, err := ca.IssueAgent(auth.Grant{Role: role, ID: id}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := auth.ParseCredentials(issued.ChainPEM, issued.KeyPEM, ca.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	identity := rpc.NewIdentity(credentials)
	mux := rpc.NewMux(listener, rpc.MuxConfig{Identity: identity, Logger: logger})
	p := &port{addr: listener.Addr().String(), server: rpc.NewServer(identity, logger), pool: rpc.NewPool(rpc.Dialer{Identity: identity})}
	lane := mux.RPC()
	p.serve = func() {
		var serving sync.WaitGroup
		serving.Go(func() { _ = p.server.Serve(lane) }) // ends by Stop
		serving.Go(func() { _ = mux.Serve() })          // ends by Close
		t.Cleanup(func() {
			p.pool.Close()
			over, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			p.server.Stop(over)
			_ = mux.Close() // may be closed by its listener already
			serving.Wait()
		})
	}
	return p
}

// TestServicesOverRPC runs a session, logs and exec over mutual TLS, where
// certificates say who calls.
func TestServicesOverRPC(t *testing.T) {
	ca, err := auth.NewCA("c0ffee", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := newControl()
	server := openPort(t, ca, auth.RoleServer, "s1")
	rpc.Stream(server.server, structs.MethodNodeSession, rpc.FromClients,
		func(_ context.Context, _ rpc.Peer, stream *rpc.ServerStream[structs.SessionUp, structs.SessionDown]) error {
			c.serve(stream)
			return nil
		})
	server.serve()
	ports := map[string]*port{}
	dirs := map[string]string{}
	for _, id := range []string{"n1", "n2"} {
		p := openPort(t, ca, auth.RoleClient, id)
		ports[id], dirs[id] = p, tempDir(t)
		cleanUp(t, dirs[id])
		n, _ := c.node(t, dirs[id], id, map[string]driver.Driver{"exec": realExec(t, dirs[id])}, func(config *Config) {
			config.Servers = func() []string { return []string{server.addr} }
			config.RPCAddr, config.OpenSession, config.OpenExec = p.addr, SessionOver(p.pool), ExecOver(p.pool)
		})
		n.Register(p.server)
		p.serve()
	}
	pair := gang("pair", 1, "sh -c 'echo hello; sleep 100'", "n1", "n2")
	for _, a := range pair {
		a.Alloc.Released = true
	}
	c.assign(pair...)
	target := pair[1].Alloc.ID
	wantStatus(t, c, target, structs.AllocRunning)

	logs := func(from *port) (string, error) {
		conn, err := from.pool.Conn(rpc.Target{Addr: ports["n2"].addr})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := rpc.OpenStream[structs.LogRequest, structs.LogChunk](t.Context(), conn, structs.MethodAllocLogs)
		if err != nil {
			return "", err
		}
		defer stream.Close()
		if err := stream.Send(&structs.LogRequest{AllocID: target, Stream: "stdout", Follow: true}); err != nil && !errors.Is(err, rpc.ErrStreamEnded) {
			return "", err
		}
		chunk, err := stream.Recv()
		if err != nil {
			return "", err
		}
		return string(chunk.Data), nil
	}
	if text, err := logs(server); err != nil || text != "hello\n" {
		t.Errorf("logs for a server: %q %v", text, err)
	}
	if _, err := logs(ports["n1"]); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("logs for another node: %v", err)
	}

	exec := func(from *port, nodeID string, rank *structs.Assignment) (string, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		peer, err := ExecOver(from.pool)(ctx, nodeID, ports["n2"].addr)
		if err != nil {
			return "", err
		}
		start := &structs.ExecStart{AllocID: target, Attempt: 1, Command: []string{"sh", "-c", "cat; exit 3"}, From: rank.Alloc.ID}
		for _, up := range []*structs.ExecUp{{Start: start}, {Stdin: []byte("through")}, {CloseStdin: true}} {
			if err := peer.Send(up); err != nil && !errors.Is(err, rpc.ErrStreamEnded) {
				return "", err
			}
		}
		var text strings.Builder
		for {
			down, err := peer.Recv()
			switch {
			case errors.Is(err, io.EOF):
				return text.String(), nil
			case err != nil:
				return "", err
			case down.Exit != nil && down.Exit.Code != 3:
				t.Errorf("exit %+v", down.Exit)
			}
			text.Write(down.Stdout)
		}
	}
	if text, err := exec(ports["n1"], "n2", pair[0]); err != nil || text != "through" {
		t.Errorf("exec of a rank: %q %v", text, err)
	}
	if _, err := exec(ports["n1"], "n2", pair[1]); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("exec in the name of another node's rank: %v", err)
	}
	if _, err := exec(ports["n1"], "n3", pair[0]); err == nil {
		t.Error("another node than the expected one was talked to")
	}
}
