package diskquota

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	writeWord = "diskquota-writes"
	makeWord  = "diskquota-makes"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == writeWord || os.Args[1] == makeWord) {
		os.Exit(fill(os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

// fill writes 64 MiB, or 1,000 files, below a directory, and reports how that went.
func fill(word, dir string) int {
	if word == makeWord {
		for i := range 1000 {
			if err := os.Mkdir(filepath.Join(dir, "f"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26)), 0o755); err != nil {
				return exitOf(err)
			}
		}
		return 0
	}
	file, err := os.Create(filepath.Join(dir, "big"))
	for i := 0; err == nil && i < 64; i++ {
		_, err = file.Write(make([]byte, 1<<20))
	}
	return exitOf(err)
}

const exitQuota = 20

func exitOf(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, unix.EDQUOT):
		return exitQuota
	}
	os.Stderr.WriteString(err.Error() + "\n")
	return 1
}

func tool(t *testing.T, line string) error {
	t.Helper()
	words := strings.Fields(line)
	text, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Logf("%s: %v: %s", line, err, text)
	}
	return err
}

// TestQuotas bounds a directory of a real file system where the kernel has quotas
// (scripts/v2.sh boots one that has), and is told that there are none elsewhere.
func TestQuotas(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a file system")
	}
	work := t.TempDir()
	if err := os.Chmod(filepath.Dir(work), 0o755); err != nil { // another user writes below it
		t.Fatal(err)
	}
	image, top := filepath.Join(work, "image"), filepath.Join(work, "top")
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 256<<20); err != nil {
		t.Fatal(err)
	}
	if err := tool(t, "mkfs.ext4 -q -O quota,project -E quotatype=prjquota "+image); err != nil {
		t.Fatal(err)
	}
	has := tool(t, "mount -o loop,prjquota "+image+" "+top) == nil
	if !has {
		if os.Getenv("NOMADLIKE_QUOTAS") != "" {
			t.Fatal("this kernel was to have quotas")
		}
		if err := tool(t, "mkfs.ext4 -q -F -O ^quota,^project "+image); err != nil {
			t.Fatal(err)
		}
		if err := tool(t, "mount -o loop "+image+" "+top); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(top, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	system, err := Open(top)
	if !has {
		if !errors.Is(err, ErrNone) {
			t.Fatalf("a file system without quotas: %v", err)
		}
		t.Log("this kernel has no quotas: only that was seen")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(top, "one"), filepath.Join(top, "two")}
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Join(dir, "deep"), 0o777), os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := system.Bound(dirs[0], 8<<20, 100); err != nil {
		t.Fatal(err)
	}
	as := func(word, dir string) int {
		t.Helper()
		child := exec.Command("/proc/self/exe", word, dir)
		child.Stderr = os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 30001, Gid: 30001}}
		_ = child.Run() // its exit code tells
		return child.ProcessState.ExitCode()
	}
	if code := as(writeWord, filepath.Join(dirs[0], "deep")); code != exitQuota {
		t.Errorf("64 MiB of 8: exit %d", code)
	}
	bytes, files, err := system.Used(dirs[0])
	if err != nil || bytes < 7<<20 || bytes > 8<<20 || files != 4 {
		t.Errorf("used %d bytes in %d files, %v", bytes, files, err)
	}
	if code := as(writeWord, dirs[1]); code != 0 {
		t.Errorf("64 MiB beside it: exit %d", code)
	}
	if code := as(makeWord, dirs[0]); code != exitQuota {
		t.Errorf("1,000 directories of 100: exit %d", code)
	}
	id, err := projectOf(filepath.Join(dirs[0], "deep", "big"))
	if err != nil || !ours(id) {
		t.Errorf("what was made below is of project %#x, %v", id, err)
	}
	if again, err := Open(top); err != nil {
		t.Error(err)
	} else if err := again.Bound(dirs[0], 128<<20, 0); err != nil { // by the next process
		t.Error(err)
	}
	if now, err := projectOf(dirs[0]); err != nil || now != id {
		t.Errorf("bounded again it is of project %#x, %v", now, err)
	}
	if code := as(writeWord, filepath.Join(dirs[0], "deep")); code != 0 {
		t.Errorf("64 MiB of 128: exit %d", code)
	}
	if err := system.Free(dirs[0]); err != nil {
		t.Error(err)
	}
	if block, err := system.block(id); err != nil || block.spaceHard != 0 || block.inodesHard != 0 {
		t.Errorf("limits that were taken away: %+v, %v", block, err)
	}
	if err := system.Free(dirs[1]); err != nil {
		t.Error(err)
	}
	if _, _, err := system.Used(dirs[1]); err == nil {
		t.Error("a directory without a project is used up")
	}
	if err := os.RemoveAll(dirs[0]); err != nil {
		t.Error(err)
	}
	if block, err := system.block(id); err != nil || block != (dqblk{}) {
		t.Errorf("a project of which nothing is left: %+v, %v", block, err)
	}
}

func TestOpenElsewhere(t *testing.T) {
	for _, dir := range []string{"/proc", "/sys"} {
		if _, err := Open(dir); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
