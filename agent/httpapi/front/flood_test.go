package front

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
)

// flooded is a front at a real port.
func flooded(t *testing.T, f *Front) string {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// halfSent begins a request from an address and sends a part of its body; it
// stays so until the test ends.
func halfSent(t *testing.T, ip, addr, path, token string, length, part int) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nX-Nomadlike-Request: 1\r\nContent-Length: %d\r\n", path, length)
	if token != "" {
		head += "Authorization: Bearer " + token + "\r\n"
	}
	_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
	_, _ = conn.Write(append([]byte(head+"\r\n"), bytes.Repeat([]byte{' '}, part)...)) // it may have been turned away already
	return conn
}

func (l *limiter) heldNow() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.held
}

// generous lets everything through that is not bounded by its size.
var generous = Limits{Streams: 4096, RequestsPerSec: 1e6, SubmitsPerSec: 1e6, TokenFailures: 1e6}

// TestHalfSentBodies: requests that never end take a bounded amount of memory,
// by caller and together, and nothing from anybody else.
func TestHalfSentBodies(t *testing.T) {
	f := fakeFront(generous, time.Now, nil)
	f.bodyPatience, f.bodyStall = time.Hour, time.Hour
	addr := flooded(t, f)
	var open []net.Conn
	for range 100 {
		open = append(open, halfSent(t, "127.0.0.2", addr, "/v1/session", "", 60_000, 59_000))
	}
	answered := func(conn net.Conn) int {
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0
		}
		response.Body.Close()
		return response.StatusCode
	}
	if status := answered(halfSent(t, "127.0.0.2", addr, "/v1/session", "", 1_000_000, 0)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of a megabyte without a token: status %d", status)
	}
	eventually.Within(t, time.Minute, "the address has what one address may have", func() bool { return f.guard.heldNow() > bodiesOpenMax/2 })
	if status := answered(open[len(open)-1]); status != http.StatusTooManyRequests {
		t.Errorf("the last of 100: status %d", status)
	}
	for range 40 {
		halfSent(t, "127.0.0.2", addr, "/v1/jobs", goodToken, 900_000, 890_000)
	}
	eventually.Within(t, time.Minute, "the token has what one caller may have", func() bool { return f.guard.heldNow() > bodiesCallerMax/2 })
	if held := f.guard.heldNow(); held > bodiesCallerMax+bodiesOpenMax {
		t.Errorf("%d bytes are held", held)
	}
	whole := halfSent(t, "127.0.0.3", addr, "/v1/session", "", 2, 0)
	if _, err := whole.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if status := answered(whole); status != http.StatusForbidden && status != http.StatusUnauthorized {
		t.Errorf("another address is not answered: status %d", status)
	}
}

// TestSlowBodies: a body that stalls, or drips for too long, is over.
func TestSlowBodies(t *testing.T) {
	for name, wait := range map[string][2]time.Duration{"stalls": {time.Hour, 30 * time.Millisecond}, "drips": {30 * time.Millisecond, time.Hour}} {
		t.Run(name, func(t *testing.T) {
			f := fakeFront(generous, time.Now, nil)
			f.bodyPatience, f.bodyStall = wait[0], wait[1]
			conn := halfSent(t, "127.0.0.1", flooded(t, f), "/v1/session", "", 60_000, 100)
			if name == "drips" {
				go func() {
					for range time.Tick(time.Millisecond) {
						if _, err := conn.Write([]byte{' '}); err != nil {
							return
						}
					}
				}()
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusRequestTimeout {
				t.Fatalf("%+v, %v", response, err)
			}
			response.Body.Close()
			eventually.Within(t, time.Minute, "its memory is given back", func() bool { return f.guard.heldNow() == 0 })
		})
	}
}
