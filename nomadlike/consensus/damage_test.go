package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

// Whatever byte of the log is damaged: either nothing is missing and nothing
// differs, or the server refuses to start and says which file and what to do.
func TestDamagedLogIsNeverAccepted(t *testing.T) {
	dir := usedDir(t, "first command", "second command", "third command")
	want, err := stored(dir)
	if err != nil {
		t.Fatal(err)
	}
	segment, data, used := theSegment(t, dir)
	data = data[:used]
	file, err := os.OpenFile(segment, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	refused, harmless := 0, 0
	for offset := range used {
		for _, damage := range []byte{0x01, 0xff} {
			changed := bytes.Clone(data)
			changed[offset] ^= damage
			if _, err := file.WriteAt(changed, 0); err != nil {
				t.Fatal(err)
			}
			got, err := stored(dir)
			switch {
			case errors.Is(err, ErrCorrupt):
				refused++
				if !strings.Contains(err.Error(), filepath.Join(dir, logDir)) || !strings.Contains(err.Error(), "rejoin as a new server") {
					t.Fatalf("offset %d: %v", offset, err)
				}
			case err != nil:
				t.Fatalf("offset %d: %v", offset, err)
			case !cmp.Equal(got, want):
				t.Fatalf("offset %d changed by %#x: accepted\n%s", offset, damage, cmp.Diff(want, got))
			default:
				harmless++ // padding, reserved bytes and checksums of batches before the last
			}
		}
	}
	t.Logf("%d bytes of log: %d damages refused, %d harmless", used, refused, harmless)
	if refused < used {
		t.Errorf("only %d of %d damages were refused", refused, 2*used)
	}
}

// The same for a log of several files: whichever byte of whichever file.
func TestDamagedOlderLogFileIsNeverAccepted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raft")
	small := func(c *Config) { c.segmentBytes = 1 << 10 }
	node, _ := mustOpenAlone(t, dir, small)
	for range 40 {
		mustPropose(t, node, strings.Repeat("x", 100))
	}
	mustShutdown(t, node)
	want, err := stored(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, logDir, "*.wal"))
	if err != nil || len(files) < 4 {
		t.Fatalf("log files %v, %v", files, err)
	}
	path := files[1]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string) (refused bool) {
		got, err := stored(dir)
		switch {
		case errors.Is(err, ErrCorrupt):
			return true
		case err != nil:
			t.Fatalf("%s: %v", what, err)
		case !cmp.Equal(got, want):
			t.Fatalf("%s: accepted with other entries", what)
		}
		return false
	}
	refusals := 0
	for offset := range whole {
		changed := bytes.Clone(whole)
		changed[offset] ^= 0x10
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if check(fmt.Sprint("offset ", offset)) {
			refusals++
		}
	}
	if refusals < len(whole)/2 {
		t.Errorf("%d of %d damages were refused", refusals, len(whole))
	}
	if err := os.Truncate(path, int64(len(whole)/2)); err != nil {
		t.Fatal(err)
	}
	if !check("truncated") {
		t.Error("a truncated log file was accepted")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !check("removed") {
		t.Error("a removed log file was accepted")
	}
}

// Damage that appears while the server runs ends it at the first read.
func TestDamageWhileRunningEndsTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raft")
	exits := make(chan int, 1)
	node, _ := mustOpenAlone(t, dir, func(c *Config) { c.ExitFunc = func(code int) { exits <- code } })
	result, err := node.Propose(t.Context(), []byte("needle in the log"))
	if err != nil {
		t.Fatal(err)
	}
	segment, data, _ := theSegment(t, dir)
	file, err := os.OpenFile(segment, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte("N"), int64(bytes.Index(data, []byte("needle")))); err != nil {
		t.Fatal(err)
	}
	node.storage.log.cache.remove(0, result.Index)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		node.storage.log.GetLog(result.Index, &raft.Log{})
		t.Error("the damaged entry was given out")
	}()
	<-ended
	if code := <-exits; code != exitStorage {
		t.Errorf("exit code %d", code)
	}
}

func TestTornTailIsDropped(t *testing.T) {
	dir := usedDir(t, "a", "b")
	want, err := stored(dir)
	if err != nil {
		t.Fatal(err)
	}
	segment, _, before := theSegment(t, dir)

	// A batch that was written but never acknowledged: the watermark stays.
	mark, err := os.ReadFile(filepath.Join(dir, watermarkFile))
	if err != nil {
		t.Fatal(err)
	}
	node, _ := mustOpenAlone(t, dir, nil)
	mustShutdown(t, node)
	if err := os.WriteFile(filepath.Join(dir, watermarkFile), mark, 0o600); err != nil {
		t.Fatal(err)
	}
	_, data, after := theSegment(t, dir)
	if after <= before {
		t.Fatal("the second run wrote nothing")
	}
	file, err := os.OpenFile(segment, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for cut := before + 8; cut < after; cut++ {
		torn := bytes.Clone(data[:after])
		clear(torn[cut:])
		if _, err := file.WriteAt(torn, 0); err != nil {
			t.Fatal(err)
		}
		got, err := stored(dir)
		if err != nil {
			t.Fatalf("cut at %d of %d..%d: %v", cut, before, after, err)
		}
		if len(got) < len(want) || !cmp.Equal(got[:len(want)], want) {
			t.Fatalf("cut at %d: log is %v, want %v", cut, got, want)
		}
	}
}

func TestMissingFilesAreRefused(t *testing.T) {
	used := usedDir(t, "a", "b")
	for _, name := range []string{identityFile, voteFile, logMetaFile, logDir} {
		t.Run(name, func(t *testing.T) {
			dir := copyDir(t, used)
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			_, _, err := openAlone(t, dir, nil)
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("opened without %s: %v", name, err)
			}
		})
	}
	t.Run("corrupt vote", func(t *testing.T) {
		dir := copyDir(t, used)
		path := filepath.Join(dir, voteFile)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 4
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err = openAlone(t, dir, nil)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), path) {
			t.Errorf("opened with a corrupt vote: %v", err)
		}
	})
	t.Run("snapshot", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "raft")
		node, _ := mustOpenAlone(t, dir, func(c *Config) { c.TrailingLogs = 1 })
		mustPropose(t, node, "a", "b", "c", "d", "e")
		if _, err := node.SnapshotSave(t.Context(), &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		mustShutdown(t, node)
		files, err := filepath.Glob(filepath.Join(dir, snapshotDir, "*"+snapshotSuffix))
		if err != nil || len(files) != 1 {
			t.Fatalf("snapshots %v, %v", files, err)
		}
		damaged := copyDir(t, dir)
		path := filepath.Join(damaged, snapshotDir, filepath.Base(files[0]))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)-60] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openAlone(t, damaged, nil); err == nil {
			t.Error("opened with a damaged snapshot")
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openAlone(t, dir, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("opened without the snapshot: %v", err)
		}
	})
}

// A crash while a directory is made for the first time must not look like a
// loss.
func TestCrashDuringFirstStart(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "raft")
	node, _, err := openAlone(t, whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustShutdown(t, node)
	segment, _, _ := theSegment(t, whole)
	// In the order in which they are made.
	made := []string{identityFile, logDir, snapshotDir, voteFile, watermarkFile, logMetaFile, filepath.Join(logDir, filepath.Base(segment))}
	for kept := range made {
		dir := copyDir(t, whole)
		for _, name := range made[kept:] {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		node, _, err := openAlone(t, dir, nil)
		if err != nil {
			t.Errorf("after a crash with only %v: %v", made[:kept], err)
			continue
		}
		mustShutdown(t, node)
	}
}
