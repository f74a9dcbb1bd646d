package client

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/client/loop"
)

func TestSweepRemovesWhatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, dir := newControl(), newFakeRuntime(), tempDir(t)
		stray := filepath.Join(dir, "alloc", "left-over")
		if err := os.MkdirAll(stray, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(stray, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
			t.Fatal(err)
		}
		n, stop := c.node(t, dir, "n1", w.driver(), func(config *Config) { config.Keep.Allocs = 2 })
		settle()
		var ids []string
		for i := range 4 {
			a := gang(fmt.Sprint("job", i), 1, "true", "n1")[0]
			ids = append(ids, a.Alloc.ID)
			c.assign(a)
			settle()
			if i < 3 {
				w.exit(a.Alloc.ID, 0)
			}
			settle()
		}
		pass(3 * loop.SeldomEvery)
		present := func(id string) bool {
			_, err := os.Stat(n.files.Alloc(id))
			return err == nil
		}
		for i, want := range []bool{false, true, true, true} { // the last one runs
			if present(ids[i]) != want {
				t.Errorf("directory of job%d is there: %v, want %v", i, present(ids[i]), want)
			}
		}
		if present("left-over") {
			t.Error("a directory of nobody stays")
		}
		stop()
		// What is forgotten is forgotten in the store, too.
		n, stop = c.node(t, dir, "n1", w.driver())
		settle()
		if _, known := n.loop.State(ids[0]); known {
			t.Error("a swept allocation came back")
		}
		if _, known := n.loop.State(ids[1]); !known {
			t.Error("a kept allocation is forgotten")
		}
		stop()
	})
}
