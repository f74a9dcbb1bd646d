package secretfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
		err  error
	}{
		{"s3cret\n", 0o600, "s3cret", nil},
		{" a b \r\n\n", 0o400, " a b ", nil}, // only ends of lines are not its own
		{"x", 0o640, "", ErrShared},
		{"x", 0o604, "", ErrShared},
		{"x", 0o610, "", ErrShared},
		{"\n", 0o600, "", ErrEmpty},
		{"", 0o600, "", ErrEmpty},
		{strings.Repeat("x", SizeMax), 0o600, strings.Repeat("x", SizeMax), nil},
		{strings.Repeat("x", SizeMax+1), 0o600, "", ErrLarge},
	} {
		name := write(t, c.text, c.mode)
		got, err := Read(name)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%.10q of mode %o: %.10q, %v", c.text, c.mode, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name the file", err)
		}
		if errors.Is(Check(name), ErrShared) != errors.Is(c.err, ErrShared) {
			t.Errorf("Check of mode %o: %v", c.mode, Check(name))
		}
	}
}

// TestWhatIsNoFile: a pipe is refused, and not waited for; so is a directory.
func TestWhatIsNoFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if _, err := Read(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(write(t, "x", 0o600), link); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(link); got != "x" || err != nil { // as secrets are mounted in many places
		t.Errorf("%q, %v", got, err)
	}
}
