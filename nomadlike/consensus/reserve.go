package consensus

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"nomadlike/internal/logkey"
)

// The reserve is a file that holds room on the disk of a server for the day on
// which there is none: what a server must store before it may speak, its vote
// above all, is replaced as a whole, which takes a new file. It is given up when
// the disk is full, and made again when there is room.
const (
	reserveFile  = "reserve"
	reserveBytes = 1 << 20  // thousands of votes
	reserveFrom  = 16 << 20 // free bytes at which it is made
)

// outOfRoom reports whether a disk refused a write since it is full.
func outOfRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// giveReserve frees the reserve in dir, and reports whether there was one.
func giveReserve(dir string) bool {
	return os.Remove(filepath.Join(dir, reserveFile)) == nil
}

// makeReserve makes the reserve where it is missing and there is room for it. It
// holds noise, since some file systems store zeros in no space at all.
func (n *Node) makeReserve(free uint64) {
	if n.config.Dir == "" {
		return // tests of parts have no disk
	}
	path := filepath.Join(n.config.Dir, reserveFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || free < reserveFrom {
		return
	}
	noise := make([]byte, reserveBytes)
	rand.Read(noise) // never fails
	if err := writeSynced(path, noise); err != nil {
		giveReserve(n.config.Dir) // half of it is no help
		n.config.Log.Warn("no room is reserved for the day on which the disk is full", logkey.Path, path, logkey.Error, err)
	}
}
