package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/audit"
)

// Bounds of a connection with a syslog server.
const (
	dialTimeout  = 5 * time.Second
	writeTimeout = 10 * time.Second
)

// Syslog sends records as messages of RFC 5424, each behind the count of its
// bytes (RFC 6587, and RFC 5425 over TLS).
type Syslog struct {
	Address string      // host:port
	TLS     *tls.Config // nil: without
	Host    string      // name of this machine

	conn net.Conn
	gone chan struct{} // closed when the other end is
}

// Send implements Target.
func (s *Syslog) Send(ctx context.Context, lines []byte) error {
	var message []byte
	for line := range bytes.Lines(lines) {
		r, err := audit.Parse(line)
		if err != nil {
			return err
		}
		text := syslogMessage(s.Host, &r, bytes.TrimSuffix(line, []byte{'\n'}))
		message = append(strconv.AppendInt(message, int64(len(text)), 10), ' ')
		message = append(message, text...)
	}
	if err := s.dial(ctx); err != nil {
		return err
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return errors.Join(err, s.Close())
	}
	if _, err := s.conn.Write(message); err != nil {
		return errors.Join(fmt.Errorf("send to syslog server %s: %w", s.Address, err), s.Close())
	}
	return nil
}

// dial connects, unless it is and the other end is still there.
func (s *Syslog) dial(ctx context.Context) error {
	if s.conn != nil {
		select {
		case <-s.gone:
			_ = s.Close() // it was over already
		default:
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var conn net.Conn
	var err error
	if s.TLS != nil {
		conn, err = (&tls.Dialer{Config: s.TLS}).DialContext(ctx, "tcp", s.Address)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", s.Address)
	}
	if err != nil {
		return fmt.Errorf("dial syslog server %s: %w", s.Address, err)
	}
	gone := make(chan struct{})
	go func() { // a syslog server says nothing: what comes is its end
		defer close(gone)
		_, _ = conn.Read(make([]byte, 1))
	}()
	s.conn, s.gone = conn, gone
	return nil
}

// Close implements Target.
func (s *Syslog) Close() error {
	if s.conn == nil {
		return nil
	}
	conn, gone := s.conn, s.gone
	s.conn = nil
	err := conn.Close()
	<-gone
	return err
}

const facilityAudit = 13 // "log audit"

// syslogMessage is a record as RFC 5424 has it, with its line as the text.
func syslogMessage(host string, r *audit.Record, line []byte) []byte {
	severity := 6 // informational
	switch r.Outcome {
	case audit.Refused:
		severity = 4 // warning
	case audit.Failed:
		severity = 5 // notice
	}
	out := fmt.Appendf(nil, "<%d>1 %s %s nomadlike - %s - ", facilityAudit*8+severity,
		r.Time.Time().Format("2006-01-02T15:04:05.000000Z07:00"), header(host, 255), header(r.Action, 32))
	return append(out, line...)
}

// header fits a text into a field of the head: visible ASCII, of bounded length.
func header(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, text)
	if text == "" {
		return "-"
	}
	return text[:min(len(text), most)]
}
