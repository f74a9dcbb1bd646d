package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// A node gets the secrets of the allocations that it runs; those of another node, of
// one that has ended and of one that is not there are refused alike, and so is a
// server that passes for a node.
func TestNodesGetTheirOwnSecretsAlone(t *testing.T) {
	c := startCluster(t, 3, 2)
	admin := c.at(t, c.servers[1], c.token)
	if _, err := admin.SetSecret(t.Context(), "token", false, []byte(secretValue)); err != nil {
		t.Fatal(err)
	}
	// Every server has the key within seconds, and opens what another one sealed.
	eventually.Within(t, time.Minute, "every server has the key", func() bool {
		return !slices.ContainsFunc(c.servers, func(s *Agent) bool {
			return s.store.Snapshot().SecretKeyring() == nil || len(s.vault.Lacking()) > 0
		})
	})
	job := runJob(t, admin, `
job "holds" {
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "sleep 600"
    env     = { TOKEN = secret("token") }
  }
}
`, structs.JobRunning)
	alloc := allocOf(t, admin, job.Job.ID)
	owner, other := c.clients[0], c.clients[1]
	if owner.ID() != alloc.NodeID {
		owner, other = other, owner
	}
	ask := func(from *Agent, id string) (*structs.SecretsReply, error) {
		return askServer[structs.SecretsRequest, structs.SecretsReply](t.Context(), from.pool,
			server.Agent{ID: c.servers[2].ID(), Addr: c.servers[2].Addr(), Role: auth.RoleServer}, structs.MethodServerSecrets, &structs.SecretsRequest{AllocID: id})
	}
	if reply, err := ask(owner, alloc.ID); err != nil || len(reply.Values) != 1 || !bytes.Equal(reply.Values[0].Value, []byte(secretValue)) {
		t.Errorf("the node that runs it: %v %v", reply, err)
	}
	for name, id := range map[string]string{"another node's": alloc.ID, "nobody's": structs.AllocID(job.Job.ID, 7, 7, 7), "nothing": ""} {
		if reply, err := ask(other, id); structs.CodeOf(err) != structs.CodeForbidden {
			t.Errorf("%s: %v %v", name, reply, err)
		}
	}
	if reply, err := ask(c.servers[0], alloc.ID); err == nil {
		t.Errorf("a server asks: %v", reply)
	}
	// A rotation leaves what the task gets as it is.
	before := c.servers[0].store.Snapshot().SecretKeyring().Current().ID
	if keys, err := admin.RotateSecretKeys(t.Context()); err != nil || keys.Resealed != 1 || keys.Keys != 1 || keys.Current == before {
		t.Errorf("rotate: %+v %v", keys, err)
	}
	if reply, err := ask(owner, alloc.ID); err != nil || !bytes.Equal(reply.Values[0].Value, []byte(secretValue)) {
		t.Errorf("after the rotation: %v %v", reply, err)
	}
	if _, err := admin.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, admin, job.Job.ID, structs.JobStopped)
	eventually.Within(t, time.Minute, "what has ended is refused", func() bool {
		_, err := ask(owner, alloc.ID)
		return structs.CodeOf(err) == structs.CodeForbidden
	})
	for _, s := range c.servers {
		scanFiles(t, s.DataDir(), []byte(secretValue))
		info, err := os.Stat(filepath.Join(s.DataDir(), sealKeysFile))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("keys: %v %v", info, err)
		}
	}
	for _, n := range c.clients {
		scanFiles(t, n.DataDir(), []byte(secretValue))
	}
}

// A copy of the keys brings them back to a server that lost its own.
func TestKeysAreSavedAndLoaded(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	keys, err := openSealKeys(from)
	if err != nil {
		t.Fatal(err)
	}
	key := auth.NewSealKey()
	if err := keys.keep(key); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "copy")
	for _, names := range [][]string{mustNames(SaveSealKeys(from, file))(t), mustNames(LoadSealKeys(to, file))(t)} {
		if !slices.Equal(names, []string{key.Fingerprint()}) {
			t.Errorf("keys %v", names)
		}
	}
	again, err := openSealKeys(to)
	if err != nil || again.key(key.Fingerprint()) == nil {
		t.Errorf("loaded: %v", err)
	}
	if err := os.WriteFile(file, []byte(`{"keys":["c2hvcnQ="]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSealKeys(to, file); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a damaged copy: %v", err)
	}
	if _, err := SaveSealKeys(t.TempDir(), file); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("nothing to save: %v", err)
	}
}

func mustNames(names []string, err error) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
}
