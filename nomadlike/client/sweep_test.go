package client

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// TestExpiredKeepsTheNewest checks the choice of what goes against what the
// three bounds say.
func TestExpiredKeepsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := structs.UnixNano(48 * time.Hour)
		keep := Retention{
			Allocs: rapid.IntRange(1, 6).Draw(t, "allocs"),
			Age:    time.Duration(rapid.Int64Range(int64(keepAtLeast), int64(30*time.Hour)).Draw(t, "age")),
			Bytes:  rapid.Int64Range(1, 100).Draw(t, "bytes"),
		}
		var ended []Ended
		for i := range rapid.IntRange(0, 12).Draw(t, "n") {
			ended = append(ended, Ended{
				AllocID: fmt.Sprint(i),
				At:      structs.UnixNano(rapid.Int64Range(1, int64(now)).Draw(t, "at")),
				Bytes:   rapid.Int64Range(0, 60).Draw(t, "size"),
				Unheard: rapid.IntRange(0, 5).Draw(t, "unheard") == 0,
			})
		}
		expired := Expired(ended, now, keep)
		again := slices.Clone(ended)
		slices.Reverse(again)
		if !slices.Equal(expired, Expired(again, now, keep)) {
			t.Fatal("the order of the input shows")
		}
		kept, bytes, oldestKept := 0, int64(0), now
		for _, e := range ended {
			switch gone := slices.Contains(expired, e.AllocID); {
			case gone && e.Unheard:
				t.Fatalf("%s goes before the servers have heard of its end", e.AllocID)
			case e.Unheard:
			case !gone && now.Sub(e.At) > keep.Age:
				t.Fatalf("%s is too old and stays", e.AllocID)
			case !gone:
				kept++
				oldestKept = min(oldestKept, e.At)
				if now.Sub(e.At) > keepAtLeast {
					bytes += e.Bytes
				}
			}
		}
		if kept > keep.Allocs || bytes > keep.Bytes {
			t.Fatalf("%d allocations with %d bytes are kept", kept, bytes)
		}
		if len(expired) == 0 {
			return
		}
		for i := 1; i < len(expired); i++ {
			at := func(id string) structs.UnixNano {
				return ended[slices.IndexFunc(ended, func(e Ended) bool { return e.AllocID == id })].At
			}
			if at(expired[i-1]) > at(expired[i]) {
				t.Fatal("the oldest does not go first")
			}
		}
	})
}

func TestSweepRemovesWhatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, dir := newControl(), newWard(), tempDir(t)
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
		pass(3 * sweepEvery)
		present := func(id string) bool {
			_, err := os.Stat(n.files.alloc(id))
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
		if _, known := n.loop.table.State(ids[0]); known {
			t.Error("a swept allocation came back")
		}
		if _, known := n.loop.table.State(ids[1]); !known {
			t.Error("a kept allocation is forgotten")
		}
		stop()
	})
}
