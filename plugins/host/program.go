package host

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// nameLengthMax bounds the name of a plugin, which is a file name.
const nameLengthMax = 32

// programBytesMax bounds a plugin program, so that hashing one ends.
const programBytesMax = 1 << 30

// ErrUnsafe is returned for a plugin that others than root and the agent's
// user could have put there.
var ErrUnsafe = errors.New("not safe to run")

// program is a plugin's file, checked and held open.
type program struct{ file *os.File }

func (p *program) close() { p.file.Close() }

// path executes exactly the file that was checked, whatever has happened to
// its name since.
func (p *program) path() string { return "/proc/self/fd/" + strconv.Itoa(int(p.file.Fd())) }

// openProgram opens a plugin of dir and checks that it may be run.
func openProgram(dir, name, pin string) (*program, error) {
	if !validName(name) {
		return nil, fmt.Errorf("want 1 to %d lower-case letters, digits, '_', '-' as a name", nameLengthMax)
	}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("plugin_dir %q is not absolute", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	if err := checkOwner(info); err != nil {
		return nil, fmt.Errorf("plugin_dir %s: %w", dir, err)
	}
	// A link could lead to a file of somebody else's directory.
	if info, err = root.Lstat(name); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: not a plain file", name, ErrUnsafe)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	if err := checkProgram(file, pin); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &program{file: file}, nil
}

func checkProgram(file *os.File, pin string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := checkOwner(info); err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%w: not an executable file", ErrUnsafe)
	}
	var magic [4]byte
	if _, err := file.ReadAt(magic[:], 0); err != nil || string(magic[:]) != "\x7fELF" {
		return fmt.Errorf("%w: not a Linux program; scripts are not accepted", ErrUnsafe)
	}
	if pin == "" {
		return nil
	}
	want, err := hex.DecodeString(strings.ToLower(pin))
	if err != nil || len(want) != sha256.Size {
		return errors.New("the configured SHA-256 is not 64 hexadecimal digits")
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, programBytesMax)); err != nil {
		return fmt.Errorf("hash: %w", err)
	}
	if subtle.ConstantTimeCompare(sum.Sum(nil), want) != 1 {
		return fmt.Errorf("%w: its SHA-256 is %x, not the configured one", ErrUnsafe, sum.Sum(nil))
	}
	return nil
}

// checkOwner makes sure that only root and the agent's user can have written
// something.
func checkOwner(info os.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%w: its owner is unknown", ErrUnsafe)
	}
	if stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: it belongs to user %d", ErrUnsafe, stat.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: others may write to it (mode %v)", ErrUnsafe, info.Mode().Perm())
	}
	return nil
}

func validName(name string) bool {
	if name == "" || len(name) > nameLengthMax {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// makeRunDir makes the place for sockets, reachable by this user alone.
func makeRunDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("make plugin run directory: %q is not absolute", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make plugin run directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("make plugin run directory: %w", err)
	}
	if err := checkOwner(info); err != nil {
		return fmt.Errorf("make plugin run directory: %w", err)
	}
	return os.Chmod(dir, 0o700)
}
