package front

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
)

// at makes the sign-ins of one server of a cluster, as after a start of it.
func at(t *testing.T, key []byte, dir string) *Sessions {
	t.Helper()
	s := newSessions(time.Now)
	held := newSeal(key)
	s.seals = func() *seal { return held }
	s.out.load(filepath.Join(dir, "signed-out.json"), func(err error) { t.Error(err) })
	return s
}

// A sign-in outlives the server that it was made at, and every other server of
// the cluster takes it; what ended it ends it there too.
func TestSessionsOutliveTheirServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, here, there := make([]byte, 32), t.TempDir(), t.TempDir()
		first := at(t, key, here)
		text, _ := first.begin("secret", "192.0.2.1", time.Time{})
		gone, _ := first.begin("secret", "192.0.2.1", time.Time{})
		idle, _ := first.begin("secret", "192.0.2.1", time.Time{})
		first.finish(gone)
		for name, server := range map[string]*Sessions{"started anew": at(t, key, here), "another": at(t, key, there)} {
			if one := server.find(text, "192.0.2.1"); one == nil || one.secret != "secret" {
				t.Errorf("%s does not know the session", name)
			}
		}
		anew := at(t, key, here)
		if anew.find(gone, "192.0.2.1") != nil {
			t.Error("who signed out is in again after a restart")
		}
		if other := at(t, append([]byte{1}, key[1:]...), there); other.find(text, "192.0.2.1") != nil {
			t.Error("a server of another cluster takes the ticket")
		}
		forged := text[:len(text)-2] + "AA"
		if strings.HasPrefix(text[len(text)-2:], "A") { // of 64 tickets one ends in it
			forged = text[:len(text)-2] + "BA"
		}
		if anew.find(forged, "192.0.2.1") != nil || anew.find(strings.Repeat("A", 4096), "192.0.2.1") != nil {
			t.Error("an invented ticket is taken")
		}
		// Use is told by a new text of the cookie, so that idleness counts at every server.
		if _, _, due := first.renewed(text); due {
			t.Error("a new cookie with every request")
		}
		time.Sleep(sessionIdle - time.Minute)
		newer, _, due := first.renewed(text)
		if !due {
			t.Fatal("the cookie is not renewed")
		}
		time.Sleep(2 * time.Minute)
		if anew.find(newer, "192.0.2.1") == nil || at(t, key, here).find(idle, "192.0.2.1") != nil {
			t.Error("idleness is not told apart after a restart")
		}
		time.Sleep(sessionLife)
		if anew.find(newer, "192.0.2.1") != nil || at(t, key, here).find(newer, "192.0.2.1") != nil {
			t.Error("a session outlives its week")
		}
	})
}

// lateCallers have not read the log to its end: they know a token when they ask
// the leader.
type lateCallers struct {
	fakeCallers
	leader bool
}

func (d *lateCallers) Authenticate(ctx context.Context, secret, project string, thorough bool) (Caller, error) {
	switch {
	case thorough && d.leader:
		return d.fakeCallers.Authenticate(ctx, secret, project, true)
	case thorough:
		return Caller{}, structs.NewError(structs.CodeUnavailable, "agent.no_leader")
	}
	return Caller{}, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
}

// A server that was just started does not know all tokens yet, and may have no
// leader to ask: that ends nobody's session.
func TestSessionsOutliveAServerThatReadsItsLog(t *testing.T) {
	f := fakeFront(Limits{}, time.Now, nil)
	b := &browser{front: f}
	b.signIn(t, goodToken)
	late := &lateCallers{}
	f.callers = late
	if answer := b.send("GET", "/v1/queue", "", nil); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("without a leader: %d %s", answer.Code, answer.Body)
	}
	late.leader = true
	if answer := b.send("GET", "/v1/queue", "", nil); answer.Code != 200 {
		t.Errorf("with a leader: %d %s", answer.Code, answer.Body)
	}
}
