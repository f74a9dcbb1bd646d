package checkpoint

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Within opens the directory of a place, with the rights of the task where it
// has no Root, and calls f with it, in which nothing leads out of it. What f
// opens, it opens with those rights, if it starts no goroutine for it.
func (p Place) Within(f func(root *os.Root) error) error {
	open := func() error {
		dir := p.Dir
		if p.Root != "" {
			outer, err := os.OpenRoot(p.Root)
			if err != nil {
				return err
			}
			defer outer.Close()
			inner, err := outer.OpenRoot(dir)
			if err != nil {
				return err
			}
			defer inner.Close()
			return f(inner)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		return f(root)
	}
	if p.Root != "" || os.Geteuid() != 0 || p.UID == 0 {
		return open()
	}
	return as(p.UID, p.GID, open)
}

// as calls f with another user's rights to files. Its thread is not used for
// anything else: it ends with the goroutine, which never lets go of it.
func as(uid, gid int, f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			err = errno
			return
		}
		if err = unix.Setfsgid(gid); err != nil {
			return
		}
		if err = unix.Setfsuid(uid); err != nil {
			return
		}
		err = f()
	}()
	<-done
	return err
}
