package front

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"nomadlike/nomadlike/auth"
)

// Only a server of the cluster is believed what it says of where a request comes from.
func TestOnlyServersSayWhereARequestComesFrom(t *testing.T) {
	shown := func(role auth.Role) *tls.ConnectionState {
		uri, err := url.Parse(auth.Identity{Cluster: "c1", Role: role, ID: "a1"}.String())
		if err != nil {
			t.Fatal(err)
		}
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{URIs: []*url.URL{uri}}}}
	}
	for _, test := range []struct {
		name string
		tls  *tls.ConnectionState
		said string
		want string
	}{
		{"a server", shown(auth.RoleServer), "203.0.113.9", "203.0.113.9"},
		{"a server, for itself", shown(auth.RoleServer), "", "192.0.2.1"},
		{"a server, nonsense", shown(auth.RoleServer), strings.Repeat("9", 100), "192.0.2.1"},
		{"a node", shown(auth.RoleClient), "203.0.113.9", "192.0.2.1"},
		{"a browser", &tls.ConnectionState{}, "203.0.113.9", "192.0.2.1"},
		{"a certificate that is nobody's", &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, "203.0.113.9", "192.0.2.1"},
		{"nobody", nil, "203.0.113.9", "192.0.2.1"},
	} {
		r := httptest.NewRequest("POST", "/v1/login", nil)
		r.RemoteAddr, r.TLS = "192.0.2.1:1234", test.tls
		if test.said != "" {
			r.Header.Set(HeaderFor, test.said)
		}
		if got := Origin(r); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
