package mounts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// openKernel is openat2, the twin of walk.
func openKernel(t *testing.T, dir int, path string, flags int, resolve uint64) (int, error) {
	t.Helper()
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	how := struct{ flags, mode, resolve uint64 }{uint64(flags | syscall.O_CLOEXEC), 0, resolve}
	for {
		fd, _, errno := syscall.Syscall6(sysOpenat2, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
		switch errno {
		case 0:
			return int(fd), nil
		case syscall.EINTR, syscall.EAGAIN: // somebody renames meanwhile, anywhere
		default:
			return -1, errno
		}
	}
}

// whatIs reports which file was opened, or why none was.
func whatIs(fd int, err error) string {
	if err != nil {
		return err.Error()
	}
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// TestWalkIsTheKernels walks random paths over random links of a small tree, and
// expects the file, or the refusal, that the kernel's own call gives.
func TestWalkIsTheKernels(t *testing.T) {
	if Classical() {
		t.Log("this kernel has no openat2 to compare with: not run")
		return
	}
	chance := rand.New(rand.NewPCG(1, 2))
	top := t.TempDir()
	root := filepath.Join(top, "root")
	names := []string{"a", "b", "c", "d"}
	targets := []string{"a", "b/c", "..", "../..", "../a", ".", "/", "/a/b", "/..", "../../outside", "c", "d/../a", "/proc/self", "/proc/self/root", "a/", "b/./c"}
	if err := os.WriteFile(filepath.Join(top, "outside"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused, opened := 0, 0
	for range 40 {
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, one := range names {
			for _, two := range []string{"", "a", "b", "c"} {
				path := filepath.Join(root, one, two)
				switch chance.IntN(3) { // what fails because of what is there already is no loss
				case 0:
					_ = os.MkdirAll(path, 0o755)
				case 1:
					_ = os.WriteFile(path, nil, 0o600)
				case 2:
					_ = os.Symlink(targets[chance.IntN(len(targets))], path)
				}
			}
		}
		dir, err := syscall.Open(root, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			var parts []string
			for range chance.IntN(5) {
				parts = append(parts, []string{"a", "b", "c", "d", "..", ".", "e"}[chance.IntN(7)])
			}
			path := strings.Join(parts, "/")
			if chance.IntN(3) == 0 {
				path = "/" + path
			}
			if path == "" {
				continue // is asked for by nobody
			}
			for _, resolve := range []uint64{InRoot | NoMagicLinks, InRoot | NoSymlinks, Beneath | NoMagicLinks, Beneath | NoSymlinks} {
				for _, flags := range []int{oPath, syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NOFOLLOW, syscall.O_RDONLY} {
					want := whatIs(openKernel(t, dir, path, flags, resolve))
					got := whatIs(Walk(dir, path, flags, resolve))
					if want != got && !(strings.Contains(want, "directory") && strings.Contains(got, "symbolic")) && !(strings.Contains(want, "symbolic") && strings.Contains(got, "directory")) {
						t.Fatalf("%q, flags %x, resolve %x: the kernel says %s, walk %s", path, flags, resolve, want, got)
					}
					if strings.Contains(want, ":") {
						opened++
					} else {
						refused++
					}
				}
			}
		}
		syscall.Close(dir)
	}
	if opened < 1000 || refused < 1000 {
		t.Errorf("%d opened, %d refused: too few to tell", opened, refused)
	}
}

// Links of /proc lead anywhere and are never followed.
func TestWalkFollowsNoMagicLinks(t *testing.T) {
	dir, err := syscall.Open("/", oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(dir)
	for _, path := range []string{"/proc/self/root/etc", "/proc/self/exe", "/proc/self/fd/0", "/proc/thread-self/cwd"} {
		if fd, err := Walk(dir, path, oPath, InRoot|NoMagicLinks); err != syscall.ELOOP {
			t.Errorf("%s: %d %v", path, fd, err)
		}
	}
}

const someMounts = `25 1 0:23 / / rw,relatime - ext4 /dev/vda rw
26 25 0:24 / /stage/tree rw,relatime shared:1 - ext4 /dev/vda rw
27 26 0:25 / /stage/tree/a\040b ro,nosuid,nodev,noexec,noatime - tmpfs tmpfs rw
28 25 0:26 / /stage/treetop rw - tmpfs tmpfs rw
29 26 0:27 / /stage/tree/a\040b rw,nosuid - tmpfs tmpfs rw
`

func TestMountsBelow(t *testing.T) {
	want := []mountPoint{
		{"/stage/tree", syscall.MS_RELATIME},
		{"/stage/tree/a b", syscall.MS_NOSUID}, // the second covers the first
	}
	if diff := cmp.Diff(want, parseMounts(someMounts+"bad line\n", "/stage/tree"), cmp.AllowUnexported(mountPoint{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add(someMounts, "/stage/tree")
	f.Add(`1 1 0:1 / /\ rw - x x x`, "/")
	f.Add(`1 1 0:1 / /\777\12 rw - x x x`, "/")
	f.Fuzz(func(t *testing.T, text, root string) {
		seen := map[string]bool{}
		for _, point := range parseMounts(text, root) {
			if seen[point.path] || !within(point.path, root) {
				t.Errorf("%q stands there twice, or is not below %q", point.path, root)
			}
			seen[point.path] = true
		}
	})
}

func TestUnescapeMount(t *testing.T) {
	for text, want := range map[string]string{
		"/plain": "/plain", `/with\040blank\011and\134more`: "/with blank\tand\\more", `/cut\04`: `/cut\04`, `/no\999`: `/no\999`, "": "",
	} {
		if got := Unescape(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// FuzzUnescape: paths of mountinfo never grow and plain ones stay.
func FuzzUnescape(f *testing.F) {
	for _, text := range []string{"/a", `/a\040b`, `\`, `\04`, `\999`, `\134`, `/\011\012`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Unescape(text)
		if len(got) > len(text) || !strings.Contains(text, `\`) && got != text {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}
