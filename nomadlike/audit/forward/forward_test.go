package forward

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

// chain is a Source in memory.
type chain struct {
	mu struct {
		sync.Mutex
		lines   [][]byte
		first   uint64 // that is still kept
		changed chan struct{}
	}
}

func newChain() *chain {
	c := new(chain)
	c.mu.first, c.mu.changed = 1, make(chan struct{})
	return c
}

// Append implements Source.
func (c *chain) Append(r audit.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Seq, r.Server, r.Time = uint64(len(c.mu.lines)+1), "a", structs.At(time.Date(2026, 11, 26, 12, 0, len(c.mu.lines), 0, time.UTC))
	line, err := audit.Encode(r)
	c.mu.lines = append(c.mu.lines, line)
	close(c.mu.changed)
	c.mu.changed = make(chan struct{})
	return err
}

// After implements Source: two lines at a time.
func (c *chain) After(seq uint64, _ int) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := max(seq, c.mu.first-1)
	if from >= uint64(len(c.mu.lines)) {
		return nil, nil
	}
	return bytes.Join(c.mu.lines[from:min(from+2, uint64(len(c.mu.lines)))], nil), nil
}

// Changed implements Source.
func (c *chain) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.changed
}

func (c *chain) add(t *testing.T, count int) {
	t.Helper()
	for range count {
		if err := c.Append(audit.Record{Action: "jobs.stop", Outcome: audit.Allowed, Actor: audit.Actor{User: "ann"}}); err != nil {
			t.Fatal(err)
		}
	}
}

// shelf is a Target that keeps the numbers of lines, unless it is away.
type shelf struct {
	mu struct {
		sync.Mutex
		seqs []uint64
		away bool
	}
}

// Send implements Target.
func (s *shelf) Send(_ context.Context, lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.away {
		return errors.New("away")
	}
	for line := range bytes.Lines(lines) {
		r, err := audit.Parse(line)
		if err != nil {
			return err
		}
		s.mu.seqs = append(s.mu.seqs, r.Seq)
	}
	return nil
}

// Close implements Target.
func (s *shelf) Close() error { return nil }

func (s *shelf) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.away = away
}

func (s *shelf) got() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.seqs)
}

func upTo(n uint64) (seqs []uint64) {
	for i := range n {
		seqs = append(seqs, i+1)
	}
	return seqs
}

// A target gets every line once and in order: those of before, those that come,
// those that came while it was away, and after a start those that are new. What
// was removed meanwhile is recorded.
func TestForwarding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to, cursor := newChain(), new(shelf), filepath.Join(t.TempDir(), "cursor")
		run := func() (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				(&Forwarder{Name: "shelf", From: from, To: to, Cursor: cursor, Log: slog.New(slog.DiscardHandler)}).Run(ctx)
			}()
			return func() {
				synctest.Wait()
				cancel()
				<-done
			}
		}
		from.add(t, 5)
		stop := run()
		synctest.Wait()
		if got := to.got(); !slices.Equal(got, upTo(5)) {
			t.Fatalf("of before: %v", got)
		}
		from.add(t, 3)
		synctest.Wait()
		to.set(true)
		from.add(t, 2)
		time.Sleep(time.Hour)
		to.set(false)
		time.Sleep(2 * time.Minute)
		if got := to.got(); !slices.Equal(got, upTo(10)) {
			t.Fatalf("after it was away: %v", got)
		}
		stop()
		from.add(t, 10)
		from.mu.first = 15 // 11 to 14 were too old
		stop = run()
		synctest.Wait()
		stop()
		want := append(upTo(10), 15, 16, 17, 18, 19, 20, 21)
		if got := to.got(); !slices.Equal(got, want) {
			t.Fatalf("after a start: %v", got)
		}
		if r, err := audit.Parse(from.mu.lines[20]); err != nil || r.Action != audit.ActionUnsent || r.Count != 4 || r.Object.ID != "shelf" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A file that was put away is begun anew.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	file := &File{Path: path}
	for _, text := range []string{"a\n", "b\n"} {
		if err := file.Send(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := file.Send(t.Context(), []byte("c\n")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path + ".1": "a\nb\n", path: "c\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (&File{Path: filepath.Join(path, "below")}).Send(t.Context(), []byte("d\n")); err == nil {
		t.Error("a file below a file took something")
	}
}

// frame reads one message behind its count of bytes.
func frame(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	count, err := r.ReadString(' ')
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSuffix(count, " "))
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Over TCP and TLS the messages are those of RFC 5424; a server that closed the
// connection is dialed again.
func TestSyslog(t *testing.T) {
	server, client := selfSigned(t)
	for name, configs := range map[string][2]*tls.Config{"tcp": {}, "tls": {server, client}} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if configs[0] != nil {
				listener = tls.NewListener(listener, configs[0])
			}
			defer listener.Close()
			conns := make(chan net.Conn, 2)
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					if secured, ok := conn.(*tls.Conn); ok {
						_ = secured.Handshake() // the client says what is wrong
					}
					conns <- conn
				}
			}()
			from := newChain()
			from.add(t, 1)
			if err := from.Append(audit.Record{Action: "jobs.delete", Outcome: audit.Refused, Object: audit.Object{ID: "任务\n<134>1 forged"}}); err != nil {
				t.Fatal(err)
			}
			to := &Syslog{Address: listener.Addr().String(), TLS: configs[1], Host: "server 0"}
			lines, _ := from.After(0, 0)
			if err := to.Send(t.Context(), lines); err != nil {
				t.Fatal(err)
			}
			conn := <-conns
			reader := bufio.NewReader(conn)
			for i, head := range []string{"<110>1 2026-11-26T12:00:00.000000Z server0 nomadlike - jobs.stop - ", "<108>1 2026-11-26T12:00:01.000000Z server0 nomadlike - jobs.delete - "} {
				text := frame(t, reader)
				line, is := strings.CutPrefix(text, head)
				if !is || line+"\n" != string(from.mu.lines[i]) {
					t.Errorf("message %q", text)
				}
			}
			conn.Close()
			<-to.gone
			if err := to.Send(t.Context(), lines); err != nil {
				t.Fatalf("after the connection was closed: %v", err)
			}
			conn = <-conns
			if text := frame(t, bufio.NewReader(conn)); !strings.Contains(text, "jobs.stop") {
				t.Errorf("message %q", text)
			}
			conn.Close()
			if err := to.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A syslog server with another certificate is told nothing.
func TestSyslogOfSomebodyElse(t *testing.T) {
	server, _ := selfSigned(t)
	_, client := selfSigned(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_ = conn.(*tls.Conn).Handshake() // it fails
			conn.Close()
		}
	}()
	from := newChain()
	from.add(t, 1)
	err = (&Syslog{Address: listener.Addr().String(), TLS: client}).Send(t.Context(), from.mu.lines[0])
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Error(err)
	}
}

func selfSigned(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(data)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(made)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{data}, PrivateKey: key}}}, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func ExampleSyslog() {
	r := audit.Record{
		Seq: 1, Server: "a", Time: structs.At(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)), Action: "jobs.stop", Outcome: audit.Allowed,
		Actor: audit.Actor{Kind: "user", User: "ann"}, Object: audit.Object{Kind: "job", ID: "j1"},
	}
	line, _ := audit.Encode(r)
	fmt.Println(string(syslogMessage("server-0", &r, bytes.TrimSpace(line))))
	// Output: <110>1 2026-11-26T12:00:00.000000Z server-0 nomadlike - jobs.stop - {"seq":1,"server":"a","time":"2026-11-26T12:00:00Z","actor":{"kind":"user","user":"ann"},"action":"jobs.stop","object":{"kind":"job","id":"j1"},"outcome":"allowed","prev":""}
}
