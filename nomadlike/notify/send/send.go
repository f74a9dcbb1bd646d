// Package send carries messages to where people read them: over HTTP to webhooks and
// robots, by SMTP to mail servers. What is sent is decided elsewhere.
//
// Flow: Post dials only addresses that are allowed after their name was resolved, and
// follows no redirect; Mail hands one message over, by TLS or not at all.
//
// Limits: one try each; a proxy of the environment is not used, since whoever dials for
// this program would have to be asked where the name led.
package send

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/structs"
)

// Timeout is how long one try may take, whatever it does.
const Timeout = 20 * time.Second

const (
	answerMax  = 16 << 10 // bytes of an answer that are read
	headersMax = 16 << 10
)

// Poster sends requests. Its methods may be called from any goroutine.
type Poster struct {
	client *http.Client
}

// NewPoster makes a Poster that dials no address that is forbidden; notify.Forbidden
// names those that always are.
func NewPoster(forbidden func(netip.AddrPort) bool) *Poster { return newPoster(forbidden, nil) }

// forbiddenError says that a name led to where nothing may be sent.
type forbiddenError struct{ to netip.AddrPort }

func (e *forbiddenError) Error() string { return e.to.String() + " is not allowed" }

func newPoster(forbidden func(netip.AddrPort) bool, base *http.Transport) *Poster {
	dialer := &net.Dialer{
		Timeout: Timeout / 2,
		// After the name was resolved, with the very address that is dialled: a name that
		// leads elsewhere the second time gains nothing.
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("dial %s: %w", address, err)
			}
			to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
			if forbidden(to) {
				return &forbiddenError{to}
			}
			return nil
		},
	}
	transport := &http.Transport{}
	if base != nil {
		transport = base
	}
	transport.Proxy, transport.DialContext, transport.DisableKeepAlives = nil, dialer.DialContext, true
	transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout = Timeout/2, Timeout
	transport.MaxResponseHeaderBytes = headersMax
	return &Poster{client: &http.Client{
		Transport: transport, Timeout: Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Post sends a request to a channel of a kind, and judges the answer. What went wrong
// never repeats the address, which is a secret.
func (p *Poster) Post(ctx context.Context, kind string, request notify.Request) notify.Result {
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, request.URL, bytes.NewReader(request.Body))
	if err != nil {
		return notify.Result{Final: true, Problem: "notify.problem.url"}
	}
	for name, value := range request.Header {
		ask.Header.Set(name, value)
	}
	ask.Header.Set("User-Agent", "nomadlike")
	answer, err := p.client.Do(ask)
	if err != nil {
		return problemOf(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	if err != nil && kind != structs.ChannelWebhook {
		return problemOf(err)
	}
	return notify.Verdict(kind, answer.StatusCode, answer.Header.Get("Retry-After"), body)
}

// problemOf says what went wrong on the way, without the address that it went to.
func problemOf(err error) notify.Result {
	var forbidden *forbiddenError
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &forbidden):
		return notify.Result{Problem: "notify.problem.forbidden"}
	case errors.As(err, &name):
		return notify.Result{Problem: "notify.problem.name"}
	case errors.Is(err, context.DeadlineExceeded):
		return notify.Result{Problem: "notify.problem.no_answer"}
	case errors.As(err, &network):
		return notify.Result{Problem: network.Op + ": " + network.Err.Error()}
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) { // of url.Error, which tells the address
		err = inner
	}
	return notify.Result{Problem: err.Error()}
}
