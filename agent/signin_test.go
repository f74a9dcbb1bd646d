package agent

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

// Whichever server is asked, the leader counts what was guessed; a sign-in holds on
// every server, and outlives each of them.
func TestSigningInAtAnyServer(t *testing.T) {
	c := startCluster(t, 3, 1)
	const chosen = "three pandas eat bamboo"
	if _, err := c.api.PutUser(t.Context(), &structs.User{Name: "li"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.SetMember(t.Context(), "one", api.MemberRequest{User: "li", Role: structs.RoleUser}); err != nil {
		t.Fatal(err)
	}
	first, err := c.at(t, c.servers[1], c.token).SetPassword(t.Context(), "li", api.PasswordRequest{Reset: true})
	if err != nil {
		t.Fatal(err)
	}
	doors := []*api.Client{c.at(t, c.servers[0], ""), c.at(t, c.servers[1], ""), c.at(t, c.servers[2], ""), c.at(t, c.clients[0], "")}
	made, err := doors[2].Login(t.Context(), api.LoginRequest{User: "li", Password: first.First, NewPassword: chosen})
	if err != nil {
		t.Fatal(err)
	}
	if made.Token.From != "127.0.0.1" {
		t.Errorf("signed in from %s", made.Token.From)
	}
	for i, door := range doors {
		self, err := door.WithToken(made.Secret).Self(t.Context())
		if err != nil || self.Name != "li" {
			t.Errorf("at agent %d: %+v, %v", i, self, err)
		}
	}
	var wrong, held atomic.Int32
	var tries sync.WaitGroup
	began := time.Now()
	for i := range 9 { // at once: many tries are counted before the first is looked at
		tries.Go(func() {
			var refused *structs.Error
			if _, err := doors[i%3].Login(t.Context(), api.LoginRequest{User: "li", Password: "somebody guesses"}); !errors.As(err, &refused) {
				t.Errorf("try %d: %v", i, err)
				return
			}
			switch refused.ID {
			case "auth.sign_in_wrong":
				wrong.Add(1)
			case "auth.sign_in_wait":
				held.Add(1)
			default:
				t.Errorf("try %d: %s", i, refused.ID)
			}
		})
	}
	tries.Wait()
	// The bucket gets one more every twelve seconds, which a busy machine may take.
	if looked := wrong.Load(); looked > 6+int32(time.Since(began)/(12*time.Second)) || looked+held.Load() != 9 {
		t.Errorf("of nine tries at three servers %d were looked at and %d held up, in %s", looked, held.Load(), time.Since(began))
	}
	signedIn := func(agent *Agent) bool {
		for _, r := range recordsOf(t, agent, "login.create") {
			if r.Outcome == audit.Allowed && r.Object.ID == "li" && r.Object.Part == made.Token.ID {
				return true
			}
		}
		return false
	}
	waitFor(t, "the record of the sign-in", func() bool { return signedIn(c.servers[0]) && signedIn(c.servers[1]) && signedIn(c.servers[2]) })
}
