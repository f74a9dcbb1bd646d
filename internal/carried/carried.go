// Package carried puts the small programs that the main program carries where
// they can be executed.
//
// Flow: a build embeds programs packed with gzip, named NAME-linux-ARCH.gz. Open
// unpacks one as it is read, so that an agent never holds a whole program in its
// memory; Install writes one below a directory under a name made of its contents.
//
// Limits: it decides nothing about who may execute a program. What was installed
// is compared with what is carried at each start, not while the agent runs.
package carried

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// mostBytes bounds a program that is unpacked.
const mostBytes = 256 << 20

// FileName returns the name, below a directory of embedded files, of a program
// for the architecture of this build.
func FileName(program string) string {
	return "embedded/" + program + "-linux-" + runtime.GOARCH + ".gz"
}

// Open returns the contents of a program, unpacked as they are read. The error
// wraps fs.ErrNotExist where this build carries no such program.
func Open(files fs.FS, program string) (io.ReadCloser, error) {
	packed, err := files.Open(FileName(program))
	if err != nil {
		return nil, fmt.Errorf("open carried program: %w", err)
	}
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		packed.Close()
		return nil, fmt.Errorf("unpack carried program %s: %w", program, err)
	}
	return &reader{Reader: io.LimitReader(unpacked, mostBytes), packed: packed}, nil
}

// reader reads the unpacked contents, and closes what they are unpacked from.
type reader struct {
	io.Reader
	packed fs.File
}

func (r *reader) Close() error { return r.packed.Close() }

// Carries reports whether this build carries a program.
func Carries(files fs.FS, program string) bool {
	_, err := fs.Stat(files, FileName(program))
	return err == nil
}

// Install writes a program into dir, unless exactly it is there, and returns its
// path. The name has a digest of the contents: processes that run another version
// keep theirs. The file is executable by all and changed by its owner alone, and
// is there whole or not at all. The error wraps fs.ErrNotExist where this build
// carries no such program.
func Install(files fs.FS, program, dir string) (string, error) {
	sum, err := digest(files, program)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("install %s: %w", program, err)
	}
	path := filepath.Join(dir, program+"-"+sum)
	if installed(files, program, path) {
		return path, nil
	}
	if err := write(files, program, path); err != nil {
		return "", fmt.Errorf("install %s: %w", program, err)
	}
	return path, nil
}

// digest identifies a carried program by its packed contents.
func digest(files fs.FS, program string) (string, error) {
	packed, err := files.Open(FileName(program))
	if err != nil {
		return "", fmt.Errorf("open carried program: %w", err)
	}
	defer packed.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, packed); err != nil {
		return "", fmt.Errorf("read carried program %s: %w", program, err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// installed reports whether path is a file of its own with the program's contents
// that nobody but its owner may change.
func installed(files fs.FS, program, path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o755 {
		return false
	}
	present, err := os.Open(path)
	if err != nil {
		return false
	}
	defer present.Close()
	wanted, err := Open(files, program)
	if err != nil {
		return false
	}
	defer wanted.Close()
	return same(present, wanted)
}

// same reports whether two streams have the same contents.
func same(a, b io.Reader) bool {
	var of, to [32 << 10]byte
	for {
		n, err := io.ReadFull(a, of[:])
		m, other := io.ReadFull(b, to[:])
		if !bytes.Equal(of[:n], to[:m]) {
			return false
		}
		if err != nil || other != nil {
			return ended(err) && ended(other)
		}
	}
}

// ended reports whether a stream was read to its end without a failure.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// write puts the program at path by a rename, when all of it is on the disk.
func write(files fs.FS, program, path string) error {
	contents, err := Open(files, program)
	if err != nil {
		return err
	}
	defer contents.Close()
	file, err := os.CreateTemp(filepath.Dir(path), program+"-*.new")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // gone already after the rename
	_, err = io.Copy(file, contents)
	if err == nil {
		err = file.Chmod(0o755)
	}
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
