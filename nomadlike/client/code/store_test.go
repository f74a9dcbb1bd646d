package code

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// What was sent is what each task finds, and what one does with it no other sees.
func TestEveryTaskHasItsOwnCopy(t *testing.T) {
	from := newServers("s1")
	manifest, chunks := sample(1)
	of := from.give("a1", manifest, chunks)
	n := newNode(t, from)
	dir, made := n.copy(t, of)
	wantTree(t, dir, manifest, chunks)
	if made.Files != manifest.Files() || made.Bytes != manifest.Bytes() || made.Fetched != manifest.Bytes()-int64(len("in two files")) {
		t.Errorf("%+v", made)
	}

	// The task does what it likes.
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "run.sh"), []byte("something else"), 0o755),
		os.Truncate(filepath.Join(dir, "model.bin"), 3),
		os.Remove(filepath.Join(dir, "conf/a.yaml")),
		os.WriteFile(filepath.Join(dir, "conf/new"), []byte("new"), 0o644),
		os.Chmod(filepath.Join(dir, "locked/read.txt"), 0o777),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	from.give("a2", manifest, chunks)
	from.faults["s1"] = fault{away: true} // what is here needs no server
	of.AllocID = "a2"
	second, made := n.copy(t, of)
	wantTree(t, second, manifest, chunks)
	if made.Fetched != 0 {
		t.Errorf("%d bytes were fetched again", made.Fetched)
	}
	for digest, times := range from.sent {
		if times != 1 {
			t.Errorf("chunk %s was sent %d times", digest.Short(), times)
		}
	}
}

// A preparation that is repeated begins anew, whatever lies there.
func TestACopyIsMadeAnew(t *testing.T) {
	from := newServers("s1")
	manifest, chunks := sample(1)
	of := from.give("a1", manifest, chunks)
	n := newNode(t, from)
	task := t.TempDir()
	root, err := os.OpenRoot(task)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	outside := t.TempDir()
	for _, plant := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(filepath.Join(task, "code/left"), []byte("of before"), 0o600) },
		func() error {
			return errors.Join(os.RemoveAll(filepath.Join(task, "code")), os.Symlink(outside, filepath.Join(task, "code")))
		},
		func() error {
			return errors.Join(os.RemoveAll(filepath.Join(task, "code")), os.WriteFile(filepath.Join(task, "code"), nil, 0o600))
		},
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Copy(t.Context(), of, root, "code", nobodys, nil); err != nil {
			t.Fatal(err)
		}
		wantTree(t, filepath.Join(task, "code"), manifest, chunks)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside there is %v, %v", entries, err)
	}
}

// All of a copy is handed over, the directory itself at last.
func TestACopyIsHandedOver(t *testing.T) {
	from := newServers("s1")
	manifest, chunks := sample(1)
	of := from.give("a1", manifest, chunks)
	n := newNode(t, from)
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var given []string
	_, err = n.Copy(t.Context(), of, root, "code", func(_ *os.Root, path string) error {
		if info, err := root.Lstat("code"); err != nil || path != "." && info.Mode().Perm() != 0o700 {
			t.Errorf("others get to %s before it is theirs: %s, %v", path, info.Mode(), err)
		}
		given = append(given, path)
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(given) != len(manifest.Entries)+1 || given[len(given)-1] != "." {
		t.Errorf("%q", given)
	}
}

// Many ranks of a node that start together fetch their code once.
func TestRanksFetchTogether(t *testing.T) {
	from := newServers("s1")
	manifest, chunks := sample(1)
	of := from.give("a", manifest, chunks)
	n := newNode(t, from)
	var ranks sync.WaitGroup
	dirs := make([]string, 16)
	for i := range dirs {
		ranks.Go(func() {
			var err error
			if dirs[i], _, err = n.try(t, of); err != nil {
				t.Error(err)
			}
		})
	}
	ranks.Wait()
	for _, dir := range dirs {
		wantTree(t, dir, manifest, chunks)
	}
	for digest, times := range from.sent {
		if times != 1 {
			t.Errorf("chunk %s was sent %d times", digest.Short(), times)
		}
	}
	if len(n.mu.using)+len(n.mu.making) > 0 {
		t.Errorf("left are %v, %v", n.mu.using, n.mu.making)
	}
}

// Of a tree that was changed a little, only what is new comes.
func TestOnlyWhatIsNewIsFetched(t *testing.T) {
	from := newServers("s1")
	manifest, chunks := sample(1)
	n := newNode(t, from)
	n.copy(t, from.give("a1", manifest, chunks))
	changed := tree.Manifest{Entries: slices.Clone(manifest.Entries)}
	content := []byte("seed: another")
	chunks[tree.DigestOf(content)] = content
	changed.Entries[1].Chunks = []tree.Chunk{{Digest: tree.DigestOf(content), Size: int64(len(content))}}
	dir, made := n.copy(t, from.give("a2", changed, chunks))
	wantTree(t, dir, changed, chunks)
	if made.Fetched != int64(len(content)) {
		t.Errorf("%d bytes were fetched", made.Fetched)
	}
}

// How far it is rises to the whole.
func TestProgressIsTold(t *testing.T) {
	from := newServers("s1")
	manifest, chunks := sample(1)
	of := from.give("a1", manifest, chunks)
	n := newNode(t, from)
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var mu sync.Mutex
	var most, whole int64
	made, err := n.Copy(t.Context(), of, root, "code", nobodys, func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		most, whole = max(most, done), total
	})
	if err != nil || most != made.Fetched || whole != made.Fetched {
		t.Errorf("%d of %d of %d, %v", most, whole, made.Fetched, err)
	}
}

// A server that breaks off, or says nothing, is followed by another, which is asked for
// the rest; nothing comes twice.
func TestAnotherServerGoesOn(t *testing.T) {
	for name, first := range map[string]fault{"away": {away: true}, "breaks off": {breaks: 2}, "silent": {silent: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := newServers("s1", "s2")
				manifest, chunks := sample(1)
				of := from.give("a1", manifest, chunks)
				from.faults["s1"] = first
				n := newNode(t, from)
				begun := time.Now()
				dir, _ := n.copy(t, of)
				wantTree(t, dir, manifest, chunks)
				for digest, times := range from.sent {
					if times != 1 {
						t.Errorf("chunk %s was sent %d times", digest.Short(), times)
					}
				}
				if took := time.Since(begun); took > 2*askSilence {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A tree of many files comes in many batches. A server that breaks off is followed by
// another, and what has come does not come again.
func TestManyFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newServers("s1", "s2")
		chunks := make(map[tree.Digest][]byte)
		var manifest tree.Manifest
		for i := range 5 * batchChunks {
			content := fmt.Appendf(nil, "file %d", i%(5*batchChunks-7)) // a few are the same
			chunk := tree.Chunk{Digest: tree.DigestOf(content), Size: int64(len(content))}
			chunks[chunk.Digest] = content
			manifest.Entries = append(manifest.Entries, tree.Entry{Path: fmt.Sprintf("%05d", i), Kind: tree.KindFile, Mode: 0o644, Chunks: []tree.Chunk{chunk}})
		}
		of := from.give("a1", manifest, chunks)
		from.faults["s1"] = fault{breaks: 100}
		dir, _ := newNode(t, from).copy(t, of)
		wantTree(t, dir, manifest, chunks)
		for digest, times := range from.sent {
			if times != 1 {
				t.Errorf("chunk %s was sent %d times", digest.Short(), times)
			}
		}
		if from.opened["s1"] != 1 || from.opened["s2"] != 1 {
			t.Errorf("servers were asked %v times", from.opened)
		}
	})
}

// A server that is slow is not silent.
func TestASlowServerIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newServers("s1")
		manifest, chunks := sample(1)
		of := from.give("a1", manifest, chunks)
		n := newNode(t, from, func(c *Config) {
			c.Ask = func(ctx context.Context, addr, alloc string) (Source, error) {
				source, err := from.ask(ctx, addr, alloc)
				return dawdling{source}, err
			}
		})
		begun := time.Now()
		dir, _ := n.copy(t, of)
		wantTree(t, dir, manifest, chunks)
		if took := time.Since(begun); took < 2*askSilence || from.opened["s1"] != 1 {
			t.Errorf("it took %s, and the server was asked %d times", took, from.opened["s1"])
		}
	})
}

// dawdling is a source that takes most of the patience for each chunk.
type dawdling struct{ Source }

func (d dawdling) Chunks(want []tree.Chunk, took func(tree.Chunk, []byte) error) error {
	return d.Source.Chunks(want, func(chunk tree.Chunk, content []byte) error {
		<-time.After(askSilence - time.Second)
		return took(chunk, content)
	})
}

// Servers that come back are found; those that stay away end the preparation, and so
// does whoever gives up.
func TestServersThatAreAway(t *testing.T) {
	away := fault{away: true}
	manifest, chunks := sample(1)
	t.Run("come back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			from := newServers("s1")
			of := from.give("a1", manifest, chunks)
			from.faults["s1"] = away
			time.AfterFunc(5*time.Second, func() {
				from.mu.Lock()
				defer from.mu.Unlock()
				delete(from.faults, "s1")
			})
			dir, _ := newNode(t, from).copy(t, of)
			wantTree(t, dir, manifest, chunks)
		})
	})
	t.Run("stay away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			from := newServers("s1", "s2")
			of := from.give("a1", manifest, chunks)
			from.faults["s1"], from.faults["s2"] = away, away
			_, _, err := newNode(t, from).try(t, of)
			if structs.CodeOf(err) != structs.CodeUnavailable || from.opened["s1"] != askRounds {
				t.Errorf("%v after %d rounds", err, from.opened["s1"])
			}
		})
	})
	t.Run("given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			from := newServers("s1")
			of := from.give("a1", manifest, chunks)
			from.faults["s1"] = fault{silent: true}
			n := newNode(t, from)
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			begun := time.Now()
			if _, err := n.Copy(ctx, of, root, "code", nobodys, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 3*time.Second {
				t.Errorf("%v after %s", err, time.Since(begun))
			}
		})
	})
}

// A server that has not heard of an allocation says no; when all go on saying so, it is
// no.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newServers("s1", "s2")
		manifest, chunks := sample(1)
		of := from.give("elsewhere", manifest, chunks)
		of.AllocID = "a1"
		n := newNode(t, from)
		if _, _, err := n.try(t, of); structs.CodeOf(err) != structs.CodeForbidden || from.opened["s2"] != askRefusals {
			t.Errorf("%v after %d rounds", err, from.opened["s2"])
		}
		time.AfterFunc(time.Second, func() { from.give("a1", manifest, chunks) })
		dir, _ := n.copy(t, of)
		wantTree(t, dir, manifest, chunks)
	})
}
