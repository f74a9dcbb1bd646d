package api

import (
	"os"
	"testing"
)

// TestKeepContext starts a development cluster over what is remembered.
func TestKeepContext(t *testing.T) {
	for _, c := range []struct {
		name string
		old  Context
		kept bool
	}{
		{"nothing", Context{}, false},
		{"a real cluster", Context{Address: "https://10.0.0.1:4646", Cluster: "prod", Token: "secret"}, true},
		{"the same cluster", Context{Address: "https://10.0.0.1:4646", Cluster: "dev", Token: "secret"}, false},
		{"an older development cluster", Context{Address: "https://127.0.0.1:4646", Cluster: "old", Token: "secret"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.old.Token != "" {
				if err := SaveContext(dir, c.old); err != nil {
					t.Fatal(err)
				}
			}
			path, err := KeepContext(dir, "dev")
			if err != nil || (path != "") != c.kept {
				t.Fatalf("kept as %q, error %v", path, err)
			}
			if !c.kept {
				return
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("kept file %v, error %v", info, err)
			}
			if left, err := LoadContext(dir); err != nil || left.Token != "" {
				t.Errorf("the context still holds %+v, error %v", left, err)
			}
		})
	}
}
