package taskproc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestMessages(t *testing.T) {
	const limit = 100
	data, err := EncodeMessage(map[string]string{"op": "wait"}, limit)
	if err != nil {
		t.Fatal(err)
	}
	body, err := ReadMessage(bytes.NewReader(data), limit)
	if err != nil || string(body) != `{"op":"wait"}` {
		t.Errorf("message is %q, %v", body, err)
	}
	for name, c := range map[string]struct {
		data  []byte
		limit int
		want  error
	}{
		"end":       {nil, limit, io.EOF},
		"cut early": {data[:2], limit, io.ErrUnexpectedEOF},
		"cut late":  {data[:7], limit, io.ErrUnexpectedEOF},
		"too long":  {data, 5, ErrTooLong},
		"huge":      {[]byte{0xff, 0xff, 0xff, 0xff}, limit, ErrTooLong},
	} {
		if _, err := ReadMessage(bytes.NewReader(c.data), c.limit); !errors.Is(err, c.want) {
			t.Errorf("%s gives %v, want %v", name, err, c.want)
		}
	}
	if _, err := EncodeMessage(string(make([]byte, limit)), limit); !errors.Is(err, ErrTooLong) {
		t.Errorf("a message that is too long gives %v", err)
	}
}

// pair returns two connected ends.
func pair(t *testing.T) (*Conn, *Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*Conn
	for i, fd := range fds {
		if ends[i], err = NewConn(fd, time.Second); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ends[i].Close)
	}
	return ends[0], ends[1]
}

func TestPeerThatReadsNothing(t *testing.T) {
	a, b := pair(t)
	if peer, err := a.Peer(); err != nil || int(peer.Pid) != os.Getpid() {
		t.Errorf("peer is %+v, %v", peer, err)
	}
	if !a.Open() {
		t.Error("a connection with both ends counts as closed")
	}
	if err := a.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a message that nobody reads gives %v", err)
	}
	c, d := pair(t)
	d.Close()
	if c.Open() {
		t.Error("a closed connection counts as open")
	}
	if _, _, err := c.Read(10); !errors.Is(err, io.EOF) {
		t.Errorf("the end gives %v", err)
	}
	b.Close()
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Add([]byte{255, 255, 255, 255, '{'})
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1000
		body, err := ReadMessage(bytes.NewReader(data), limit)
		if err == nil && len(body) > limit {
			t.Errorf("body of %d bytes", len(body))
		}
		if err != nil && body != nil {
			t.Error("an error comes with a body")
		}
	})
}
