package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUnprotected looks at the adjustment, in a plain file, during a fork and
// after it. The kernel's own file is tested where tasks are run.
func TestUnprotected(t *testing.T) {
	for _, c := range []struct {
		text          string
		during, after string
	}{
		{"-900\n", "0", "-900"},
		{"-1000\n", "0", "-1000"},
		{"0\n", "0", "0"},
		{"300\n", "300", "300"}, // a task may be the first to go
		{"what\n", "what", "what"},
	} {
		place := t.TempDir()
		path := filepath.Join(place, "oom_score_adj")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := openOOM(place)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		during := ""
		pid, err := unprotected(file, readOOM(place), func() (int, error) {
			data, err := os.ReadFile(path)
			during = strings.TrimSpace(string(data))
			return 7, errors.Join(err, syscall.ENOEXEC)
		})
		if pid != 7 || !errors.Is(err, syscall.ENOEXEC) {
			t.Errorf("%q: fork gives %d, %v", c.text, pid, err)
		}
		after, err := os.ReadFile(path)
		if err != nil || during != c.during || strings.TrimSpace(string(after)) != c.after {
			t.Errorf("%q: %q during the fork, %q after it, %v; want %q, %q", c.text, during, after, err, c.during, c.after)
		}
	}
	if value := readOOM(t.TempDir()); value != 0 {
		t.Errorf("a kernel without the file gives %d", value)
	}
}
