package client

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// refusal is what servers answer at the moment, nil for secrets.
type refusal struct {
	mu  sync.Mutex
	err error
}

func (r *refusal) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *refusal) get() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// askFor answers for servers: of a secret called token, with a value.
func askFor(failure *refusal) func(*Config) {
	return func(c *Config) {
		c.AskSecrets = func(context.Context, string, string) (*structs.SecretsReply, error) {
			if err := failure.get(); err != nil {
				return nil, err
			}
			return &structs.SecretsReply{Values: []structs.SecretValue{
				{Use: structs.SecretUse{Name: "token", Var: "TOKEN"}, Version: 3, Value: structs.SecretBytes("hunter2222")},
			}}, nil
		}
	}
}

// TestRestartedAgentTellsMasksAgain: after a restart a driver hears what the logs of a
// task do not hold once a server has said so, however long that takes, or that nobody
// knows it any more; and once only.
func TestRestartedAgentTellsMasksAgain(t *testing.T) {
	away := structs.NewError(structs.CodeUnavailable, "rpc.unreachable")
	for _, c := range []struct {
		name    string
		refusal error // once servers answer
		want    string
	}{
		{"known", nil, "mask job-1-0: token@3 hunter2222"},
		{"deleted meanwhile", structs.NewError(structs.CodeNotFound, "agent.secret_gone", "secret", "token"), "mask job-1-0:"},
	} {
		synctest.Test(t, func(t *testing.T) {
			control, w, dir := newControl(), newFakeRuntime(), tempDir(t)
			var failure refusal
			_, stop := control.node(t, dir, "n1", w.driver(), askFor(&failure))
			settle()
			a, plain := gang("job", 1, "sleep", "n1")[0], gang("plain", 1, "sleep", "n1")[0]
			a.Job.Task.Secrets = []structs.SecretUse{{Name: "token", Var: "TOKEN"}}
			control.assign(a, plain)
			settle()
			if len(w.running()) != 2 {
				t.Fatalf("running %v", w.running())
			}
			stop()
			masks := func() []string {
				return slices.DeleteFunc(w.notes(), func(note string) bool { return !strings.HasPrefix(note, "mask ") })
			}
			failure.set(away)
			_, stop = control.node(t, dir, "n1", w.driver(), askFor(&failure))
			pass(3 * time.Minute)
			if said := masks(); len(said) != 0 {
				t.Errorf("%s: while servers are away it was told %q", c.name, said)
			}
			failure.set(c.refusal)
			pass(time.Minute)
			if said := masks(); !slices.Equal(said, []string{c.want}) {
				t.Errorf("%s: it was told %q", c.name, said)
			}
			stop()
		})
	}
}

// TestNoSecretsForWhoDoesNotMask: whoever has placed it, a task with secrets does not
// start on a driver that does not say that it masks; one without does.
func TestNoSecretsForWhoDoesNotMask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		var failure refusal
		_, stop := c.node(t, tempDir(t), "n1", map[string]driver.Driver{"other": w.driver()["exec"]}, askFor(&failure))
		settle()
		a, plain := gang("job", 1, "sleep", "n1")[0], gang("plain", 1, "sleep", "n1")[0]
		a.Job.Task.Secrets = []structs.SecretUse{{Name: "token"}}
		a.Job.Task.Driver, plain.Job.Task.Driver = "other", "other"
		c.assign(a, plain)
		settle()
		if r := c.last(a.Alloc.ID); r.Status != structs.AllocFailed || r.Cause == nil || r.Cause.ID != "client.secrets_unmasked" {
			t.Errorf("report %+v", r)
		}
		if got := w.running(); len(got) != 1 || got[0] != plain.Alloc.ID+".main" {
			t.Errorf("running %v", got)
		}
		stop()
	})
}
