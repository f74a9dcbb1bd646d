package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// childEnv makes this program prepare a dataset and be killed meanwhile.
const childEnv = "NOMADLIKE_DATA_TEST"

func TestMain(m *testing.M) {
	if dirs := os.Getenv(childEnv); dirs != "" {
		store, source, _ := strings.Cut(dirs, ":")
		s, err := Open(Config{Dir: store, BootID: "b", FreeMin: 0.001})
		if err == nil {
			var root *os.Root
			if root, err = os.OpenRoot(source); err == nil {
				_, err = s.Prepare(context.Background(), root, "child", func(int64, int64) {})
			}
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func quiet(int64, int64) {}

// dataset writes files of the given sizes.
func dataset(t testing.TB, chance *rand.Rand, sizes ...int) string {
	t.Helper()
	dir := t.TempDir()
	for i, size := range sizes {
		data := make([]byte, size)
		for k := range data {
			data[k] = byte(chance.Uint32())
		}
		name := filepath.Join(dir, "part"+strconv.Itoa(i%3), "file"+strconv.Itoa(i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, fs.FileMode(0o600|i%2*0o111)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openStore(t testing.TB, dir string, change ...func(*Config)) *Store {
	t.Helper()
	config := Config{Dir: dir, BootID: "b", FreeMin: 0.001}
	for _, f := range change {
		f(&config)
	}
	s, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func prepare(t testing.TB, s *Store, source, user string) (Copy, error) {
	t.Helper()
	root, err := os.OpenRoot(source)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return s.Prepare(context.Background(), root, user, quiet)
}

// same compares two trees, the slow and obvious way.
func same(t testing.TB, want, got string) {
	t.Helper()
	read := func(dir string) map[string]string {
		files := make(map[string]string)
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(dir, path)
			if entry.IsDir() {
				files[name] = "dir"
				return nil
			}
			data, err := os.ReadFile(path)
			files[name] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	a, b := read(want), read(got)
	for name, text := range a {
		if b[name] != text {
			t.Fatalf("%s differs: %d and %d bytes", name, len(text), len(b[name]))
		}
	}
	if len(a) != len(b) {
		t.Fatalf("%d files, want %d", len(b), len(a))
	}
}

func TestPrepare(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	source := dataset(t, chance, 0, 1, 100, 4096, chunkBytes, 2*chunkBytes+7)
	if err := os.Symlink("/etc/passwd", filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, t.TempDir())
	first, err := prepare(t, s, source, "a")
	if err != nil {
		t.Fatal(err)
	}
	if first.Files != 6 || first.Outside != 1 || first.Copied != first.Bytes || first.Bytes != 3*chunkBytes+4204 {
		t.Errorf("copy %+v", first)
	}
	if err := os.Remove(filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	same(t, source, first.Dir)
	if info, err := os.Stat(filepath.Join(first.Dir, "part1", "file1")); err != nil || info.Mode() != 0o511 {
		t.Errorf("mode %v, %v", info, err)
	}

	again, err := prepare(t, openStore(t, s.config.Dir), source, "b") // of a new agent
	if err != nil || again.Copied != 0 || again.Digest != first.Digest {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	touched := filepath.Join(source, "part0", "file0")
	if err := os.Chtimes(touched, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if again, err = prepare(t, s, source, "c"); err != nil || again.Digest != first.Digest {
		t.Errorf("with another time of a file: %+v, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(source, "part2", "file2"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed, err := prepare(t, s, source, "d")
	if err != nil || changed.Digest == first.Digest {
		t.Errorf("with other contents: %+v, %v", changed, err)
	}
	same(t, source, changed.Dir)
}

// TestWaitersShareACopy: one copies, the others wait.
func TestWaitersShareACopy(t *testing.T) {
	source := dataset(t, rand.New(rand.NewPCG(3, 4)), 1<<20, 1<<20, 5)
	s := openStore(t, t.TempDir())
	var all sync.WaitGroup
	copied := make([]int64, 8)
	for i := range copied {
		all.Go(func() {
			made, err := prepare(t, s, source, "user"+strconv.Itoa(i))
			if err != nil {
				t.Error(err)
			}
			copied[i] = made.Copied
		})
	}
	all.Wait()
	total := int64(0)
	for _, n := range copied {
		total += n
	}
	if total != 2<<20+5 {
		t.Errorf("copied %d bytes", total)
	}
}

// A copy that another made after the look, and before the claim, is found by a
// second look. The look is held open by a pipe in place of the index's file.
func TestCopyMadeSinceTheLook(t *testing.T) {
	source := dataset(t, rand.New(rand.NewPCG(3, 4)), 1<<10)
	s := openStore(t, t.TempDir())
	root, err := os.OpenRoot(source)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	l, err := list(t.Context(), root, s.path("lists"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	key, err := l.key()
	if err != nil {
		t.Fatal(err)
	}
	index := s.path("index", key)
	if err := errors.Join(os.MkdirAll(filepath.Dir(index), 0o700), syscall.Mkfifo(index, 0o600)); err != nil {
		t.Fatal(err)
	}
	second := make(chan Copy)
	go func() {
		made, err := prepare(t, s, source, "second")
		if err != nil {
			t.Error(err)
		}
		second <- made
	}()
	look, err := os.OpenFile(index, os.O_WRONLY, 0) // returns once the other reads
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	if _, mine := s.claim(key); !mine {
		t.Fatal("the other has claimed it already")
	}
	first, err := s.make(t.Context(), &copier{root: root, list: l}, key, "first", func(int64, int64) {})
	s.unclaim(key)
	if err != nil || first.Copied != 1<<10 {
		t.Fatalf("the first made %+v, %v", first, err)
	}
	if _, err := look.WriteString("gone"); err != nil {
		t.Fatal(err)
	}
	look.Close()
	if made := <-second; made.Copied != 0 || made.Digest != first.Digest {
		t.Errorf("the second made %+v", made)
	}
}

// TestKilledCopyGoesOn kills a process at random moments of its copy until one
// comes to the end. What comes out is whole, and what was done is not done again.
func TestKilledCopyGoesOn(t *testing.T) {
	chance := rand.New(rand.NewPCG(5, 6))
	sizes := []int{3*chunkBytes + 1, chunkBytes + 5}
	for range 400 {
		sizes = append(sizes, chance.IntN(20_000))
	}
	source, dir := dataset(t, chance, sizes...), t.TempDir()
	kills := 0
	for {
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), childEnv+"="+dir+":"+source)
		var out bytes.Buffer
		child.Stdout = &out
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Duration(10+chance.IntN(60)+8*kills)*time.Millisecond, func() { child.Process.Kill() })
		err := child.Wait()
		kill.Stop()
		if err == nil {
			break
		}
		if child.ProcessState.Exited() {
			t.Fatalf("%v: %s", err, out.String())
		}
		if kills++; kills > 200 {
			t.Fatal("it never comes to the end")
		}
	}
	t.Logf("killed %d times", kills)
	s := openStore(t, dir)
	made, err := prepare(t, s, source, "a")
	if err != nil || made.Copied != 0 {
		t.Fatalf("copy %+v, %v", made, err)
	}
	same(t, source, made.Dir)
}

// TestResume: a copy that was broken off goes on, and after a crash of the
// machine nothing is believed that the disk does not hold.
func TestResume(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		sizes := make([]int, rapid.IntRange(1, 30).Draw(rt, "files"))
		for i := range sizes {
			sizes[i] = chance.IntN(3000)
		}
		source, dir := dataset(t, chance, sizes...), t.TempDir()
		root, err := os.OpenRoot(source)
		if err != nil {
			rt.Fatal(err)
		}
		defer root.Close()
		ctx, cancel := context.WithCancel(context.Background())
		s := openStore(t, dir)
		stopAt := int64(rapid.IntRange(0, 20_000).Draw(rt, "stop"))
		_, err = s.Prepare(ctx, root, "a", func(done, _ int64) {
			if done >= stopAt {
				cancel()
			}
		})
		cancel()
		crashed := rapid.Bool().Draw(rt, "crash of the machine")
		boot := "b"
		if err != nil && crashed {
			boot = "c"
			files, _ := filepath.Glob(filepath.Join(dir, "parts", "*", "tree", "*", "*"))
			for _, name := range files {
				if chance.IntN(2) == 0 { // never reached the disk
					_ = os.Chmod(name, 0o644)
					info, _ := os.Stat(name)
					if err := os.WriteFile(name, make([]byte, info.Size()), 0o644); err != nil {
						rt.Fatal(err)
					}
				}
			}
			journals, _ := filepath.Glob(filepath.Join(dir, "parts", "*", "journal"))
			for _, name := range journals {
				if info, _ := os.Stat(name); chance.IntN(2) == 0 {
					_ = os.Truncate(name, chance.Int64N(info.Size()+1))
				}
			}
		}
		made, err := openStore(t, dir, func(c *Config) { c.BootID = boot }).Prepare(context.Background(), root, "a", quiet)
		if err != nil {
			rt.Fatal(err)
		}
		same(t, source, made.Dir)
	})
}

// TestRoom: what nobody uses makes way, longest unused first, what is used
// stays, and the threshold is never passed.
func TestRoom(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 8))
	now := time.Unix(1e9, 0)
	dir := t.TempDir()
	const total = 10_000
	s := openStore(t, dir, func(c *Config) {
		c.FreeMin, c.Retention = 0.2, time.Hour
		c.Now = func() time.Time { return now }
		c.Space = func(string) (int64, int64, error) {
			used := int64(0)
			_ = filepath.WalkDir(filepath.Join(dir, "sets"), func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.Type().IsRegular() && strings.Contains(path, "/tree/") {
					info, _ := entry.Info()
					used += info.Size()
				}
				return nil
			})
			return total - used, total, nil
		}
	})
	sources := make([]string, 4)
	for i := range sources {
		sources[i] = dataset(t, chance, 3000)
	}
	digests := make([]string, 4)
	for i, source := range sources[:2] {
		made, err := prepare(t, s, source, "user"+strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		digests[i] = made.Digest
		now = now.Add(time.Minute)
	}
	if _, err := prepare(t, s, sources[2], "user2"); !errors.Is(err, ErrNoRoom) {
		t.Fatalf("9000 of 10000 bytes, 2000 to stay free: %v", err)
	}
	has := func(i int) bool {
		_, err := os.Stat(filepath.Join(dir, "sets", digests[i]))
		return err == nil
	}
	for i := range 2 {
		if err := s.Release("user" + strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
	if _, err := prepare(t, s, sources[2], "user2"); err != nil || has(0) || !has(1) {
		t.Fatalf("the one unused longest goes: %v, has %v %v", err, has(0), has(1))
	}
	now = now.Add(2 * time.Hour)
	if removed, err := s.Sweep(func(user string) bool { return user == "user2" }); err != nil || removed != 1 || has(1) {
		t.Fatalf("after the retention: %d, %v", removed, err)
	}
	if removed, err := s.Sweep(func(string) bool { return false }); err != nil || removed != 0 {
		// its use is gone with its user, and its time is that of the last use
		if err != nil || removed != 1 {
			t.Fatalf("of a user that is gone: %d, %v", removed, err)
		}
	}
}

// TestChangingSource: a source that changes under the copy is not taken for
// what it was.
func TestChangingSource(t *testing.T) {
	source := dataset(t, rand.New(rand.NewPCG(9, 9)), 2*chunkBytes, 100)
	s := openStore(t, t.TempDir())
	root, err := os.OpenRoot(source)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var once sync.Once
	_, err = s.Prepare(context.Background(), root, "a", func(int64, int64) {
		once.Do(func() {
			if err := os.Truncate(filepath.Join(source, "part0", "file0"), chunkBytes); err != nil {
				t.Error(err)
			}
		})
	})
	if !errors.Is(err, ErrChanged) {
		t.Fatalf("error %v", err)
	}
	made, err := prepare(t, s, source, "a")
	if err != nil {
		t.Fatal(err)
	}
	same(t, source, made.Dir)
}
