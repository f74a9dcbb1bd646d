package api

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A machine that fell silent is given up soon where another one can be asked. One
// that takes in nothing of an upload is at work: the kernel ends a connection for
// that as for silence, so uploads have longer.
func TestUploadsMayStandStill(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, test := range []struct {
		addresses int
		upload    bool
		want      time.Duration
	}{
		{1, false, 10 * time.Second},
		{3, false, time.Second},
		{1, true, 30 * time.Second},
		{3, true, 30 * time.Second},
	} {
		client, err := New(Config{Address: strings.Repeat("10.0.0.1,", test.addresses-1) + "10.0.0.1", CAFingerprint: strings.Repeat("0", 64)})
		if err != nil {
			t.Fatal(err)
		}
		client = client.WithToken("secret").In("vision")
		door := client.doorOf(call{})
		if test.upload {
			door = client.doorOf(call{upload: strings.NewReader("state")})
		}
		conn, err := door.Transport.(*http.Transport).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Control(func(fd uintptr) {
			got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
			if err != nil || time.Duration(got)*time.Millisecond != test.want {
				t.Errorf("%d addresses, upload %v: %d ms and %v, want %s", test.addresses, test.upload, got, err, test.want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
}
