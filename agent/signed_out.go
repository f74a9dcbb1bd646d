package agent

import (
	"net/http"
	"path/filepath"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
)

// signedOutFile holds who has signed out, until their tickets would be over.
const signedOutFile = "signed-out.json"

// partingPatience is for telling another server that somebody signed out.
const partingPatience = 5 * time.Second

// keepSessions has the sign-ins of a server outlive it: with a key that all
// servers share, and a file that says who has signed out.
func (a *Agent) keepSessions(s *front.Sessions) {
	door := &http.Client{Transport: front.ToServers(a.ident, a.options.now), Timeout: partingPatience}
	s.Keep(a.identity.ca, filepath.Join(a.config.DataDir, signedOutFile), func(ticket string) {
		for _, addr := range a.servers.addresses() {
			if addr != a.addr {
				go a.tellSignedOut(door, addr, ticket)
			}
		}
	}, a.log)
}

// tellSignedOut has another server forget a session; one that is away takes its
// ticket until that is over, or its token is.
func (a *Agent) tellSignedOut(door *http.Client, addr, text string) {
	request, err := front.SignOutRequest(addr, text)
	if err != nil {
		return
	}
	answer, err := door.Do(request)
	if err != nil {
		a.log.Debug("tell who signed out", logkey.Addr, addr, logkey.Error, err)
		return
	}
	_ = answer.Body.Close()
}
