package run

import (
	"fmt"
	"slices"
	"testing"
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
