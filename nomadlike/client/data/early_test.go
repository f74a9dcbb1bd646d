package data

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// What is offered is handed on or left out, and never waited for: a line that is
// full loses the newest, a file that is not there is passed over, and after the
// end nothing is taken any more. The bytes are what they were.
func TestStretchesAreOfferedAndNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, text := t.TempDir(), bytes.Repeat([]byte("x"), 3<<12)
		if err := os.Mkdir(filepath.Join(dir, "tree"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "c"} {
			if err := os.WriteFile(filepath.Join(dir, "tree", name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c := &copier{dir: dir}
		e := newEarly()
		for range 2 * stretchesMax { // nobody takes them yet
			e.offer(stretch{path: "a", length: 1 << 12})
		}
		if len(e.line) != stretchesMax {
			t.Errorf("%d stretches are in the line", len(e.line))
		}
		over := make(chan struct{})
		go func() { defer close(over); e.run(c) }()
		synctest.Wait()
		if len(e.line) != 0 {
			t.Errorf("%d stretches are left", len(e.line))
		}
		for _, name := range []string{"a", "gone", "c"} {
			e.offer(stretch{path: name, offset: 1 << 12, length: 2 << 12})
		}
		synctest.Wait()
		if len(e.line) != 0 {
			t.Errorf("%d stretches are left behind a file that is gone", len(e.line))
		}
		e.end()
		<-over
		e.offer(stretch{path: "c"})
		if len(e.line) != 1 {
			t.Error("a stretch was taken after the end")
		}
		for _, name := range []string{"a", "c"} {
			if got, err := os.ReadFile(filepath.Join(dir, "tree", name)); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s has other bytes, %v", name, err)
			}
		}
	})
}
