package objects

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// TestVersions: a version is a directory that jobs read where they look for data; the
// next one shares what has stayed, and takes from it what it can of what changed.
func TestVersions(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	large := random(1, 5<<20)
	first := sampleOf(t, map[string]string{
		"a.txt": "one", "deep/er/b.txt": "two", "deep/run.sh": "#!/bin/sh", "large": large, "empty": "", "none/": "", "again": "one", "link": "-> deep/er/b.txt", ".gitignore": "a.txt",
	})
	sent, err := first.push(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := first.manifest.Bytes() - 3; sent != want { // "one" is there twice
		t.Errorf("%d bytes were sent, not %d", sent, want)
	}
	at := filepath.Join(dir, "dataset", "vision", "cifar10")
	want := strings.Join([]string{
		"-r--r--r-- .gitignore a.txt", "-r--r--r-- a.txt one", "-r--r--r-- again one", "-r--r--r-- deep/er/b.txt two",
		"-r--r--r-- empty ", "-r--r--r-- large " + tree.DigestOf([]byte(large)).Short(), "-r-xr-xr-x deep/run.sh #!/bin/sh",
		"Lrwxrwxrwx link -> deep/er/b.txt", "dr-xr-xr-x .", "dr-xr-xr-x deep", "dr-xr-xr-x deep/er", "dr-xr-xr-x none",
	}, "\n")
	if got := shown(t, filepath.Join(at, "1")); got != want {
		t.Errorf("the version:\n%s\nnot:\n%s", got, want)
	}
	changed := large[:1<<20] + "something else" + large[1<<20:]
	second := sampleOf(t, map[string]string{"a.txt": "one", "moved.txt": "two", "deep/run.sh": "#!/bin/sh", "large": changed, "new": "three"})
	sent, err = second.push(s, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if sent > 3<<20 || sent < 5 {
		t.Errorf("%d bytes were sent of %d, most of which were there", sent, second.manifest.Bytes())
	}
	if got := shown(t, filepath.Join(at, "2")); !strings.Contains(got, "large "+tree.DigestOf([]byte(changed)).Short()) || !strings.Contains(got, "moved.txt two") {
		t.Errorf("the second version:\n%s", got)
	}
	for _, same := range [][2]string{{"1/a.txt", "2/a.txt"}, {"1/deep/er/b.txt", "2/moved.txt"}, {"1/deep/run.sh", "2/deep/run.sh"}} {
		one, err1 := os.Stat(filepath.Join(at, same[0]))
		other, err2 := os.Stat(filepath.Join(at, same[1]))
		if err1 != nil || err2 != nil || !os.SameFile(one, other) {
			t.Errorf("%v are not one file: %v, %v", same, err1, err2)
		}
	}
	if got := shown(t, filepath.Join(at, ".nomadlike")); strings.Contains(got, "up-") || !strings.Contains(got, "drwx------ .") {
		t.Errorf("what is left beside them:\n%s", got)
	}
	if _, err := finish(s, second.place(2, 1), "upload-2"); err != nil {
		t.Errorf("to finish it again: %v", err)
	}
	remove := &structs.DataAsk{What: structs.DataAskRemove, Place: first.place(1, 0)}
	if _, err := s.Answer(t.Context(), remove); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(at, "1")); !os.IsNotExist(err) {
		t.Errorf("the removed version: %v", err)
	}
	if reply := verified(t, s, second.place(2, 0)); reply.Wrongs != 0 {
		t.Errorf("what shared files with it: %+v", reply)
	}
	if _, err := s.Answer(t.Context(), remove); err != nil {
		t.Errorf("to remove it again: %v", err)
	}
}

func verified(t *testing.T, s *Store, place structs.DataPlace) *structs.DataReply {
	t.Helper()
	for {
		reply, err := s.Answer(t.Context(), &structs.DataAsk{What: structs.DataAskVerify, Place: place, Upload: "verify-" + strings.ReplaceAll(t.Name(), "/", "-") + time.Now().Format("150405.000000000")[7:]})
		if err != nil {
			t.Fatal(err)
		}
		if reply.Done {
			return reply
		}
	}
}

// TestRead: a version is read back by its manifest, and what a disk has changed is told
// and not passed on.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	one := sampleOf(t, map[string]string{"a": "one", "b/c": "two", "b/d": random(2, 3<<20)})
	if _, err := one.push(s, 1, 0); err != nil {
		t.Fatal(err)
	}
	place := one.place(1, 0)
	reply, err := s.Answer(t.Context(), &structs.DataAsk{What: structs.DataAskList, Place: place})
	if err != nil || string(reply.Data) != string(one.manifest.Encode()) || reply.Total != int64(len(reply.Data)) {
		t.Fatalf("the manifest: %v", err)
	}
	reply, err = s.Answer(t.Context(), &structs.DataAsk{What: structs.DataAskRead, Place: place, Chunks: one.asked()})
	if err != nil || int64(len(reply.Data)) != one.manifest.Bytes() || !strings.HasPrefix(string(reply.Data), "onetwo") {
		t.Fatalf("%d bytes, %v", len(reply.Data), err)
	}
	if reply := verified(t, s, place); reply.Wrongs != 0 || reply.Files != 3 || reply.Bytes != one.manifest.Bytes() {
		t.Errorf("verified: %+v", reply)
	}
	at := filepath.Join(dir, "dataset/vision/cifar10/1")
	for _, err := range []error{
		os.Chmod(at, 0o755), os.Chmod(at+"/b", 0o755), os.Chmod(at+"/a", 0o644),
		os.WriteFile(at+"/a", []byte("eno"), 0), os.Remove(at + "/b/c"), os.WriteFile(at+"/b/e", nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []structs.DataWrong{{Path: "a", What: structs.DataChanged}, {Path: "b/e", What: structs.DataExtra}, {Path: "b/c", What: structs.DataGone}}
	got := verified(t, s, place)
	if got.Wrongs != len(want) || len(got.Wrong) != len(want) {
		t.Fatalf("damaged: %+v", got)
	}
	for i := range want {
		if got.Wrong[i] != want[i] {
			t.Errorf("%d: %+v, not %+v", i, got.Wrong[i], want[i])
		}
	}
	if _, err := s.Answer(t.Context(), &structs.DataAsk{What: structs.DataAskRead, Place: place, Chunks: one.asked()[:1]}); idOf(err) != "objects.damaged" {
		t.Errorf("a damaged file is read: %v", err)
	}
	// The next version shares nothing with what is damaged, and asks for it.
	next := sampleOf(t, map[string]string{"a": "one", "b/c": "two"})
	if err := next.begin(s, next.place(2, 1), "upload-2"); err != nil {
		t.Fatal(err)
	}
	if _, err := finish(s, next.place(2, 1), "upload-2"); idOf(err) != "code.incomplete" {
		t.Fatalf("without what is damaged: %v", err)
	}
	if lacking, err := next.missing(s, next.place(2, 1), "upload-2"); err != nil || len(lacking) != 2 {
		t.Errorf("missing: %v, %v", lacking, err)
	} else if err := next.put(s, next.place(2, 1), "upload-2", lacking); err != nil {
		t.Error(err)
	} else if _, err := finish(s, next.place(2, 1), "upload-2"); err != nil {
		t.Error(err)
	}
	if reply := verified(t, s, next.place(2, 0)); reply.Wrongs != 0 {
		t.Errorf("the next version: %+v", reply)
	}
}

// TestGoesOn: what was acknowledged is not asked for again, also by another process.
func TestGoesOn(t *testing.T) {
	dir := t.TempDir()
	one := sampleOf(t, map[string]string{"a": random(1, 4<<20), "b": "two", "c": "three"})
	place := one.place(1, 0)
	s := openStore(t, dir)
	if err := one.begin(s, place, "upload-1"); err != nil {
		t.Fatal(err)
	}
	all, err := one.missing(s, place, "upload-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := one.put(s, place, "upload-1", all[:2]); err != nil {
		t.Fatal(err)
	}
	s.Close()
	other := openStore(t, dir, func(c *Config) { c.NodeID = "node-2" })
	if err := one.begin(other, place, "upload-1"); err != nil {
		t.Fatal(err)
	}
	rest, err := one.missing(other, place, "upload-1")
	if err != nil || len(rest) != len(all)-2 {
		t.Fatalf("%d of %d are missing, %v", len(rest), len(all), err)
	}
	if _, err := finish(other, place, "upload-1"); idOf(err) != "code.incomplete" {
		t.Errorf("finished before it came: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "dataset/vision/cifar10/1")); !os.IsNotExist(err) {
		t.Errorf("half of a version has its name: %v", err)
	}
	if err := one.put(other, place, "upload-1", rest); err != nil {
		t.Fatal(err)
	}
	if _, err := finish(other, place, "upload-1"); err != nil {
		t.Fatal(err)
	}
}

// TestLost: what the disk has changed before the version was made is found where it is
// used again, and is sent once more; the earlier version's files stay as they are.
func TestLost(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	first := sampleOf(t, map[string]string{"same": "same in both"})
	if _, err := first.push(s, 1, 0); err != nil {
		t.Fatal(err)
	}
	one := sampleOf(t, map[string]string{"a": "there twice", "b": "there twice", "same": "same in both"})
	place := one.place(2, 1)
	if err := one.begin(s, place, "upload-2"); err != nil {
		t.Fatal(err)
	}
	lacking, err := one.missing(s, place, "upload-2")
	if err != nil || len(lacking) != 1 {
		t.Fatalf("%v, %v", lacking, err)
	}
	if err := one.put(s, place, "upload-2", lacking); err != nil {
		t.Fatal(err)
	}
	up := filepath.Join(dir, "dataset/vision/cifar10/.nomadlike/up-upload-2/tree")
	for _, err := range []error{
		os.WriteFile(up+"/a", []byte("there twicE"), 0o600),
		os.Link(filepath.Join(dir, "dataset/vision/cifar10/1/same"), up+"/same"), // as a finish leaves it that was killed
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := finish(s, place, "upload-2"); idOf(err) != "code.incomplete" {
		t.Fatalf("with other bytes: %v", err)
	}
	s.Close()
	s = openStore(t, dir)
	if lacking, err = one.missing(s, place, "upload-2"); err != nil || len(lacking) != 1 {
		t.Fatalf("%v, %v", lacking, err)
	}
	if err := one.put(s, place, "upload-2", append(lacking, one.asked()[1])); err != nil {
		t.Fatal(err)
	}
	if _, err := finish(s, place, "upload-2"); err != nil {
		t.Fatal(err)
	}
	for _, place := range []structs.DataPlace{first.place(1, 0), place} {
		if reply := verified(t, s, place); reply.Wrongs != 0 {
			t.Errorf("version %d: %+v", place.Version, reply)
		}
	}
	if got := shown(t, filepath.Join(dir, "dataset/vision/cifar10/1")); got != "-r--r--r-- same same in both\ndr-xr-xr-x ." {
		t.Error(got)
	}
}

// TestTwoAtOnce: two versions of one name are sent at once, one of them by two senders,
// and both are what was sent.
func TestTwoAtOnce(t *testing.T) {
	s := openStore(t, t.TempDir())
	files := map[string]string{"large": random(3, 6<<20)}
	for i := range 40 {
		files["small/"+strings.Repeat("x", i+1)] = random(uint64(i), 100)
	}
	one := sampleOf(t, files)
	delete(files, "small/x")
	two := sampleOf(t, files)
	var senders sync.WaitGroup
	for sender, c := range []struct {
		of     *sample
		number int
	}{{one, 1}, {one, 1}, {two, 2}} {
		senders.Go(func() {
			if _, err := c.of.push(s, c.number, 0); err != nil && idOf(err) != "objects.no_upload" { // the other sender had it finished
				t.Errorf("sender %d: %v", sender, err)
			}
		})
	}
	senders.Wait()
	for number, of := range []*sample{one, two} {
		if _, err := of.push(s, number+1, 0); err != nil && idOf(err) != "objects.in_the_way" {
			t.Error(err)
		}
		if reply := verified(t, s, of.place(number+1, 0)); reply.Wrongs != 0 {
			t.Errorf("version %d: %+v", number+1, reply)
		}
	}
}

// TestFull: an upload for which there is no room is refused before it begins, and one
// that finds the disk full goes on when there is room again.
func TestFull(t *testing.T) {
	free := uint64(1 << 20)
	s := openStore(t, t.TempDir(), func(c *Config) {
		c.FreeBytes = func(string) (uint64, error) { return free, nil }
		c.LeastFree = 1 << 19
	})
	one := sampleOf(t, map[string]string{"a": random(1, 600<<10)})
	place := one.place(1, 0)
	if err := one.begin(s, place, "upload-1"); idOf(err) != "objects.no_room" || structs.CodeOf(err) != structs.CodeUnavailable {
		t.Errorf("without room: %v", err)
	}
	free = 2 << 20
	if err := one.begin(s, place, "upload-1"); err != nil {
		t.Fatal(err)
	}
	free = 1 << 20
	if err := one.put(s, place, "upload-1", one.asked()); idOf(err) != "objects.no_room" {
		t.Errorf("without room: %v", err)
	}
	free = 2 << 20
	if _, err := one.push(s, 1, 0); err != nil {
		t.Error(err)
	}
}

// TestWriteFails: what could not be written is not said to be there.
func TestWriteFails(t *testing.T) {
	s := openStore(t, t.TempDir())
	one := sampleOf(t, map[string]string{"a": random(1, 900<<10), "b": random(2, 900<<10)})
	place := one.place(1, 0)
	if err := one.begin(s, place, "upload-1"); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limited := before
	limited.Cur = 500 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited); err != nil {
		t.Fatal(err)
	}
	err := one.put(s, place, "upload-1", one.asked())
	if back := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); back != nil {
		t.Fatal(back)
	}
	if idOf(err) != "objects.failed" {
		t.Errorf("a file that cannot be written: %v", err)
	}
	if lacking, err := one.missing(s, place, "upload-1"); err != nil || len(lacking) != 2 {
		t.Errorf("missing after that: %d, %v", len(lacking), err)
	}
	if _, err := one.push(s, 1, 0); err != nil {
		t.Error(err)
	}
	if reply := verified(t, s, place); reply.Wrongs != 0 {
		t.Errorf("%+v", reply)
	}
}

// TestSweep: what nobody goes on with is removed with the next upload.
func TestSweep(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	s := openStore(t, dir, func(c *Config) { c.Now = func() time.Time { return now } })
	one := sampleOf(t, map[string]string{"a/b": "one"})
	if err := one.begin(s, one.place(1, 0), "upload-1"); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "dataset/vision/cifar10/.nomadlike")
	if err := os.MkdirAll(at+"/gone-x/y", 0o700); err != nil {
		t.Fatal(err)
	}
	now = now.Add(uploadOld - time.Hour)
	if _, err := one.push(s, 2, 0); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, at); !strings.Contains(got, "up-upload-1") || strings.Contains(got, "gone-x") {
		t.Errorf("too early, or not at all:\n%s", got)
	}
	now = now.Add(2 * time.Hour)
	if _, err := one.push(s, 3, 0); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, at); strings.Contains(got, "up-") {
		t.Errorf("it stays:\n%s", got)
	}
	if _, err := one.missing(s, one.place(1, 0), "upload-1"); idOf(err) != "objects.no_upload" {
		t.Errorf("what was removed: %v", err)
	}
	if err := one.begin(s, one.place(4, 0), "upload-4"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Answer(context.Background(), &structs.DataAsk{What: structs.DataAskAbort, Place: one.place(4, 0), Upload: "upload-4"}); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, at); strings.Contains(got, "up-") {
		t.Errorf("what was given up stays:\n%s", got)
	}
}

// TestReadOnlyStorage: an administrator's word that nobody writes there holds.
func TestReadOnlyStorage(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, func(c *Config) {
		c.Storages = []workspace.Storage{{Name: "nas", Path: dir, ReadOnly: true}}
	})
	one := sampleOf(t, map[string]string{"a": "one"})
	if _, err := one.push(s, 1, 0); idOf(err) != "objects.read_only" {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}
