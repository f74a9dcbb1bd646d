package code

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"nomadlike/nomadlike/tree"
)

// Trees that nobody has asked for in a long time go, and only what no other tree has.
func TestSweepRemovesWhatIsOld(t *testing.T) {
	from := newServers("s1")
	old, oldChunks := sample(1)
	young, youngChunks := sample(2)
	n := newNode(t, from)
	n.copy(t, from.give("a1", old, oldChunks))
	n.now = n.now.Add(RetentionDefault)
	dir, _ := n.copy(t, from.give("a2", young, youngChunks))
	if removed, err := n.Sweep(); removed != 0 || err != nil {
		t.Errorf("%d were removed, %v", removed, err)
	}
	n.now = n.now.Add(time.Second)
	if removed, err := n.Sweep(); removed != 1 || err != nil {
		t.Errorf("%d were removed, %v", removed, err)
	}
	lists, chunks := n.files(t)
	if len(lists) != 1 || len(chunks) != len(young.Chunks()) {
		t.Errorf("left are %q, %q", lists, chunks)
	}
	wantTree(t, dir, young, youngChunks) // copies are not of the cache
	from.faults["s1"] = fault{away: true}
	n.copy(t, from.give("a3", young, youngChunks)) // whole
	if size := n.size(t); n.mu.bytes != size {
		t.Errorf("%d bytes are counted of %d", n.mu.bytes, size)
	}
}

// size is how many bytes lie in a store.
func (n *node) size(t *testing.T) (bytes int64) {
	t.Helper()
	lists, chunks := n.files(t)
	for _, path := range append(lists, chunks...) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}

// A cache that is larger than it may be loses the oldest, but not what is being copied.
func TestSweepBoundsTheCache(t *testing.T) {
	from := newServers("s1")
	n := newNode(t, from, func(c *Config) { c.Max = 1_200_000 }) // two trees of 500,000 bytes, and a bit
	var last tree.Manifest
	for i := range uint64(4) {
		manifest, chunks := sample(i)
		n.now = n.now.Add(time.Minute)
		n.copy(t, from.give("a", manifest, chunks))
		last = manifest
	}
	first, _ := sample(0)
	second, _ := sample(1)
	third, _ := sample(2)
	n.now = n.now.Add(time.Minute)
	n.copy(t, Wanted{AllocID: "a", Project: "vision", Tree: third.Digest()}) // it is used again
	release := n.use(Wanted{Project: "vision", Tree: first.Digest()}.key())
	if removed, err := n.Sweep(); removed != 2 || err != nil {
		t.Errorf("%d were removed, %v", removed, err)
	}
	for manifest, want := range map[*tree.Manifest]bool{&first: true, &second: false, &third: true, &last: false} {
		if _, err := os.Stat(n.treePath(key{"vision", manifest.Digest()})); (err == nil) != want {
			t.Errorf("%s: %v", manifest.Digest().Short(), err)
		}
	}
	release()
	if size := n.size(t); n.mu.bytes != size || size > 1_200_000 {
		t.Errorf("%d bytes are counted of %d", n.mu.bytes, size)
	}
}

// What an agent left when it died is removed: chunks of a tree whose list is gone, and
// files without a name.
func TestSweepRemovesWhatACrashLeft(t *testing.T) {
	from := newServers("s1")
	manifest, chunks := sample(1)
	n := newNode(t, from)
	of := from.give("a1", manifest, chunks)
	n.copy(t, of)
	if err := errors.Join(
		os.Remove(n.treePath(of.key())),
		os.WriteFile(filepath.Join(n.making(), "half"), []byte("half of a chunk"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	n.open(t, from)
	if _, err := n.Sweep(); err != nil {
		t.Fatal(err)
	}
	if lists, chunks := n.files(t); len(lists)+len(chunks) > 0 {
		t.Errorf("left are %q, %q", lists, chunks)
	}
	dir, _ := n.copy(t, of)
	wantTree(t, dir, manifest, chunks)
}

// Where there is no room, old trees make way, and as many of them as it takes. A tree
// that no room could be made for costs none.
func TestRoomIsMade(t *testing.T) {
	from := newServers("s1")
	n := newNode(t, from)
	for i := range uint64(3) {
		manifest, chunks := sample(i)
		n.now = n.now.Add(time.Minute)
		n.copy(t, from.give("a", manifest, chunks))
	}
	manifest, chunks := sample(9)
	of := from.give("a9", manifest, chunks)
	n.total = 10_000_000 // of which 200,000 stay free
	full := n.size(t)
	n.Store.config.Space = func(string) (int64, int64, error) { return 800_000 + full - n.size(t), n.total, nil }
	dir, _ := n.copy(t, of) // it takes twice 500,000
	wantTree(t, dir, manifest, chunks)
	for seed, want := range map[uint64]bool{0: false, 1: true, 2: true} {
		old, _ := sample(seed)
		if _, err := os.Stat(n.treePath(key{"vision", old.Digest()})); (err == nil) != want {
			t.Errorf("tree %d: %v", seed, err)
		}
	}
	n.Store.config.Space = func(string) (int64, int64, error) { return 0, n.total, nil }
	before, _ := n.files(t)
	big, bigChunks := sample(10)
	for range 10 {
		big.Entries[7].Chunks = append(big.Entries[7].Chunks, big.Entries[7].Chunks...)
	}
	if _, _, err := n.try(t, from.give("a10", big, bigChunks)); !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v", err)
	}
	if after, _ := n.files(t); len(after) != len(before)+1 { // its own list
		t.Errorf("%d trees became %d", len(before), len(after))
	}
}
