package send

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/structs"
)

// local is a Poster that takes the loopback of this machine for another machine, so that
// a server of the test can be one.
func local(t *testing.T, server *httptest.Server, forbidden func(netip.AddrPort) bool) *Poster {
	t.Helper()
	transport := &http.Transport{}
	if server.TLS != nil {
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return newPoster(forbidden, transport)
}

func nothing(netip.AddrPort) bool { return false }

func request(address string) notify.Request {
	return notify.Request{URL: address, Header: map[string]string{"webhook-id": "msg_1"}, Body: []byte(`{"a":1}`)}
}

// A message is one POST with its headers; the answer is judged, and a redirect is none.
func TestPost(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.Header.Get("webhook-id") != "msg_1" || string(body) != `{"a":1}` {
			t.Errorf("%s %v %s", r.Method, r.Header, body)
		}
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, "/hook", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	poster := local(t, server, nothing)
	if got := poster.Post(t.Context(), structs.ChannelWebhook, request(server.URL+"/hook")); !got.Sent {
		t.Errorf("%+v", got)
	}
	if got := poster.Post(t.Context(), structs.ChannelWebhook, request(server.URL+"/elsewhere")); got.Sent || got.Problem != "HTTP 307" || asked != 2 {
		t.Errorf("a redirect: %+v after %d requests", got, asked)
	}
}

// Whatever the name says, nothing is sent to this machine or to the cluster's own ports:
// the address that is dialled is looked at.
func TestNothingIsSentHome(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	poster := NewPoster(func(to netip.AddrPort) bool { return notify.Forbidden(to.Addr()) })
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "169.254.169.254"} {
		got := poster.Post(t.Context(), structs.ChannelWebhook, request("http://"+host+":"+address.Port()+"/very-secret"))
		if got.Sent || got.Problem != "notify.problem.forbidden" {
			t.Errorf("%s: %+v", host, got)
		}
	}
	// The same server, where loopback is allowed and its port is one of the cluster's.
	own := local(t, server, func(to netip.AddrPort) bool { return to.String() == address.Host })
	if got := own.Post(t.Context(), structs.ChannelWebhook, request(server.URL)); got.Problem != "notify.problem.forbidden" {
		t.Errorf("own port: %+v", got)
	}
	if asked != 0 {
		t.Errorf("%d requests came through", asked)
	}
	if got := local(t, server, nothing).Post(t.Context(), structs.ChannelWebhook, request(server.URL)); !got.Sent || asked != 1 {
		t.Errorf("the server cannot be reached at all: %+v", got)
	}
}

// What went wrong does not repeat the address, which is a secret.
func TestProblemsKeepTheAddress(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	poster := newPoster(nothing, &http.Transport{}) // does not trust its certificate
	problems := []string{
		poster.Post(t.Context(), structs.ChannelWebhook, request(server.URL+"/very-secret")).Problem,
		poster.Post(t.Context(), structs.ChannelWebhook, request("https://no-such-host.invalid/very-secret")).Problem,
	}
	server.Close()
	problems = append(problems, poster.Post(t.Context(), structs.ChannelWebhook, request(server.URL+"/very-secret")).Problem)
	for _, problem := range problems {
		if problem == "" || strings.Contains(problem, "very-secret") {
			t.Errorf("%q", problem)
		}
	}
}
