package tree

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	script := fileOf("same", "1")
	script.Mode = 0o755
	before := treeOf(fileOf("a", "1"), dirOf("d"), fileOf("d/old", "1"), linkOf("l", "a"), fileOf("same", "1"), fileOf("z", "1"))
	after := treeOf(fileOf("a", "2"), fileOf("b", "1"), dirOf("d"), linkOf("l", "b"), script, fileOf("z", "1"))
	want := []Change{{"a", ChangeContent}, {"b", ChangeAdded}, {"d/old", ChangeRemoved}, {"l", ChangeContent}, {"same", ChangeMode}}
	if diff := cmp.Diff(want, Compare(before, after)); diff != "" {
		t.Error(diff)
	}
}

// TestCompareTwin compares with what sets of names say.
func TestCompareTwin(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		some := func() (Manifest, map[string]string) {
			held := make(map[string]string)
			var m Manifest
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				if r.IntN(3) > 0 {
					held[name] = strings.Repeat("x", r.IntN(3))
					m.Entries = append(m.Entries, fileOf(name, held[name]))
				}
			}
			return m, held
		}
		before, was := some()
		after, is := some()
		var want []Change
		for _, name := range slices.Compact(slices.Sorted(maps.Keys(merged(was, is)))) {
			then, had := was[name]
			now, has := is[name]
			switch {
			case !had:
				want = append(want, Change{name, ChangeAdded})
			case !has:
				want = append(want, Change{name, ChangeRemoved})
			case then != now:
				want = append(want, Change{name, ChangeContent})
			}
		}
		if diff := cmp.Diff(want, Compare(before, after)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
