package stage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// stopPatience is how long calls under way may take when a cluster is closed.
const stopPatience = 50 * time.Millisecond

// standIns are nodes as far as servers ask them, over a network in memory.
type standIns struct {
	ca      *auth.CA
	network *rpc.FakeNetwork
	pool    *rpc.Pool
	teller  *teller
	stop    []func()
}

func newStandIns(store *state.Store) (*standIns, error) {
	ca, err := auth.NewCA("stage", rand.Reader, time.Now())
	if err != nil {
		return nil, err
	}
	n := &standIns{ca: ca, network: rpc.NewFakeNetwork(0), teller: &teller{store: store}}
	identity, err := n.identity(auth.RoleServer, hex.EncodeToString([]byte("stage-of-servers")))
	if err != nil {
		return nil, err
	}
	n.pool = rpc.NewPool(rpc.Dialer{Identity: identity, Dial: n.network.Dial("10.1.0.1")})
	return n, nil
}

func (n *standIns) identity(role auth.Role, id string) (*rpc.Identity, error) {
	issued, err := n.ca.IssueAgent(auth.Grant{Role: role, ID: id}, rand.Reader, time.Now())
	if err != nil {
		return nil, err
	}
	credentials, err := auth.ParseCredentials(issued.ChainPEM, issued.KeyPEM, n.ca.CertificatePEM())
	if err != nil {
		return nil, err
	}
	return rpc.NewIdentity(credentials), nil
}

// add lets a node answer.
func (n *standIns) add(node *structs.Node) error {
	identity, err := n.identity(auth.RoleClient, node.ID)
	if err != nil {
		return err
	}
	listener, err := n.network.Listen(node.RPCAddr)
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	mux, server := rpc.NewMux(listener, rpc.MuxConfig{Identity: identity, Logger: quiet}), rpc.NewServer(identity, quiet)
	n.teller.declare(server, node.ID)
	lane := mux.RPC()
	var serving sync.WaitGroup
	serving.Go(func() { _ = mux.Serve() }) // until it is closed
	serving.Go(func() { _ = server.Serve(lane) })
	n.stop = append(n.stop, func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		server.Stop(ctx)
		_ = mux.Close()
		serving.Wait()
	})
	return nil
}

func (n *standIns) close() {
	n.pool.Close()
	var stopping sync.WaitGroup
	for _, stop := range n.stop {
		stopping.Go(stop)
	}
	stopping.Wait()
}

// RoundTrip implements http.RoundTripper: the people of the story ask the door
// itself, without sockets.
func (s *Stage) RoundTrip(r *http.Request) (*http.Response, error) {
	body := r.Body
	if body == nil {
		body = http.NoBody
	}
	request := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), body)
	request.Header, request.ContentLength, request.RemoteAddr = r.Header, r.ContentLength, "192.0.2.7:1234"
	recorder := httptest.NewRecorder()
	s.door.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}
