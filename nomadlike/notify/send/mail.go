package send

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/structs"
)

// MailConfig is a mail server.
type MailConfig struct {
	Address      string // host:port
	Implicit     bool   // TLS from the first byte, not by StartTLS
	CA           string // file of the CAs that its certificate goes by; "": the machine's
	User         string // "": nobody signs in
	PasswordFile string // read for each message, so that a new one counts at once
	From         string
}

const mailTextMax = 32 << 10 // bytes

// Mailer hands messages to a mail server. Its methods may be called from any goroutine.
type Mailer struct {
	config MailConfig
	host   string
	port   int
	roots  *x509.CertPool
}

// NewMailer makes a Mailer; it fails for a file of CAs that holds none. Nothing is
// dialled.
func NewMailer(config MailConfig) (*Mailer, error) {
	host, port, err := net.SplitHostPort(config.Address)
	if err != nil {
		return nil, fmt.Errorf("address of mail server: %w", err)
	}
	m := &Mailer{config: config, host: host}
	if m.port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("port of mail server: %w", err)
	}
	if config.CA != "" {
		pem, err := os.ReadFile(config.CA)
		if err != nil {
			return nil, fmt.Errorf("read CA of mail server: %w", err)
		}
		m.roots = x509.NewCertPool()
		if !m.roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read CA of mail server: %s holds no certificate", config.CA)
		}
	}
	return m, nil
}

// Mail hands a message for an address over. Messages about one job stand in one thread.
func (m *Mailer) Mail(ctx context.Context, to string, n *structs.Notification, text notify.Text) notify.Result {
	message, err := m.message(to, n, text)
	if err != nil {
		return notify.Result{Final: true, Problem: "notify.problem.mail"}
	}
	options := []mail.Option{
		mail.WithPort(m.port), mail.WithTimeout(Timeout), mail.WithHELO("nomadlike"), mail.WithTLSPolicy(mail.TLSMandatory),
		mail.WithTLSConfig(&tls.Config{ServerName: m.host, RootCAs: m.roots, MinVersion: tls.VersionTLS12}),
	}
	if m.config.Implicit {
		options = append(options, mail.WithSSL())
	}
	if m.config.User != "" {
		password, err := os.ReadFile(m.config.PasswordFile)
		if err != nil {
			return notify.Result{Problem: "notify.problem.password"}
		}
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(m.config.User),
			mail.WithPassword(strings.TrimRight(string(password), "\r\n")))
	}
	client, err := mail.NewClient(m.host, options...)
	if err != nil {
		return notify.Result{Problem: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if err := client.DialAndSendWithContext(ctx, message); err != nil {
		return mailProblem(err)
	}
	return notify.Result{Sent: true}
}

// mailProblem tells refusals for good from others by the code of the mail server.
func mailProblem(err error) notify.Result {
	var refused *textproto.Error
	var sending *mail.SendError
	result := notify.Result{Problem: err.Error()}
	switch {
	case errors.As(err, &refused):
		result.Final = refused.Code >= 550 && refused.Code < 560
	case errors.As(err, &sending):
		result.Final = !sending.IsTemp() && sending.ErrorCode() >= 550
	}
	return result
}

// message writes a message in the form of mail. No part of it is put into a header as it
// is: addresses are parsed, and the subject is one line that is encoded.
func (m *Mailer) message(to string, n *structs.Notification, text notify.Text) (*mail.Msg, error) {
	message := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := errors.Join(message.From(m.config.From), message.To(to)); err != nil {
		return nil, err
	}
	domain := m.host
	if _, after, found := strings.Cut(m.config.From, "@"); found {
		domain = strings.Trim(after, "> ")
	}
	message.Subject(text.Title)
	message.SetMessageIDWithValue(n.ID + "@" + domain)
	if n.JobID != "" {
		message.SetGenHeader(mail.HeaderReferences, "<"+n.JobID+"@"+domain+">")
	}
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetGenHeader("List-Id", "<notifications."+domain+">")
	message.SetDateWithValue(n.Time.Time())
	message.SetBodyString(mail.TypeTextPlain, text.Plain(mailTextMax)+"\n")
	return message, nil
}
