package secrets

import (
	"os"
	"slices"
	"testing"

	"nomadlike/nomadlike/structs"
)

// The credentials of an image are the node's to sign in with: the task has neither a
// variable nor a file of them, and nothing is masked that it cannot print.
func TestImageCredentialsAreNotTheTasks(t *testing.T) {
	if !inMemory("/dev/shm") {
		t.Fatal("/dev/shm is not in memory")
	}
	root, err := os.MkdirTemp("/dev/shm", "secrets-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	keeper := New(nil, nil, root)
	own := func(string) error { return nil }
	login := structs.SecretValue{Use: structs.SecretUse{Name: "registry", Image: true}, Value: []byte("robot:canary-password")}
	if dir, err := keeper.Files("a1", []structs.SecretValue{login}, own, false); dir != "" || err != nil {
		t.Errorf("files of credentials alone: %q, %v", dir, err)
	}
	values := []structs.SecretValue{
		login,
		{Use: structs.SecretUse{Name: "wandb", Var: "WANDB"}, Value: []byte("variable-value")},
		{Use: structs.SecretUse{Name: "key"}, Value: []byte("file-value")},
	}
	dir, err := keeper.Files("a1", values, own, false)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "key" {
		t.Errorf("files %v, %v", entries, err)
	}
	if env := Env(values); !slices.Equal(env, []string{"WANDB=variable-value"}) {
		t.Errorf("variables %v", env)
	}
	for _, mask := range Masks(values) {
		if mask.Name == "registry" {
			t.Errorf("masked: %+v", mask)
		}
	}
	if got := ImageCredentials(values); string(got) != "robot:canary-password" {
		t.Errorf("credentials %q", got)
	}
	if got := ImageCredentials(values[1:]); got != nil {
		t.Errorf("credentials of a job without: %q", got)
	}
}
