// Package filelock keeps two processes from using one directory or file at
// the same time, by flock(2): the kernel lets go of it when the process ends,
// however it ends.
//
// Limits: advisory, and for local file systems.
package filelock

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// retryEvery is how often a lock that another process holds is tried again:
// flock offers nothing to wait on that could also be given up.
const retryEvery = 20 * time.Millisecond

// Take locks file for this process alone. While another process holds it,
// it tries again until limit has passed: one that was killed a moment ago is
// still being taken apart. It then returns syscall.EWOULDBLOCK. Closing the
// file lets go.
func Take(file *os.File, limit time.Duration) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return err
		}
	}
}
