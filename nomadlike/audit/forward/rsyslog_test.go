package forward

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/audit"
)

// rsyslogd is Debian's syslog server, run by a test on loopback with TLS.
type rsyslogd struct {
	t    *testing.T
	dir  string
	port string // "" before the first start
	ca   *tls.Config
	run  *exec.Cmd
	said bytes.Buffer // of the newest run
}

// newRsyslogd makes a server whose certificate is for a name, and starts it.
func newRsyslogd(t *testing.T, name string) *rsyslogd {
	t.Helper()
	s := &rsyslogd{t: t, dir: t.TempDir()}
	s.certify(name)
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *rsyslogd) file(name string) string { return filepath.Join(s.dir, name) }

// certify writes a CA's certificate, and a key with a certificate of it for a name.
func (s *rsyslogd) certify(name string) {
	s.t.Helper()
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: certificate}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(s.file(name), pem.EncodeToMemory(block), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		s.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	s.ca = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// start runs the server, on the port that it had before.
func (s *rsyslogd) start() {
	s.t.Helper()
	program, err := exec.LookPath("/usr/sbin/rsyslogd")
	if err != nil {
		s.t.Fatalf("%v: install the packages rsyslog and rsyslog-gnutls", err)
	}
	port := s.port
	if port == "" {
		port = "0"
	}
	config := fmt.Sprintf(`global(workDirectory="%[1]s" maxMessageSize="64k"
  defaultNetstreamDriver="gtls" defaultNetstreamDriverCAFile="%[1]s/cert.pem"
  defaultNetstreamDriverCertFile="%[1]s/cert.pem" defaultNetstreamDriverKeyFile="%[1]s/key.pem")
module(load="imtcp" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="anon")
template(name="fields" type="string" string="%%syslogfacility%%|%%syslogseverity%%|%%timereported:::date-rfc3339%%|%%hostname%%|%%app-name%%|%%msgid%%|%%msg%%\n")
input(type="imtcp" address="127.0.0.1" port="%[2]s" listenPortFileName="%[1]s/port")
action(type="omfile" file="%[1]s/messages" template="fields")
`, s.dir, port)
	if err := os.WriteFile(s.file("rsyslog.conf"), []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.said.Reset()
	s.run = exec.Command(program, "-n", "-f", s.file("rsyslog.conf"), "-i", s.file("pid")) // a test's own
	s.run.Stdout, s.run.Stderr = &s.said, &s.said
	s.run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.run.Start(); err != nil {
		s.t.Fatal(err)
	}
	eventually.Within(s.t, 30*time.Second, "rsyslogd listens", func() bool {
		if s.port == "" { // the file is written when it has chosen
			told, err := os.ReadFile(s.file("port"))
			if err != nil || len(bytes.TrimSpace(told)) == 0 {
				return false
			}
			s.port = string(bytes.TrimSpace(told))
		}
		conn, err := net.Dial("tcp", s.address())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func (s *rsyslogd) stop() {
	if s.run == nil {
		return
	}
	_ = s.run.Process.Signal(syscall.SIGTERM)
	_ = s.run.Wait() // how it ended does not matter
	s.run = nil
	if s.t.Failed() {
		s.t.Logf("rsyslogd: %s", s.said.String())
	}
}

func (s *rsyslogd) address() string { return "127.0.0.1:" + s.port }

// messages are what the server has written, one a line.
func (s *rsyslogd) messages() []string {
	text, err := os.ReadFile(s.file("messages"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// noticing is a Syslog that tells when the other end of its connection is gone.
type noticing struct {
	Syslog
	mu   sync.Mutex
	last chan struct{}
}

func (n *noticing) Send(ctx context.Context, lines []byte) error {
	err := n.Syslog.Send(ctx, lines)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = n.gone
	return err
}

func (n *noticing) ended() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// TestRsyslog: with Debian's rsyslog, over TLS, every record is one message with the
// head that it is meant to have and its whole line as text, whatever names a caller
// made up; and what came while that server was away arrives once it is back.
func TestRsyslog(t *testing.T) {
	s := newRsyslogd(t, "127.0.0.1")
	from := newChain()
	hostile := []string{
		"任务\n<134>1 2026-11-26T12:00:00Z server-0 nomadlike - jobs.stop - forged",
		"x\n57 <110>1 2026-11-26T12:00:00Z server-0 nomadlike - forged - {}",
		"\r\n\x00\x1b[2J\u2028<0>forged", strings.Repeat("<0>", 80), `"},"outcome":"allowed"}`, "\xff\xfe#012<0>",
	}
	from.add(t, 1)
	for _, id := range hostile {
		if err := from.Append(audit.Record{Action: "jobs.delete", Outcome: audit.Refused, Object: audit.Object{ID: id}, Actor: audit.Actor{User: id}}.Bounded()); err != nil {
			t.Fatal(err)
		}
	}
	to := &noticing{Syslog: Syslog{Address: s.address(), TLS: s.ca, Host: "server-0"}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		(&Forwarder{
			Name: "syslog", From: from, To: to,
			Cursor: filepath.Join(t.TempDir(), "cursor"), Log: slog.New(slog.DiscardHandler),
		}).Run(ctx)
	})
	defer running.Wait()
	defer cancel()
	count := 1 + len(hostile)
	eventually.Within(t, 30*time.Second, "all records are there", func() bool { return len(s.messages()) >= count })
	check := func(messages []string) {
		t.Helper()
		for i, message := range messages {
			line := strings.TrimSuffix(string(from.mu.lines[i]), "\n")
			fields := strings.SplitN(message, "|", 7)
			want := []string{"13", "6", fmt.Sprintf("2026-11-26T12:00:%02d.000000Z", i), "server-0", "nomadlike", "jobs.stop", line}
			if strings.Contains(line, `"refused"`) {
				want[1], want[5] = "4", "jobs.delete"
			}
			if got := strings.Join(fields, "|"); strings.TrimPrefix(got, " ") != strings.Join(want, "|") {
				t.Errorf("message %d is %q, want %q", i+1, got, strings.Join(want, "|"))
			}
		}
	}
	messages := s.messages()
	if check(messages); len(messages) != count {
		t.Errorf("%d records have become %d messages", count, len(messages))
	}

	s.stop()
	<-to.ended() // what is sent before anybody notices is lost: see the package's limits
	from.add(t, 3)
	s.start()
	eventually.Within(t, 30*time.Second, "what came meanwhile is there", func() bool { return len(s.messages()) >= count+3 })
	if messages = s.messages(); len(messages) != count+3 {
		t.Errorf("%d records have become %d messages", count+3, len(messages))
	}
	check(messages)
}

// TestRsyslogOfSomebodyElse: a server with the certificate of another CA, or for
// another name, is told nothing.
func TestRsyslogOfSomebodyElse(t *testing.T) {
	s, other := newRsyslogd(t, "127.0.0.1"), newRsyslogd(t, "syslog.example")
	from := newChain()
	from.add(t, 1)
	var unknown x509.UnknownAuthorityError
	if err := (&Syslog{Address: s.address(), TLS: other.ca}).Send(t.Context(), from.mu.lines[0]); !errors.As(err, &unknown) {
		t.Errorf("with another CA: %v", err)
	}
	var named x509.HostnameError
	if err := (&Syslog{Address: other.address(), TLS: other.ca}).Send(t.Context(), from.mu.lines[0]); !errors.As(err, &named) {
		t.Errorf("with a certificate for another name: %v", err)
	}
	// Both are there, and take what comes with their own.
	right := &Syslog{Address: s.address(), TLS: s.ca, Host: "server-0"}
	if err := right.Send(t.Context(), from.mu.lines[0]); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, 30*time.Second, "the record is there", func() bool { return strings.Contains(s.messages()[0], "jobs.stop") })
	if err := right.Close(); err != nil {
		t.Error(err)
	}
	if got := other.messages(); len(got) != 1 || got[0] != "" {
		t.Errorf("the other one has %q", got)
	}
}
