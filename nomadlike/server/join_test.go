package server

import (
	"crypto/rand"
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
