package agent

import (
	"log/slog"
	"net/http"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
)

// signedOutFile holds who has signed out, until their tickets would be over.
const signedOutFile = "signed-out.json"

// partingPatience is for telling another server that somebody signed out.
const partingPatience = 5 * time.Second

// signOuts has those who signed out at one server signed out at all of them.
type signOuts struct {
	self     string          // address of this server
	path     string          // of the file that remembers them
	servers  func() []string // addresses
	identity *rpc.Identity
	ca       func() *auth.CA // whose key all servers have
	now      func() time.Time
	log      *slog.Logger
}

// keep has the sign-ins of a server outlive it: with a key that all
// servers share, and a file that says who has signed out.
func (p *signOuts) keep(s *front.Sessions) {
	door := &http.Client{Transport: front.ToServers(p.identity, p.now), Timeout: partingPatience}
	s.Keep(p.ca, p.path, func(ticket string) {
		for _, addr := range p.servers() {
			if addr != p.self {
				go p.tell(door, addr, ticket)
			}
		}
	}, p.log)
}

// tell has another server forget a session; one that is away takes its
// ticket until that is over, or its token is.
func (p *signOuts) tell(door *http.Client, addr, text string) {
	request, err := front.SignOutRequest(addr, text)
	if err != nil {
		return
	}
	answer, err := door.Do(request)
	if err != nil {
		p.log.Debug("tell who signed out", logkey.Addr, addr, logkey.Error, err)
		return
	}
	_ = answer.Body.Close()
}
