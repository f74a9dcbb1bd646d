// Package secretfile reads the files of an administrator that hold a password, a token
// or a key, and refuses those that others may read as well.
//
// Limits: rights are those of the mode. Access control lists are not looked at; where one
// lets others in, the mode's group bits usually show it.
package secretfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// SizeMax is how many bytes such a file has at most.
const SizeMax = 64 << 10

// Errors of Read and Check, which callers tell apart to name the cure.
var (
	ErrShared = errors.New("others may read it as well: chmod 600")
	ErrEmpty  = errors.New("it is empty")
	ErrLarge  = fmt.Errorf("it has more than %d bytes", SizeMax)
)

// Read returns what a file holds, without the ends of lines behind it. It looks at the
// rights of the very file that it reads, so that a name that changes meanwhile does not
// lead around them. Errors name the file.
func Read(name string) (string, error) {
	file, err := open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it is only read
	text, err := io.ReadAll(io.LimitReader(file, SizeMax+1))
	switch secret := strings.TrimRight(string(text), "\r\n"); {
	case err != nil:
		return "", fmt.Errorf("read %s: %w", name, err)
	case len(text) > SizeMax:
		return "", fmt.Errorf("read %s: %w", name, ErrLarge)
	case secret == "":
		return "", fmt.Errorf("read %s: %w", name, ErrEmpty)
	default:
		return secret, nil
	}
}

// Check reports why Read would not read a file, as far as its rights say.
func Check(name string) error {
	file, err := open(name)
	if err != nil {
		return err
	}
	return file.Close()
}

// open opens a regular file that is its owner's alone. What is no file is not opened,
// because a pipe would be waited for.
func open(name string) (*os.File, error) {
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is not a file")}
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = ErrShared
	}
	if err != nil {
		_ = file.Close() // it was not read
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return file, nil
}
