package state

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"nomadlike/nomadlike/structs"
)

// secretsIn lists the secrets of a store, each with version and data key.
func secretsIn(s *Store) (all []string) {
	for secret := range s.Snapshot().Secrets() {
		all = append(all, fmt.Sprintf("%s@%d by %s", secret.Ref().ID(), secret.Version, secret.Key))
	}
	return all
}

// Secrets have versions that follow each other, data keys are replaced under them, a
// user's own go with the account, and all of it is restored as it was.
func TestSecretsInTheState(t *testing.T) {
	p := &play{t: t, store: New(), now: 1}
	apply := func(kind structs.CommandKind, body any, want string) {
		t.Helper()
		result := p.store.Apply(p.store.Snapshot().Index()+1, encode(kind, p.now, body))
		got := ""
		if result.Err != nil {
			got = result.Err.ID
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", body, got, want)
		}
	}
	set := func(secret structs.Secret, version uint64, want string) {
		t.Helper()
		secret.Version, secret.Sealed = version, []byte("sealed")
		apply(structs.CommandSecretSet, &structs.SecretSet{Secret: secret}, want)
	}
	addKey := func(id, before, want string) {
		t.Helper()
		apply(structs.CommandSecretKeyAdd, &structs.SecretKeyAdd{Key: structs.SecretKey{ID: id, ServerKey: "s-" + id, Sealed: []byte("k")}, Before: before}, want)
	}
	apply(structs.CommandUserPut, &structs.UserPut{User: structs.User{Name: "li"}}, "")
	ours, mine := structs.Secret{Project: "vision", Name: "wandb", Key: "k1"}, structs.Secret{User: "li", Name: "wandb", Key: "k1"}
	set(ours, 1, "state.secret_key_unknown")
	addKey("k1", "", "")
	addKey("k2", "", "state.secret_key_changed")
	set(ours, 2, "state.secret_changed")
	set(ours, 1, "")
	set(ours, 1, "state.secret_changed") // somebody else was first
	set(ours, 2, "")
	set(mine, 1, "")
	set(structs.Secret{Name: "nobodys", Key: "k1"}, 1, "state.secret_malformed")
	set(structs.Secret{Project: "vision", User: "li", Name: "both", Key: "k1"}, 1, "state.secret_malformed")
	set(structs.Secret{Project: "vision", Name: "no name", Key: "k1"}, 1, "state.secret_malformed")
	if got, want := secretsIn(p.store), []string{"vision/wandb@2 by k1", "~li/wandb@1 by k1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	addKey("k2", "k1", "")
	apply(structs.CommandSecretsReseal, &structs.SecretsReseal{Forget: true, Secrets: []structs.SecretSealed{
		{Ref: ours.Ref(), Version: 2, Key: "k2", Sealed: []byte("anew")},
		{Ref: mine.Ref(), Version: 7, Key: "k2", Sealed: []byte("of another value")}, // left alone
	}}, "")
	if got, want := secretsIn(p.store), []string{"vision/wandb@2 by k2", "~li/wandb@1 by k1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if ring := p.store.Snapshot().SecretKeyring(); len(ring.Keys) != 2 || ring.Current().ID != "k2" {
		t.Errorf("keys %+v: one that still seals something was forgotten", ring)
	}

	var stored bytes.Buffer
	if err := p.store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&stored); err != nil || again.Snapshot().Hash() != p.store.Snapshot().Hash() || !slices.Equal(secretsIn(again), secretsIn(p.store)) {
		t.Errorf("restored: %v, %q", err, secretsIn(again))
	}

	apply(structs.CommandUserState, &structs.UserState{Name: "li", Disabled: true}, "")
	apply(structs.CommandUserDelete, &structs.UserDelete{Name: "li"}, "")
	if got, want := secretsIn(p.store), []string{"vision/wandb@2 by k2"}; !slices.Equal(got, want) {
		t.Errorf("after the account: %q, want %q", got, want)
	}
	apply(structs.CommandSecretsReseal, &structs.SecretsReseal{Forget: true}, "")
	if ring := p.store.Snapshot().SecretKeyring(); len(ring.Keys) != 1 {
		t.Errorf("keys %+v: one that seals nothing stays", ring)
	}
	apply(structs.CommandSecretDelete, &structs.SecretDelete{Ref: mine.Ref()}, "state.secret_unknown")
	apply(structs.CommandSecretDelete, &structs.SecretDelete{Ref: ours.Ref()}, "")
	for n := range structs.SecretsPerScope {
		set(structs.Secret{Project: "speech", Name: fmt.Sprintf("s%d", n), Key: "k2"}, 1, "")
	}
	set(structs.Secret{Project: "speech", Name: "one_more", Key: "k2"}, 1, "state.secrets_full")
	set(structs.Secret{Project: "vision", Name: "elsewhere", Key: "k2"}, 1, "")
	for event := range p.store.Snapshot().RecentEvents(0) { // that somebody has one of their own is nobody else's business
		if event.Topic == topicSecret && event.Project == "" {
			t.Errorf("told %+v", event)
		}
	}
}
