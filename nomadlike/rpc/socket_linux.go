package rpc

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Keepalive of machine connections: probes begin when nothing was heard for
// keepaliveIdle. TCP_USER_TIMEOUT then decides how long silence may last.
const (
	keepaliveIdle     = 2 * time.Second
	keepaliveInterval = time.Second
	keepaliveCount    = 3
)

// tuneSocket makes the kernel break conn when bytes stay unacknowledged for
// failAfter. A paused peer does not trip it, because its kernel goes on
// acknowledging; a vanished machine or a cut wire does. Connections that are
// no TCP sockets (those of tests) are left alone.
func tuneSocket(conn net.Conn, failAfter time.Duration) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	err := tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: keepaliveIdle, Interval: keepaliveInterval, Count: keepaliveCount,
	})
	if err != nil {
		return fmt.Errorf("set keepalive of connection to %s: %w", conn.RemoteAddr(), err)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return fmt.Errorf("reach socket of connection to %s: %w", conn.RemoteAddr(), err)
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		setErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(failAfter.Milliseconds()))
	})
	if err == nil {
		err = setErr
	}
	if err != nil {
		return fmt.Errorf("set user timeout of connection to %s: %w", conn.RemoteAddr(), err)
	}
	return nil
}
