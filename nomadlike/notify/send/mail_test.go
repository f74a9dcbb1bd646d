package send

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"mime"
	"net"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/structs"
)

// mailbox is a mail server that keeps what it is handed.
type mailbox struct {
	sync.Mutex
	user, password string // that whoever sends has to sign in with; "": nobody has to
	refuse         error  // what recipients are answered
	mails          []string
	to             []string
}

func (m *mailbox) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &mailSession{m, c, false}, nil
}

type mailSession struct {
	box    *mailbox
	conn   *smtp.Conn
	signed bool
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if s.signed = user == s.box.user && password == s.box.password; !s.signed {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s *mailSession) Mail(string, *smtp.MailOptions) error {
	if _, encrypted := s.conn.TLSConnectionState(); !encrypted {
		return errors.New("in the clear")
	}
	if s.box.user != "" && !s.signed {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.box.Lock()
	defer s.box.Unlock()
	s.box.to = append(s.box.to, to)
	return s.box.refuse
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.box.Lock()
	defer s.box.Unlock()
	s.box.mails = append(s.box.mails, string(text))
	return err
}

func (*mailSession) Reset()        {}
func (*mailSession) Logout() error { return nil }

// serveMail runs a mail server on a socket, and returns what reaches it.
func serveMail(t *testing.T, box *mailbox, implicit, encrypts bool) MailConfig {
	t.Helper()
	web := httptest.NewTLSServer(nil) // for its certificate, which is of 127.0.0.1
	certificate, own := web.Certificate(), web.TLS.Certificates
	web.Close()
	dir := t.TempDir()
	ca, password := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "password")
	if err := errors.Join(
		os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), 0o600),
		os.WriteFile(password, []byte(box.password+"\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	server := smtp.NewServer(box)
	config := &tls.Config{Certificates: own}
	switch {
	case implicit:
		listener = tls.NewListener(listener, config)
	case encrypts:
		server.TLSConfig = config
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	c := MailConfig{Address: address, Implicit: implicit, CA: ca, From: "Cluster <cluster@example.org>"}
	if box.user != "" {
		c.User, c.PasswordFile = box.user, password
	}
	return c
}

func failure() *structs.Notification {
	return &structs.Notification{
		ID: "msg_1", User: "li", Kind: structs.NotifyFailed, Time: 1764244800e9, JobID: "j1", Job: "训练",
		Event: "event.job.failed", Params: map[string]string{"job": "训练", "attempt": "1", "exit_code": "3"},
	}
}

// A mail comes by TLS, signed in, in the reader's language, in the thread of its job; it
// says that a program wrote it.
func TestMail(t *testing.T) {
	for _, implicit := range []bool{false, true} {
		box := &mailbox{user: "cluster", password: "hunter2"}
		mailer, err := NewMailer(serveMail(t, box, implicit, true))
		if err != nil {
			t.Fatal(err)
		}
		n := failure()
		if got := mailer.Mail(t.Context(), "li@example.org", n, notify.TextOf(messages.Chinese, n, "https://ai.example")); !got.Sent {
			t.Fatalf("implicit %v: %+v", implicit, got)
		}
		if len(box.mails) != 1 || box.to[0] != "li@example.org" {
			t.Fatalf("%q to %q", box.mails, box.to)
		}
		got, err := mail.ReadMessage(strings.NewReader(box.mails[0]))
		if err != nil {
			t.Fatal(err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
		if err != nil || subject != "任务 训练 失败" {
			t.Errorf("subject %q: %v", subject, err)
		}
		for name, want := range map[string]string{
			"Message-Id": "<msg_1@example.org>", "References": "<j1@example.org>", "Auto-Submitted": "auto-generated", "List-Id": "<notifications.example.org>",
			"To": "<li@example.org>",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("%s: %q, want %q", name, got.Header.Get(name), want)
			}
		}
		if body, _ := io.ReadAll(got.Body); !bytes.Contains(body, []byte("https://ai.example/jobs/j1")) {
			t.Errorf("body %s", body)
		}
	}
}

// A server that does not encrypt gets nothing, nor does one with another certificate, and
// a wrong password is no message in the clear.
func TestMailGoesByTLSOrNotAtAll(t *testing.T) {
	n := failure()
	text := notify.TextOf(messages.English, n, "")
	send := func(box *mailbox, config MailConfig) notify.Result {
		t.Helper()
		mailer, err := NewMailer(config)
		if err != nil {
			t.Fatal(err)
		}
		got := mailer.Mail(t.Context(), "li@example.org", n, text)
		if got.Sent || got.Problem == "" || len(box.mails) != 0 || strings.Contains(got.Problem, "hunter2") {
			t.Errorf("%+v, %q", got, box.mails)
		}
		return got
	}
	clear := &mailbox{}
	send(clear, serveMail(t, clear, false, false))
	unknown := &mailbox{}
	config := serveMail(t, unknown, false, true)
	config.CA = ""
	send(unknown, config)
	wrong := &mailbox{user: "cluster", password: "hunter2"}
	config = serveMail(t, wrong, false, true)
	wrong.password = "another"
	send(wrong, config)
	gone := &mailbox{refuse: &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}}
	if got := send(gone, serveMail(t, gone, false, true)); !got.Final {
		t.Errorf("an address that is none is tried again: %+v", got)
	}
	busy := &mailbox{refuse: &smtp.SMTPError{Code: 450, EnhancedCode: smtp.EnhancedCode{4, 2, 0}, Message: "later"}}
	if got := send(busy, serveMail(t, busy, false, true)); got.Final {
		t.Errorf("a server that is busy is given up: %+v", got)
	}
}

// Nothing that a job or an account says becomes a header, another recipient or the end of
// the message.
func TestHeadersCannotBeInjected(t *testing.T) {
	box := &mailbox{}
	mailer, err := NewMailer(serveMail(t, box, false, true))
	if err != nil {
		t.Fatal(err)
	}
	n := failure()
	n.Job = "x\r\nBcc: all@example.org\r\n\r\nHello"
	n.JobID = "j1"
	n.Params["job"] = "y\r\n.\r\nMAIL FROM:<evil@example.org>\r\n"
	n.Lines = []string{".", "From: evil", "\r\n.\r\nQUIT"}
	if got := mailer.Mail(t.Context(), "li@example.org", n, notify.TextOf(messages.English, n, "https://ai.example")); !got.Sent {
		t.Fatalf("%+v", got)
	}
	got, err := mail.ReadMessage(strings.NewReader(box.mails[0]))
	if err != nil {
		t.Fatal(err)
	}
	if len(box.mails) != 1 || len(box.to) != 1 || got.Header.Get("Bcc") != "" || len(got.Header["From"]) != 1 || strings.Contains(got.Header.Get("From"), "evil") {
		t.Errorf("%d mails to %q: %+v", len(box.mails), box.to, got.Header)
	}
	for _, to := range []string{"li@example.org\r\nBcc: all@example.org", "li@example.org, all@example.org", "li@example.org>\r\nRCPT TO:<all@example.org", ""} {
		if got := mailer.Mail(t.Context(), to, n, notify.Text{Title: "t"}); got.Sent {
			t.Errorf("%q is an address", to)
		}
	}
	if len(box.mails) != 1 {
		t.Errorf("%d mails", len(box.mails))
	}
}
