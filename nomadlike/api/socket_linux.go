package api

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpAfter breaks a connection whose peer acknowledges nothing for so
// long, or has no room for so long: Linux counts that as silence, although the
// peer acknowledges it.
func giveUpAfter(conn syscall.RawConn, silence time.Duration) error {
	var failure error
	err := conn.Control(func(fd uintptr) {
		failure = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
	})
	if err == nil {
		err = failure
	}
	if err != nil {
		return fmt.Errorf("bound silence of connection: %w", err)
	}
	return nil
}
