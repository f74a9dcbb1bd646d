package agent

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

const lengthJob = `
job "length" {
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "sh -c 'echo $${#TOKEN}'"
    env     = { TOKEN = secret("token") }
  }
}
`

// opens reports whether a server opens the project's secret by what is on its own disk.
func opens(agent *Agent, value string) bool {
	snapshot := agent.store.Snapshot()
	secret := snapshot.Secret(structs.SecretRef{Project: structs.DefaultProject, Name: "token"})
	if secret == nil {
		return false
	}
	opened, err := agent.vault.open(snapshot.SecretKeyring(), secret)
	return err == nil && string(opened) == value
}

// Secrets are there after the CA was replaced, on a server that joined later, after
// the keys were rotated, and under a leader that did not seal them.
func TestSecretsOutliveCAAndLeader(t *testing.T) {
	c := startCluster(t, 3, 1)
	letRoot(t, c.api)
	runs := func(when string, client *api.Client) {
		t.Helper()
		job := runJob(t, client, lengthJob, structs.JobSucceeded)
		if got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{}); got != "24\n" {
			t.Errorf("%s the task has %q", when, got)
		}
	}
	if _, err := c.api.SetSecret(t.Context(), "token", false, []byte(secretValue)); err != nil {
		t.Fatal(err)
	}
	before, err := c.api.Keys(t.Context(), structs.KeyCA)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.RotateKeys(t.Context(), structs.KeyCA, false); err != nil {
		t.Fatal(err)
	}
	caRotated(t, c.api, before.Current)
	runs("after the CA was replaced", c.api)

	token, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "server"})
	if err != nil {
		t.Fatal(err)
	}
	later := startAgent(t, serverSettings(t.TempDir(), "server-3", 3, &token.Join), testOptions(t))
	eventually.Within(t, time.Minute, "see the secret opened by a server that joined later", func() bool { return opens(later, secretValue) })
	rotated, err := c.api.RotateSecretKeys(t.Context())
	if err != nil || rotated.Resealed != 1 || rotated.Keys != 1 {
		t.Fatalf("rotate: %+v, %v", rotated, err)
	}
	eventually.Within(t, time.Minute, "see the secret opened everywhere after the rotation", func() bool {
		for _, agent := range append(c.servers, later) {
			if !opens(agent, secretValue) || len(agent.vault.Lacking()) != 0 || agent.store.Snapshot().SecretKeyring().Current().ID != rotated.Current {
				return false
			}
		}
		return true
	})

	leader := leaderOf(t, c.servers)
	follower := other(c.servers, leader)
	ctx, cancel := context.WithTimeout(t.Context(), stopTimeout)
	defer cancel()
	if err := leader.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	runs("under another leader", c.at(t, follower, c.token))
}

// A cluster into which the state of another one was restored says which key it lacks,
// seals nothing meanwhile, and has the secrets as soon as the key's copy was loaded.
func TestARestoreSaysWhichKeyItLacks(t *testing.T) {
	lost, admin := founder(t)
	if _, err := admin.SetSecret(t.Context(), "token", false, []byte(secretValue)); err != nil {
		t.Fatal(err)
	}
	kept, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := admin.SaveSnapshot(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "keys.json")
	names, err := SaveSealKeys(lost.DataDir(), copied)
	if err != nil || len(names) != 1 {
		t.Fatalf("save: %v, %v", names, err)
	}

	agent, other := founder(t)
	if _, err := other.RestoreForeignSnapshot(t.Context(), bytes.NewReader(archive.Bytes())); err != nil {
		t.Fatal(err)
	}
	client := other.WithToken(kept.Secret)
	keys, err := client.SecretKeys(t.Context())
	if err != nil || keys.Secrets != 1 || len(keys.Lacking) != 1 || keys.Lacking[0] != names[0] || keys.ServerKey != names[0] {
		t.Errorf("what is lacking: %+v, %v; want %v", keys, err, names)
	}
	_, err = client.SetSecret(t.Context(), "another", false, []byte(secretValue))
	var refused *structs.Error
	if !errors.As(err, &refused) || refused.ID != "agent.secret_key_lacking" || refused.Params["key"] != names[0] {
		t.Errorf("a new secret: %v", err)
	}
	if opens(agent, secretValue) {
		t.Error("the value is opened without its key")
	}
	if _, err := LoadSealKeys(agent.DataDir(), copied); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("load beside an agent that runs: %v", err)
	}
	stopAgent(t, agent)
	if _, err := LoadSealKeys(agent.DataDir(), copied); err != nil {
		t.Fatal(err)
	}
	again := startAgent(t, serverSettings(agent.DataDir(), "server-0", 1, nil), testOptions(t))
	client = clientFor(t, "https://"+again.Addr(), string(again.CA()), kept.Secret)
	eventually.Within(t, time.Minute, "set a secret with the key that was loaded", func() bool {
		_, err := client.SetSecret(t.Context(), "another", false, []byte(secretValue))
		return err == nil
	})
	if keys, err := client.SecretKeys(t.Context()); err != nil || len(keys.Lacking) != 0 || !opens(again, secretValue) {
		t.Errorf("after the key was loaded: %+v, %v", keys, err)
	}
}
