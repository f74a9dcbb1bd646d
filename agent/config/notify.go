package config

import (
	"net/mail"
	"net/url"
	"path/filepath"
	"strings"
)

const smtpPort = 587 // of submission with StartTLS

// NotifyBlock is the block of how people are told what happened.
type NotifyBlock struct {
	URL   *string
	Allow []string
	SMTP  *SMTPBlock
}

// SMTPBlock is the block of the server that mail is handed to.
type SMTPBlock struct {
	Address      *string
	TLS          *string
	CA           *string
	User         *string
	PasswordFile *string
	From         *string
}

// Notify is the part of how people are told what happened.
type Notify struct {
	URL   string   // of the pages, for links; "": that of this server
	Allow []string // hosts that messages may be sent to, as HOST, HOST:PORT or *.DOMAIN
	SMTP  SMTP
}

// SMTP is a mail server; an empty Address means none.
type SMTP struct {
	Address      string // host:port
	TLS          string // starttls | tls
	CA           string // file of the CAs that its certificate goes by; "": the machine's
	User         string // "": nobody signs in
	PasswordFile string
	From         string // address of the sender
}

func walkNotify(v visitor, b *NotifyBlock, c *Notify) {
	v.setting("url", text(&b.URL, &c.URL, "").unset())
	v.setting("allow", list(&b.Allow, &c.Allow))
	v.rule(func(r *resolver) {
		if address, err := url.Parse(c.URL); c.URL != "" && (err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http") {
			r.refuse("server.notify.url", "agent.config.notify_url", "value", c.URL)
		}
		for _, host := range c.Allow {
			if host == "" || host == "*" || strings.ContainsAny(host, "/@ ") || strings.Contains(strings.TrimPrefix(host, "*."), "*") {
				r.refuse("server.notify.allow", "agent.config.notify_host", "value", host)
			}
		}
	})
	there := b.SMTP != nil
	one(v, "smtp", &b.SMTP, func(v visitor, b *SMTPBlock) {
		v.setting("address", text(&b.Address, &c.SMTP.Address, "").unset())
		v.setting("tls", word(&b.TLS, &c.SMTP.TLS, "starttls", "starttls", "tls"))
		v.setting("ca", text(&b.CA, &c.SMTP.CA, "").unset())
		v.setting("user", text(&b.User, &c.SMTP.User, "").unset())
		v.setting("password_file", text(&b.PasswordFile, &c.SMTP.PasswordFile, "").unset())
		v.setting("from", text(&b.From, &c.SMTP.From, "").unset())
	})
	v.rule(func(r *resolver) {
		if !there {
			c.SMTP = SMTP{}
			return
		}
		r.smtp(&c.SMTP)
	})
}

// smtp completes and checks a mail server.
func (r *resolver) smtp(c *SMTP) {
	c.Address = r.hostPort("server.notify.smtp.address", c.Address, smtpPort)
	if _, err := mail.ParseAddress(c.From); err != nil {
		r.refuse("server.notify.smtp.from", "agent.config.notify_from", "value", c.From)
	}
	for _, file := range []struct{ name, path string }{{"ca", c.CA}, {"password_file", c.PasswordFile}} {
		if file.path != "" && !filepath.IsAbs(file.path) {
			r.refuse("server.notify.smtp."+file.name, "agent.config.audit_path", "value", file.path)
		}
	}
	if (c.User == "") != (c.PasswordFile == "") {
		r.refuse("server.notify.smtp.password_file", "agent.config.notify_password")
	}
}
