package docker

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestProgram installs the embedded program where this build has one, and
// says so where it has none.
func TestProgram(t *testing.T) {
	config := Config{StateDir: t.TempDir()}
	path, err := installProgram(&config)
	if !Embedded() {
		if !errors.Is(err, errNoProgram) {
			t.Fatalf("a build without the program gives %q, %v", path, err)
		}
		path = filepath.Join(config.StateDir, "program")
		if err := os.WriteFile(path, []byte("x"), 0o755); err != nil {
			t.Fatal(err)
		}
	} else if err != nil {
		t.Fatal(err)
	} else if again, err := installProgram(&config); err != nil || again != path {
		t.Errorf("installed again at %q, %v", again, err)
	}
	// The same file in every door, and there already is fine.
	door := t.TempDir()
	for range 2 {
		if err := placeProgram(path, door); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(door + "/init")
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the door has %v, %v", info, err)
	}
}
