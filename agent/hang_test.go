package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
)

// Operations of the kernel's protocol for file systems in programs.
const (
	fuseLookup      = 1
	fuseForget      = 2
	fuseGetattr     = 3
	fuseInit        = 26
	fuseInterrupt   = 36
	fuseBatchForget = 42
)

// hangingDir mounts a file system in which looking for a file never ends, as on
// a storage that does not answer any more: whatever does so hangs in the kernel, and
// cannot be killed. answer lets all of them go, with an error, and takes the
// file system away. It returns false where no such thing can be made.
func hangingDir(t *testing.T) (dir string, answer func(), ok bool) {
	t.Helper()
	device, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil || os.Geteuid() != 0 {
		t.Logf("needs root and /dev/fuse (%v): not run", err)
		return "", nil, false
	}
	dir = t.TempDir()
	if err := syscall.Mount("hanging", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device)); err != nil {
		t.Logf("no file system can be mounted (%v): not run", err)
		_ = syscall.Close(device)
		return "", nil, false
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		serveHanging(device)
	}()
	answer = sync.OnceFunc(func() {
		if err := syscall.Unmount(dir, syscall.MNT_FORCE|syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
		<-served
	})
	t.Cleanup(answer)
	return dir, answer, true
}

// serveHanging answers what the kernel asks, but nothing about files, until the
// file system is taken away.
func serveHanging(device int) {
	defer syscall.Close(device)
	request := make([]byte, 1<<17)
	order := binary.NativeEndian
	for {
		n, err := syscall.Read(device, request)
		if errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOENT) {
			continue // nobody waits for it any more
		}
		if err != nil || n < 40 {
			return
		}
		reply := make([]byte, 16)
		switch order.Uint32(request[4:]) {
		case fuseLookup, fuseForget, fuseInterrupt, fuseBatchForget:
			continue
		case fuseInit:
			body := make([]byte, 64)
			order.PutUint32(body[0:], 7)
			order.PutUint32(body[4:], 31)
			order.PutUint32(body[20:], 1<<16) // largest write
			reply = append(reply, body...)
		case fuseGetattr:
			body := make([]byte, 104)
			order.PutUint64(body[0:], 3600)      // may be remembered, in seconds
			order.PutUint64(body[16:], 1)        // inode
			order.PutUint32(body[76:], 0o040755) // mode
			order.PutUint32(body[80:], 2)        // links
			reply = append(reply, body...)
		default:
			failed := -int32(syscall.ENOSYS)
			order.PutUint32(reply[4:], uint32(failed))
		}
		order.PutUint32(reply[0:], uint32(len(reply)))
		copy(reply[8:16], request[8:16])
		if _, err := syscall.Write(device, reply); err != nil && !errors.Is(err, syscall.ENOENT) {
			return
		}
	}
}
