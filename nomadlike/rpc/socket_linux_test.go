package rpc

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSocketsGiveUpInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := acceptOne(listener)
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer (<-accepted).Close()
	if err := tuneSocket(conn, 800*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]int{unix.TCP_USER_TIMEOUT: 800, unix.TCP_KEEPIDLE: 2, unix.TCP_KEEPINTVL: 1, unix.TCP_KEEPCNT: 3}
	err = raw.Control(func(fd uintptr) {
		for option, value := range want {
			if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); err != nil || got != value {
				t.Errorf("option %d is %d, want %d (%v)", option, got, value, err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
