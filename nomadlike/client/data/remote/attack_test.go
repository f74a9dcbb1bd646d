package remote

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Attack 33, by what a job may say: it names a path below a storage, and
// whatever it says, the request goes to the storage's server and below its path.
func TestAttackSources(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Host+r.URL.EscapedPath()+"?"+r.URL.RawQuery)
		mu.Unlock()
		http.NotFound(w, r)
	}))
	defer server.Close()
	for _, source := range []string{
		"http://169.254.169.254/latest/meta-data", "http://127.0.0.1:4646/v1/jobs", "http://[::1]/x", "http://2130706433/x", "//169.254.169.254/x",
		"file:///etc/shadow", "gopher://127.0.0.1:6379/_x", "git::ext::sh -c touch% /tmp/x", "a?x=http://127.0.0.1", "a#b", "u:p@127.0.0.1/x", "%2e%2e/%2e%2e/x",
		"a\r\nHost: 127.0.0.1", "..%2f..%2fx", `..\..\x`,
	} {
		made, err := fetch(t, openStore(t, t.TempDir()), Server{URL: server.URL + "/below", Wait: atOnce}, Dataset{Path: source, Single: true})
		if err == nil {
			t.Errorf("%q gives %+v", source, made)
		}
	}
	if len(asked) == 0 {
		t.Error("the server was not asked")
	}
	for _, one := range asked {
		if rest, ok := strings.CutPrefix(one, strings.TrimPrefix(server.URL, "http://")+"/below/"); !ok || !strings.HasSuffix(rest, "?") || strings.Contains(rest, "/../") {
			t.Errorf("the server was asked for %s", one)
		}
	}
}

// liar answers every question for a name with addresses that change from one
// question to the next.
type liar struct {
	answers [][]netip.Addr
	asked   atomic.Int64
}

func (l *liar) serve(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		end := bytes.IndexByte(buffer[12:n], 0) // of the name, the first thing behind the header
		if end < 0 || 12+end+5 > n {
			continue
		}
		question := buffer[12 : 12+end+5]
		answer := append([]byte{buffer[0], buffer[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
		if question[end+2] == 1 { // an address of version 4
			addresses := l.answers[int(l.asked.Add(1)-1)%len(l.answers)]
			answer[7] = byte(len(addresses))
			for _, address := range addresses {
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // that name, A, IN, for no time, four bytes
				answer = append(answer, address.AsSlice()...)
			}
		}
		_, _ = conn.WriteTo(answer, from) // a client that does not hear it asks again
	}
}

// Attack 33, by names: a server whose name leads to the node itself, or to the
// metadata of a cloud, at the first question or at a later one, is not asked for
// anything: the address counts that is dialled.
func TestAttackNames(t *testing.T) {
	var reached atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inside.Close()
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	loop, cloud, void := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("0.0.0.0")
	l := &liar{answers: [][]netip.Addr{{cloud}, {loop}, {void, loop}, {netip.MustParseAddr("127.9.9.9")}}}
	done := make(chan struct{})
	go func() { defer close(done); l.serve(conn) }()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	defer func() {
		net.DefaultResolver = before
		conn.Close()
		<-done
	}()
	for _, host := range []string{"data.example.com", "data.example.com", "data.example.com", "data.example.com", "2130706433", "0x7f.1", "017700000001"} {
		_, err := fetch(t, openStore(t, t.TempDir()), Server{URL: "http://" + host + port, Wait: atOnce}, Dataset{Path: "x", Single: true})
		var lookup *net.DNSError
		if !errors.Is(err, errRefused) && !errors.As(err, &lookup) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if l.asked.Load() < 4 {
		t.Errorf("the name was asked for %d times", l.asked.Load())
	}
	if reached.Load() != 0 {
		t.Errorf("the node was reached %d times", reached.Load())
	}
}

// Attack 33, by what a job may say, end to end: nothing of it is run, and no
// file of the node becomes a dataset.
func TestAttackSourceIsNoFile(t *testing.T) {
	secret := t.TempDir() + "/secret"
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"file://" + secret, "gopher://127.0.0.1/x", "git::ext::sh -c id"} {
		source, err := Open(Server{URL: url, Wait: atOnce}, Dataset{Path: "x", Single: true})
		if err != nil {
			continue
		}
		if _, err := openStore(t, t.TempDir()).Fetch(t.Context(), source, "a", func(int64, int64) {}); err == nil {
			t.Errorf("%s is a server", url)
		}
		source.Close()
	}
}
