package agent

import (
	"crypto/rand"
	"crypto/tls"
	"log/slog"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
)

// pageCertificate is the certificate of tasks' pages at this server, made by itself: all
// servers hold the CA's key. It lasts as long as the process, and is made anew in the
// middle of its life and with another CA.
type pageCertificate struct {
	domain string
	ca     func() *auth.CA // nil: not here
	now    func() time.Time
	log    *slog.Logger

	mu   sync.Mutex
	made *tls.Certificate
	of   *auth.CA
}

// named returns the certificate for a name that a browser asks for, nil when it is
// none of a page. It implements rpc.MuxConfig.Pages.
func (p *pageCertificate) named(name string) *tls.Certificate {
	if !strings.HasSuffix(strings.ToLower(name), "."+p.domain) {
		return nil
	}
	ca := p.ca()
	if ca == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.made != nil && p.of == ca && now.Before(halfLife(p.made)) {
		return p.made
	}
	made, err := ca.IssuePages(p.domain, rand.Reader, now)
	if err != nil {
		p.log.Warn("tasks' pages are shown with the agent's certificate", logkey.Error, err)
		return nil
	}
	p.made, p.of = made, ca
	return made
}

func halfLife(c *tls.Certificate) time.Time {
	return c.Leaf.NotBefore.Add(c.Leaf.NotAfter.Sub(c.Leaf.NotBefore) / 2)
}
