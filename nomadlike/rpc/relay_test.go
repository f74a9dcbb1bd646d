package rpc

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/auth"
)

// A node passes what people's programs send for a server on to one, and is
// told nothing of it: the certificate that they see is the server's.
func TestNodesRelayToServers(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, nil)
	site := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(rw, r.TLS.ServerName+" "+strings.ToUpper(string(body)))
	})}
	lane := server.mux.HTTP()
	go func() { _ = site.Serve(lane) }()
	defer site.Close()
	node := w.onLoopback(auth.RoleClient, "n1", MuxConfig{Relay: func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.addr)
	}}, declareEchoes)
	own := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "the node") })}
	ownLane := node.mux.HTTP()
	go func() { _ = own.Serve(ownLane) }()
	defer own.Close()
	post := func(config *tls.Config, body string) (string, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: patience}
		defer client.CloseIdleConnections()
		response, err := client.Post("https://"+node.addr+"/", "text/plain", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		return string(answer), err
	}
	trust := w.credentials(auth.RoleServer, "s2").Trust
	large := strings.Repeat("secret ", 100_000)
	if got, err := post(auth.CLITLS(trust, time.Now), large); err != nil || got != auth.ServerName+" "+strings.ToUpper(large) {
		t.Errorf("through the node: %d bytes, %v", len(got), err)
	}
	// Whoever asks for the node gets the node, and agents reach it as ever.
	direct := auth.CLITLS(trust, time.Now)
	direct.ServerName = "n1"
	if _, err := post(direct, "secret"); err == nil {
		t.Error("the node passed for a server")
	}
	identity := NewIdentity(w.credentials(auth.RoleServer, "s3"))
	if got, err := post(auth.ClientTLS(identity.Load, auth.ALPNHTTP, auth.Expect{ID: "n1"}, time.Now), ""); err != nil || got != "the node" {
		t.Errorf("the node itself: %q, %v", got, err)
	}
	if _, err := Ping(t.Context(), server.conn(t, node)); err != nil {
		t.Errorf("call of the node: %v", err)
	}
	// Nothing of a relay outlives its agent.
	hanging, err := tls.Dial("tcp", node.addr, auth.CLITLS(trust, time.Now))
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close()
	node.stop()
	_ = hanging.SetReadDeadline(time.Now().Add(patience))
	if _, err := hanging.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the relayed connection is still open: %v", err)
	}
}
