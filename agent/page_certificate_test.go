package agent

import (
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	"nomadlike/nomadlike/auth"
)

// The certificate of tasks' pages is good for one label below the domain, stays the same
// for half of its life, and follows the CA. Other names get the agent's own.
func TestPageCertificate(t *testing.T) {
	now := time.Now()
	made := func() *auth.CA {
		ca, err := auth.NewCA("0123456789abcdef0123456789abcdef", rand.Reader, now)
		if err != nil {
			t.Fatal(err)
		}
		return ca
	}
	ca := made()
	p := &pageCertificate{domain: "tasks.example.com", ca: func() *auth.CA { return ca }, now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler)}
	for _, name := range []string{"", "tasks.example.com", "server.nomadlike", "xtasks.example.com"} {
		if p.named(name) != nil {
			t.Errorf("%q has a page's certificate", name)
		}
	}
	first := p.named("8080-a.Tasks.example.com")
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate)
	if _, err := first.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "8080-a.tasks.example.com", CurrentTime: now}); err != nil {
		t.Error(err)
	}
	if _, err := auth.ParseIdentity(first.Leaf); err == nil {
		t.Error("it names an agent")
	}
	now = now.Add(time.Hour)
	if p.named("8081-b.tasks.example.com") != first {
		t.Error("it is made anew each time")
	}
	now = halfLife(first)
	second := p.named("8081-b.tasks.example.com")
	if ca = made(); second == first || p.named("8081-b.tasks.example.com") == second {
		t.Error("it is not made anew in the middle of its life, or with another CA")
	}
}
