package server

import (
	"crypto/rand"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// TestAdmit lets agents in by a token of two uses.
func TestAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		synctest.Wait() // the leader has written what the cluster is
		ca, err := auth.NewCA("test", rand.Reader, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, server := range c.servers {
			server.config.SignCSR = func(csr []byte, identity auth.Identity, _ string) ([]byte, error) {
				return ca.SignCSR(csr, auth.Grant{Role: identity.Role, ID: identity.ID}, rand.Reader, time.Now())
			}
		}
		token, stored, err := auth.GenerateJoinToken(ca.Fingerprint(), "10.0.0.1:4646", auth.RoleClient, 2, time.Hour, rand.Reader, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.servers[0].Submit(t.Context(), structs.CommandJoinTokenPut, "op", &structs.JoinTokenPut{Token: *stored}); err != nil {
			t.Fatal(err)
		}
		ask := func(server int, change func(*Join)) structs.ErrorCode {
			csr, _, err := auth.NewCSR(auth.RoleClient, "agent", rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			join := Join{TokenID: token.ID, Secret: token.Secret, Role: auth.RoleClient, AgentID: "agent", CSR: csr}
			change(&join)
			certificate, err := c.servers[server].Admit(t.Context(), join)
			if (err == nil) != (len(certificate) > 0) {
				t.Errorf("certificate of %d bytes with %v", len(certificate), err)
			}
			return structs.CodeOf(err)
		}
		for i, step := range []struct {
			change func(*Join)
			want   structs.ErrorCode
		}{
			{func(j *Join) { j.Secret = "wrong" }, structs.CodeUnauthorized},
			{func(j *Join) { j.TokenID = "wrong" }, structs.CodeUnauthorized},
			{func(j *Join) { j.Role = auth.RoleServer }, structs.CodeForbidden},
			{func(j *Join) { j.CSR = []byte("nonsense") }, structs.CodeInvalid}, // costs no use
			{func(*Join) {}, ""},
			{func(*Join) {}, ""},
			{func(*Join) {}, structs.CodeUnauthorized},
		} {
			if got := ask(i%3, step.change); got != step.want {
				t.Errorf("step %d gives %q, want %q", i, got, step.want)
			}
		}
	})
}

// An agent whose answer was lost is answered again, by any server and for ten to
// twenty minutes, and takes no second use; nobody else is let in by its use.
func TestLostAnswerToAJoinerIsGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		synctest.Wait()
		ca, err := auth.NewCA("test", rand.Reader, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, server := range c.servers {
			server.config.SignCSR = func(csr []byte, identity auth.Identity, _ string) ([]byte, error) {
				return ca.SignCSR(csr, auth.Grant{Role: identity.Role, ID: identity.ID}, rand.Reader, time.Now())
			}
		}
		token := func(uses int, life time.Duration) auth.JoinToken {
			token, stored, err := auth.GenerateJoinToken(ca.Fingerprint(), "10.0.0.1:4646", auth.RoleClient, uses, life, rand.Reader, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.servers[0].Submit(t.Context(), structs.CommandJoinTokenPut, "op", &structs.JoinTokenPut{Token: *stored}); err != nil {
				t.Fatal(err)
			}
			return token
		}
		key := func() []byte {
			csr, _, err := auth.NewCSR(auth.RoleClient, "agent", rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			return csr
		}
		one, two, short := token(1, 2*time.Hour), token(2, 2*time.Hour), token(1, time.Minute)
		mine, others := key(), key()
		of := func(token auth.JoinToken) Join {
			return Join{TokenID: token.ID, Secret: token.Secret, Role: auth.RoleClient, AgentID: "agent", CSR: mine}
		}
		with := func(join Join, change func(*Join)) Join { change(&join); return join }
		for _, step := range []struct {
			name   string
			after  time.Duration
			server int
			join   Join
			want   string
			left   int // uses of the step's token
		}{
			{"the first time", 0, 0, of(one), "", 0},
			{"again", 0, 0, of(one), "", 0},
			{"again, of another server", 5 * time.Second, 2, of(one), "", 0},
			{"another key", 0, 0, with(of(one), func(j *Join) { j.CSR = others }), "auth.join_used_up", 0},
			{"another id", 0, 0, with(of(one), func(j *Join) { j.AgentID = "agent-2" }), "auth.join_used_up", 0},
			{"another role", 0, 0, with(of(one), func(j *Join) { j.Role = auth.RoleServer }), "auth.join_used_up", 0},
			{"another secret", 0, 0, with(of(one), func(j *Join) { j.Secret = two.Secret }), "auth.join_unknown", 0},
			{"another token, for the first time", 0, 1, of(two), "", 1},
			{"that one again takes no use", 0, 2, of(two), "", 1},
			{"and leaves it to others", 0, 2, with(of(two), func(j *Join) { j.CSR, j.AgentID = others, "agent-2" }), "", 0},
			{"a token that is over soon", 0, 0, of(short), "", 0},
			{"that one again, when it is over", 2 * time.Minute, 0, of(short), "", 0},
			{"for somebody else it is over", 0, 0, with(of(short), func(j *Join) { j.CSR = others }), "auth.join_expired", 0},
			{"again, within ten minutes", 7*time.Minute + 50*time.Second, 1, of(one), "", 0},
			{"again, after twenty", 10*time.Minute + 5*time.Second, 1, of(one), "auth.join_used_up", 0},
		} {
			time.Sleep(step.after)
			certificate, err := c.servers[step.server].Admit(t.Context(), step.join)
			got := ""
			if refused := new(structs.Error); errors.As(err, &refused) {
				got = refused.ID
			}
			if got != step.want || (err == nil) != (len(certificate) > 0) {
				t.Errorf("%s: %v, want %q, and a certificate of %d bytes", step.name, err, step.want, len(certificate))
			}
			if left := c.servers[step.server].Store().Snapshot().JoinToken(step.join.TokenID).UsesLeft; left != step.left {
				t.Errorf("%s: %d uses are left, want %d", step.name, left, step.left)
			}
		}
		if _, _, err := c.servers[0].Submit(t.Context(), structs.CommandJoinTokenDelete, "op", &structs.JoinTokenDelete{ID: two.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.servers[0].Admit(t.Context(), of(two)); structs.CodeOf(err) != structs.CodeUnauthorized {
			t.Errorf("a revoked token: %v", err)
		}
	})
}

// TestCloseTellsWaiters closes a server while somebody waits for a leader.
func TestCloseTellsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		if err := c.sequencer.SetLeader(""); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(time.Second, c.servers[0].Close)
		if _, err := admitAndSubmit(t.Context(), c.servers[0], "", testJob("one", 1)); structs.CodeOf(err) != structs.CodeUnavailable {
			t.Errorf("a waiting submission gives %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it waited %s", took)
		}
	})
}
