package rpc

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"testing"
	"time"

	"nomadlike/nomadlike/auth"
)

// cluster is a cluster's CA with the agents that a test starts.
type cluster struct {
	t   testing.TB
	ca  *auth.CA
	now func() time.Time
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	ca, err := auth.NewCA("c0ffee", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, ca: ca, now: time.Now}
}

func (w *cluster) credentials(role auth.Role, id string) *auth.Credentials {
	w.t.Helper()
	return credentialsOf(w.t, w.ca, auth.Grant{Role: role, ID: id})
}

func credentialsOf(t testing.TB, ca *auth.CA, grant auth.Grant) *auth.Credentials {
	t.Helper()
	issued, err := ca.IssueAgent(grant, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := auth.ParseCredentials(issued.ChainPEM, issued.KeyPEM, ca.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	return credentials
}

// agent is a running listener with its RPC server and its pool.
type agent struct {
	identity *Identity
	addr     string
	mux      *Mux
	server   *Server
	pool     *Pool
	dialer   Dialer
	stop     func()
}

// start runs an agent on listener until the test ends. declare adds its
// methods; dial is how it reaches others (nil for TCP).
func (w *cluster) start(listener net.Listener, credentials *auth.Credentials, dial DialFunc, config MuxConfig, declare func(*Server)) *agent {
	w.t.Helper()
	logger := slog.New(slog.DiscardHandler)
	identity := NewIdentity(credentials)
	config.Identity, config.Logger = identity, logger
	a := &agent{
		identity: identity,
		addr:     listener.Addr().String(),
		mux:      NewMux(listener, config),
		server:   NewServer(identity, logger),
		dialer:   Dialer{Identity: identity, Dial: dial},
	}
	a.pool = NewPool(a.dialer)
	if declare != nil {
		declare(a.server)
	}
	served := make(chan error, 2)
	lane := a.mux.RPC()
	go func() { served <- a.mux.Serve() }()
	go func() { served <- a.server.Serve(lane) }()
	stopped := false
	a.stop = func() {
		if stopped {
			return
		}
		stopped = true
		a.pool.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		a.server.Stop(ctx)
		if err := a.mux.Close(); err != nil {
			w.t.Errorf("close mux: %v", err)
		}
		for range 2 {
			if err := <-served; err != nil {
				w.t.Errorf("serve: %v", err)
			}
		}
	}
	w.t.Cleanup(a.stop)
	return a
}

// onLoopback starts an agent on a free port of 127.0.0.1.
func (w *cluster) onLoopback(role auth.Role, id string, config MuxConfig, declare func(*Server)) *agent {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	return w.start(listener, w.credentials(role, id), nil, config, declare)
}

// onFake starts an agent at host:4646 of a network in memory.
func (w *cluster) onFake(network *FakeNetwork, host string, role auth.Role, id string, declare func(*Server)) *agent {
	w.t.Helper()
	listener, err := network.Listen(host + ":4646")
	if err != nil {
		w.t.Fatal(err)
	}
	return w.start(listener, w.credentials(role, id), network.Dial(host), MuxConfig{}, declare)
}

func (a *agent) conn(t testing.TB, to *agent) *Conn {
	t.Helper()
	conn, err := a.pool.Conn(Target{Addr: to.addr, Expect: auth.Expect{ID: to.identity.Self().ID}})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// echo is the message of the tests' methods.
type echo struct {
	Text  string `json:"text"`
	Count int    `json:"count"`
	Data  []byte `json:"data,omitempty"`
}

// declareEchoes declares one method of a server for each set of callers.
func declareEchoes(s *Server) {
	answer := func(_ context.Context, peer Peer, request *echo) (*echo, error) {
		return &echo{Text: request.Text + " from " + peer.ID, Count: request.Count + 1, Data: request.Data}, nil
	}
	Unary(s, "Echo.Both", FromAgents, answer)
	Unary(s, "Echo.Servers", FromServers, answer)
	Unary(s, "Echo.Clients", FromClients, answer)
	Unary(s, "Echo.Nobody", 0, answer)
	Stream(s, "Echo.Stream", FromAgents, func(_ context.Context, _ Peer, stream *ServerStream[echo, echo]) error {
		for {
			message, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			message.Count++
			if err := stream.Send(message); err != nil {
				return err
			}
		}
	})
	Stream(s, "Echo.ServersStream", FromServers, func(_ context.Context, _ Peer, stream *ServerStream[echo, echo]) error {
		return stream.Send(&echo{Text: "hello"})
	})
}

func x509Serial() *big.Int { return big.NewInt(42) }
