package code

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Attack: a server that somebody has broken into sends a list that leads out of the
// task's directory. The list has the digest that the job names, since the job came from
// that server as well.
func TestAHostileListWritesNothing(t *testing.T) {
	content := []byte("written by a stranger")
	chunk := []tree.Chunk{{Digest: tree.DigestOf(content), Size: int64(len(content))}}
	file := func(path string) tree.Entry {
		return tree.Entry{Path: path, Kind: tree.KindFile, Mode: 0o644, Chunks: chunk}
	}
	dir := func(path string) tree.Entry { return tree.Entry{Path: path, Kind: tree.KindDir, Mode: 0o755} }
	link := func(path, target string) tree.Entry {
		return tree.Entry{Path: path, Kind: tree.KindLink, Target: target}
	}
	for name, entries := range map[string][]tree.Entry{
		"up":                        {file("../outside")},
		"up behind a directory":     {dir("a"), file("a/../../outside")},
		"absolute":                  {file("/tmp/nomadlike-outside")},
		"the directory itself":      {file(".")},
		"no name":                   {file("")},
		"a zero byte":               {file("a\x00b")},
		"twice":                     {file("a"), file("a")},
		"out of order":              {file("b"), file("a")},
		"a file as a directory":     {file("a"), file("a/b")},
		"a link as a directory":     {link("a", "."), file("a/b")},
		"no parent":                 {file("a/b")},
		"a link out":                {link("a", "../outside")},
		"a link to the root":        {link("a", "/etc/passwd")},
		"a link by way of another":  {dir("d"), link("d/a", "."), link("e", "d/a/../../outside")},
		"a name too long":           {file(strings.Repeat("a", 256))},
		"a program that changes id": {{Path: "a", Kind: tree.KindFile, Mode: 0o4755, Chunks: chunk}},
		"a device":                  {{Path: "a", Kind: 9, Mode: 0o644}},
		"a chunk of nothing":        {{Path: "a", Kind: tree.KindFile, Mode: 0o644, Chunks: []tree.Chunk{{Digest: tree.DigestOf(nil)}}}},
		"a chunk too large":         {{Path: "a", Kind: tree.KindFile, Mode: 0o644, Chunks: []tree.Chunk{{Digest: chunk[0].Digest, Size: 1 << 40}}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := newServers("s1")
				manifest := tree.Manifest{Entries: entries}
				of := from.give("a1", manifest, map[tree.Digest][]byte{chunk[0].Digest: content})
				n := newNode(t, from)
				copied, _, err := n.try(t, of)
				if structs.CodeOf(err) != structs.CodeInvalid {
					t.Errorf("it is taken: %v", err)
				}
				for _, place := range []string{copied, filepath.Join(filepath.Dir(copied), "outside"), "/tmp/nomadlike-outside"} {
					if _, err := os.Lstat(place); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s was written: %v", place, err)
					}
				}
				if lists, chunks := n.files(t); len(lists)+len(chunks) > 0 {
					t.Errorf("kept are %q, %q", lists, chunks)
				}
			})
		})
	}
}

// Attack: a job that names no digest, but a path.
func TestADigestIsNoPath(t *testing.T) {
	from := newServers("s1")
	n := newNode(t, from)
	for _, digest := range []tree.Digest{"", "sha256:", "sha256:../../../../etc/passwd", "../x", tree.Digest("sha256:" + strings.Repeat("A", 64)), tree.Digest("sha256:" + strings.Repeat("/", 64))} {
		if _, _, err := n.try(t, Wanted{AllocID: "a1", Project: "vision", Tree: digest}); structs.CodeOf(err) != structs.CodeInvalid || len(from.opened) > 0 {
			t.Errorf("%q: %v", digest, err)
		}
	}
	manifest, chunks := sample(1)
	of := from.give("a1", manifest, chunks)
	for _, project := range []string{"", "..", "../../other", "a/b", making(n)} { // a project's name is no path either
		of.Project = project
		n.copy(t, of)
	}
	entries, err := os.ReadDir(n.dir)
	if err != nil || len(entries) != 6 { // with that of files in the making
		t.Errorf("%v, %v", entries, err)
	}
}

func making(*node) string { return makingDir }

// Attack: a server sends another tree, or other bytes, than the job names. Another
// server has the right ones; without one nothing is taken.
func TestWrongBytesAreNotTaken(t *testing.T) {
	other, otherChunks := sample(2)
	for name, wrong := range map[string]fault{
		"another list":     {manifest: &other},
		"other bytes":      {spoil: func(content []byte) []byte { content[len(content)/2] ^= 1; return content }},
		"less":             {spoil: func(content []byte) []byte { return content[:len(content)-1] }},
		"more":             {spoil: func(content []byte) []byte { return append(content, 0) }},
		"nothing":          {spoil: func([]byte) []byte { return nil }},
		"one after a good": {spoil: spoilThird()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := newServers("bad")
				manifest, chunks := sample(1)
				from.give("other", other, otherChunks)
				of := from.give("a1", manifest, chunks)
				from.faults["bad"] = wrong
				n := newNode(t, from)
				dir, _, err := n.try(t, of)
				if name != "one after a good" {
					if !errors.Is(err, ErrCorrupt) {
						t.Errorf("it is taken: %v", err)
					}
					if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("the task would find something: %v", err)
					}
				}
				from.addrs = []string{"bad", "good"}
				dir, _ = n.copy(t, of)
				wantTree(t, dir, manifest, chunks)
			})
		})
	}
}

// spoilThird spoils every third chunk that it is shown.
func spoilThird() func([]byte) []byte {
	shown := 0
	return func(content []byte) []byte {
		if shown++; shown%3 == 0 {
			content[0] ^= 1
		}
		return content
	}
}

// Attack: a job of another project names the digest of a tree that lies on the node.
// It gets what the servers let its project have: nothing.
func TestAnotherProjectFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newServers("s1")
		manifest, chunks := sample(1)
		of := from.give("a1", manifest, chunks)
		n := newNode(t, from)
		n.copy(t, of)
		thief := Wanted{AllocID: "b1", Project: "speech", Tree: of.Tree}
		if dir, _, err := n.try(t, thief); structs.CodeOf(err) != structs.CodeForbidden {
			t.Errorf("%s holds it: %v", dir, err)
		}
		// Chunks are not shared either: a tree of its own with one chunk of the other's.
		mixed := tree.Manifest{Entries: slices.Clone(manifest.Entries)}
		stolen := from.give("b2", mixed, nil)
		stolen.Project = "speech"
		from.faults["s1"] = fault{breaks: 1} // it hands out nothing that matters
		from.chunks = map[tree.Digest][]byte{}
		if dir, _, err := n.try(t, stolen); err == nil {
			t.Errorf("%s holds it", dir)
		}
	})
}

// What is damaged on the disk is found when it is used, after a start as well, and
// fetched again. Without a server the task does not start: it never sees other bytes.
func TestDamageOnTheDiskIsCured(t *testing.T) {
	manifest, chunks := sample(1)
	edit := func(path string, change func([]byte) []byte) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, change(content), 0o600)
	}
	each := func(paths []string, do func(path string) error) (err error) {
		for _, path := range paths {
			err = errors.Join(err, do(path))
		}
		return err
	}
	for name, damage := range map[string]func(lists, chunks []string) error{
		"one bit of a chunk": func(_, chunks []string) error {
			return edit(chunks[0], func(b []byte) []byte { b[0] ^= 0x80; return b })
		},
		"all chunks": func(_, chunks []string) error {
			return each(chunks, func(path string) error { return edit(path, func(b []byte) []byte { b[len(b)-1]++; return b }) })
		},
		"a chunk cut off": func(_, chunks []string) error { return os.Truncate(chunks[1], 0) },
		"a chunk longer":  func(_, chunks []string) error { return edit(chunks[1], func(b []byte) []byte { return append(b, 1) }) },
		"a chunk gone":    func(_, chunks []string) error { return os.Remove(chunks[2]) },
		"the list":        func(lists, _ []string) error { return edit(lists[0], func(b []byte) []byte { b[40] ^= 1; return b }) },
		"an empty list":   func(lists, _ []string) error { return os.Truncate(lists[0], 0) },
		"another in its place": func(lists, _ []string) error {
			other, _ := sample(2)
			return os.WriteFile(lists[0], other.Encode(), 0o600)
		},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %t", name, restarted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					from := newServers("s1")
					of := from.give("a1", manifest, chunks)
					n := newNode(t, from)
					n.copy(t, of)
					if err := damage(n.files(t)); err != nil {
						t.Fatal(err)
					}
					if restarted {
						n.open(t, from)
					}
					from.faults["s1"] = fault{away: true}
					if _, _, err := n.try(t, of); structs.CodeOf(err) != structs.CodeUnavailable {
						t.Errorf("the task would start: %v", err)
					}
					delete(from.faults, "s1")
					dir, _ := n.copy(t, of)
					wantTree(t, dir, manifest, chunks)
					from.faults["s1"] = fault{away: true}
					dir, _ = n.copy(t, of) // it is cured on the disk as well
					wantTree(t, dir, manifest, chunks)
				})
			})
		}
	}
}

// A real disk that is full: what is half written is not found, the error says so, and
// when there is room it goes on.
func TestAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small disk")
	}
	for name, size := range map[string]string{"in the cache": "300k", "in the copy": "700k"} {
		t.Run(name, func(t *testing.T) {
			disk := t.TempDir()
			if err := syscall.Mount("none", disk, "tmpfs", 0, "size="+size); err != nil {
				t.Fatalf("mount: %v", err)
			}
			defer func() {
				if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			}()
			from := newServers("s1")
			manifest, chunks := sample(1)
			of := from.give("a1", manifest, chunks)
			n := &node{dir: filepath.Join(disk, "cache"), now: time.Now(), free: 1 << 40, total: 1 << 41} // it is not foreseen
			n.open(t, from)
			if err := os.Mkdir(filepath.Join(disk, "task"), 0o700); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(filepath.Join(disk, "task"))
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if _, err := n.Copy(t.Context(), of, root, "code", nobodys, nil); !errors.Is(err, ErrNoRoom) {
				t.Fatalf("%v", err)
			}
			if half, err := os.ReadDir(n.making()); err != nil || len(half) > 0 {
				t.Errorf("half written are %v, %v", half, err)
			}
			if err := syscall.Mount("none", disk, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
				t.Fatalf("remount: %v", err)
			}
			if _, err := n.Copy(t.Context(), of, root, "code", nobodys, nil); err != nil {
				t.Fatal(err)
			}
			wantTree(t, filepath.Join(disk, "task/code"), manifest, chunks)
			for digest, times := range from.sent {
				if times > 2 {
					t.Errorf("chunk %s was sent %d times", digest.Short(), times)
				}
			}
		})
	}
}

// Attack: a task of before goes on in the directory in which the copy is made, and
// swaps it for links that lead elsewhere.
func TestACopyStaysInTheTaskThatSwapsLinks(t *testing.T) {
	from := newServers("s1")
	manifest, chunks := sample(1)
	of := from.give("a1", manifest, chunks)
	n := newNode(t, from)
	dir := t.TempDir()
	task, outside := filepath.Join(dir, "task"), filepath.Join(dir, "outside")
	for _, path := range []string{task, outside, filepath.Join(task, "own")} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "run.sh"), []byte("of the host"), 0o600), os.Symlink("../outside", filepath.Join(task, "link"))); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(task)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	over := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		at := filepath.Join(task, "code")
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			other := filepath.Join(task, []string{"link", "own"}[i%2])
			_ = os.Rename(at, filepath.Join(task, "aside")) // it may not be there
			_ = os.Rename(other, at)
			_ = os.Rename(at, other)
			_ = os.RemoveAll(filepath.Join(task, "aside"))
		}
	})
	made := 0
	for range 300 {
		if _, err := n.Copy(t.Context(), of, root, "code", nobodys, nil); err == nil {
			made++
		}
	}
	close(over)
	swaps.Wait()
	entries, err := os.ReadDir(outside)
	text, readErr := os.ReadFile(filepath.Join(outside, "run.sh"))
	if err := errors.Join(err, readErr); err != nil || len(entries) != 1 || string(text) != "of the host" {
		t.Errorf("outside there is %v with %q, %v", entries, text, err)
	}
	t.Logf("%d of 300 copies were made in spite of it", made)
}

// What cannot be written to can be removed, by agents that are not root as well.
func TestLockedDirectoriesAreOpened(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(root.MkdirAll("code/a/b", 0o755), root.Symlink("..", "code/out"), root.WriteFile("code/a/b/f", nil, 0o400),
		root.Chmod("code/a/b", 0o500), root.Chmod("code/a", 0o100), root.Chmod("code", 0o555)); err != nil {
		t.Fatal(err)
	}
	if err := openDirs(root, "code"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"code", "code/a", "code/a/b"} {
		if info, err := root.Lstat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("what a link leads to was opened: %v, %v", info.Mode(), err)
	}
}

// childEnv makes this program an agent that brings code until it is killed.
const childEnv = "NOMADLIKE_TEST_CODE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(bringCode(dir))
	}
	os.Exit(m.Run())
}

// bringCode makes one copy after the other and says when it begins, with servers that
// take their time.
func bringCode(dir string) int {
	from := newServers("s1")
	store, err := Open(Config{Dir: filepath.Join(dir, "cache"), Ask: slowly(from.ask), Servers: from.list})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	root, err := os.OpenRoot(filepath.Join(dir, "task"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("begun")
	for i := uint64(0); ; i = (i + 1) % 3 {
		manifest, chunks := sample(i)
		if _, err := store.Copy(context.Background(), from.give("a", manifest, chunks), root, "code", nobodys, nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if _, err := store.Sweep(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

// slowly lets each chunk take a moment, so that kills come in the middle.
func slowly(ask Ask) Ask {
	return func(ctx context.Context, addr, alloc string) (Source, error) {
		from, err := ask(ctx, addr, alloc)
		return slow{from}, err
	}
}

type slow struct{ Source }

func (s slow) Chunks(want []tree.Chunk, took func(tree.Chunk, []byte) error) error {
	return s.Source.Chunks(want, func(chunk tree.Chunk, content []byte) error {
		<-time.After(500 * time.Microsecond)
		return took(chunk, content)
	})
}

// kill -9 of the agent in the middle: the next one goes on with what is there, and what
// it makes is whole.
func TestKilledInTheMiddle(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "task"), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Join(dir, "task"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for round := range 25 {
		kill(t, self, dir, time.Duration(rand.IntN(20_000))*time.Microsecond)
		from := newServers("s1")
		n := &node{dir: filepath.Join(dir, "cache"), now: time.Now(), free: 1 << 40, total: 1 << 41}
		n.open(t, from)
		manifest, chunks := sample(uint64(round % 3))
		if _, err := n.Copy(t.Context(), from.give("a", manifest, chunks), root, "code", nobodys, nil); err != nil {
			t.Fatal(err)
		}
		wantTree(t, filepath.Join(dir, "task/code"), manifest, chunks)
		if half, err := os.ReadDir(n.making()); err != nil || len(half) > 0 {
			t.Errorf("half written are %v, %v", half, err)
		}
		if round%5 == 4 { // from the beginning
			if err := os.RemoveAll(n.dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func kill(t *testing.T, self, dir string, after time.Duration) {
	t.Helper()
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), childEnv+"="+dir)
	var trouble bytes.Buffer
	child.Stderr = &trouble
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child did not begin: %v: %s", err, &trouble)
	}
	<-time.After(after) // the moment of the kill is any
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); child.ProcessState.ExitCode() != -1 {
		t.Fatalf("the child ended by itself: %v: %s", err, &trouble)
	}
}
