package rankshell

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// socketPathMax is what the kernel takes as a socket's path, in bytes.
const socketPathMax = 107

// listen makes a socket at path, which may be longer than the kernel takes.
func listen(path string) (*net.UnixListener, error) {
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // short may lead nowhere by then; the owner removes the socket
	return l, nil
}

// dial connects to a socket at path, which may be longer than the kernel takes.
func dial(path string) (*net.UnixConn, error) {
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: short, Net: "unix"})
}

// shorten returns another name of path that the kernel takes, good until done
// is called: through an open descriptor of its directory.
func shorten(path string) (short string, done func(), err error) {
	if len(path) <= socketPathMax {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { dir.Close() }, nil
}
