package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"nomadlike/nomadlike/structs"
)

// How a client waits and retries.
const (
	DefaultAddress = "https://127.0.0.1:4646"

	retryForDefault = 10 * time.Second
	retryFirst      = 20 * time.Millisecond
	retryLongest    = time.Second
	patienceAlone   = 10 * time.Second // with an agent's silence, when there is no other to ask
	patienceOfMany  = time.Second      // when there is
	patienceUpload  = 30 * time.Second // with an agent that takes in nothing of an upload: it writes what came to its disk
	idleConnsMax    = 16
	keepAliveIdle   = 5 * time.Second
	keepAliveCount  = 3
	errorBodyMax    = 1 << 20
)

// Config says how to reach a cluster.
type Config struct {
	// Address is https://host:port of any agent of the cluster, or several
	// of them separated by commas: the next one is asked when one does not
	// answer. A node passes the connection on to a server unopened; only a
	// server is told anything. Empty means DefaultAddress.
	Address string
	// Token is the secret of an API token; empty for public routes only.
	Token string
	// CAPEM is the cluster's CA. Without it CAFingerprint must pin it.
	CAPEM []byte
	// CAFingerprint is the SHA-256 of the CA certificate in hexadecimal,
	// for the first contact with a cluster.
	CAFingerprint string
	// LearnCA, if set, is called with the CA, as PEM, that took the place of
	// CAPEM: whoever remembers that one should remember this one instead. Any
	// goroutine may call it, any number of times.
	LearnCA func(caPEM []byte)
	// Language is sent as Accept-Language; empty means English.
	Language string
	// Project is the project that requests act in; empty means the caller's own.
	Project string
	// RetryFor is how long requests that are safe to repeat are repeated
	// while the cluster is unavailable; 0 means ten seconds, less than 0
	// never.
	RetryFor time.Duration
	// HTTPClient replaces the client's own transport, for tests.
	HTTPClient *http.Client
}

// Client speaks to a cluster. Any number of goroutines may use it.
type Client struct {
	bases    []*url.URL
	current  atomic.Uint32 // index into bases of the address that answered last
	token    string
	language string
	project  string
	retryFor time.Duration
	http     *http.Client
	uploads  *http.Client // for bytes that are sent once
}

// New makes a client; it does not connect yet.
func New(config Config) (*Client, error) {
	client := &Client{token: config.Token, language: config.Language, project: config.Project, retryFor: config.RetryFor, http: config.HTTPClient}
	if client.retryFor == 0 {
		client.retryFor = retryForDefault
	}
	address := config.Address
	if address == "" {
		address = DefaultAddress
	}
	for _, text := range strings.Split(address, ",") {
		base, err := parseAddress(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		client.bases = append(client.bases, base)
	}
	if client.http != nil {
		client.uploads = client.http
		return client, nil
	}
	tlsConfig, err := clientTLS(config.CAPEM, config.CAFingerprint, config.LearnCA)
	if err != nil {
		return nil, err
	}
	patience := patienceAlone
	if len(client.bases) > 1 {
		patience = patienceOfMany
	}
	asIs := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.http = &http.Client{Transport: newTransport(tlsConfig, patience, patience), CheckRedirect: asIs}
	client.uploads = &http.Client{Transport: newTransport(tlsConfig, patience, patienceUpload), CheckRedirect: asIs}
	return client, nil
}

// newTransport speaks HTTP/1.1 to agents directly: proxies of the
// environment do not know the cluster's CA and have no part in it. A machine
// that fell silent is given up after patience, and after silence on a connection
// that was open before, which is also for how long one may take nothing in of
// what it is sent.
func newTransport(config *tls.Config, patience, silence time.Duration) *http.Transport {
	dialer := &net.Dialer{
		Timeout: patience,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: time.Second, Count: keepAliveCount,
		},
		Control: func(_, _ string, conn syscall.RawConn) error { return giveUpAfter(conn, silence) },
	}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: patience,
		MaxIdleConnsPerHost: idleConnsMax,
		IdleConnTimeout:     time.Minute,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

func parseAddress(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Path != "" && base.Path != "/" || base.RawQuery != "" || base.User != nil {
		return nil, structs.NewError(structs.CodeInvalid, "api.bad_address", "address", text)
	}
	if base.Scheme != "https" {
		return nil, structs.NewError(structs.CodeInvalid, "api.not_https", "address", text)
	}
	if base.Port() == "" {
		base.Host = net.JoinHostPort(base.Hostname(), "4646")
	}
	base.Path = ""
	return base, nil
}

// In is the same client whose requests act in a project, "" for the caller's own.
// Both share connections.
func (c *Client) In(project string) *Client {
	return &Client{bases: c.bases, token: c.token, language: c.language, project: project, retryFor: c.retryFor, http: c.http, uploads: c.uploads}
}

// WithToken is the same client with another token. Both share connections.
func (c *Client) WithToken(token string) *Client {
	return &Client{bases: c.bases, token: token, language: c.language, project: c.project, retryFor: c.retryFor, http: c.http, uploads: c.uploads}
}

// Address is where the client asks first now.
func (c *Client) Address() string { return c.base().String() }

// Close drops the client's idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.uploads.CloseIdleConnections()
}

func (c *Client) base() *url.URL { return c.bases[int(c.current.Load())%len(c.bases)] }

// Query is what reads have in common. A nil *Query is a plain linearizable
// read.
type Query struct {
	Index uint64        // block until something newer than this index is known,
	Wait  time.Duration // but no longer than this; 0 is the server's default
	Stale bool          // accept what the asked server knows, without the leader
	Limit int           // items of one page
	After string        // cursor of the page
}

func (q *Query) values() url.Values {
	values := url.Values{}
	if q == nil {
		return values
	}
	if q.Index > 0 {
		values.Set("index", strconv.FormatUint(q.Index, 10))
	}
	if q.Wait > 0 {
		values.Set("wait", q.Wait.String())
	}
	if q.Stale {
		values.Set("stale", "true")
	}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.After != "" {
		values.Set("after", q.After)
	}
	return values
}

// Meta reports at which index an answer was read: give it as Query.Index to
// wait for a newer one.
type Meta struct {
	Index uint64
}

// call is one request in the making.
type call struct {
	method string
	path   string
	query  url.Values
	in     any       // JSON body, or
	upload io.Reader // bytes, sent once and never repeated
	header http.Header
	// repeat says that the request may be sent again after a failure that
	// leaves its outcome unknown: reads, and writes with an idempotency key.
	repeat bool
}

// do sends a request and reads its JSON answer into out (nil to ignore it).
func (c *Client) do(ctx context.Context, call call, out any) (*Meta, error) {
	response, err := c.send(ctx, call)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	meta := &Meta{}
	if text := response.Header.Get(HeaderIndex); text != "" {
		meta.Index, err = strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read header %s: %w", HeaderIndex, err)
		}
	}
	if out == nil {
		return meta, nil
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, AnswerSizeMax)).Decode(out); err != nil {
		return nil, fmt.Errorf("read answer of %s %s: %w", call.method, call.path, err)
	}
	return meta, nil
}

// send sends a request until it is answered, cannot be repeated, or RetryFor
// has passed. The caller closes the body of a nil-error answer, whose status
// is below 300.
func (c *Client) send(ctx context.Context, call call) (*http.Response, error) {
	var body []byte
	if call.in != nil {
		var err error
		if body, err = json.Marshal(call.in); err != nil {
			return nil, fmt.Errorf("encode request of %s %s: %w", call.method, call.path, err)
		}
	}
	begin := time.Now()
	for wait := retryFirst; ; wait = min(2*wait, retryLongest) {
		response, nothingDone, err := c.once(ctx, call, body)
		if err == nil {
			return response, nil
		}
		if !mayRepeat(call, nothingDone, err) || time.Since(begin)+wait > c.retryFor {
			return nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		case <-timer.C:
		}
	}
}

// mayRepeat reports whether sending call again after err can do no harm:
// nothing was done, or doing it twice is doing it once.
func mayRepeat(call call, nothingDone bool, err error) bool {
	return call.upload == nil && structs.CodeOf(err) == structs.CodeUnavailable && !structs.IsLasting(err) && (nothingDone || call.repeat)
}

// once sends a request once. nothingDone says of a failure that the request
// had no effect: no connection was made, or an agent said so itself by
// answering "unavailable".
func (c *Client) once(ctx context.Context, call call, body []byte) (_ *http.Response, nothingDone bool, _ error) {
	base := c.base()
	target := *base
	target.Path, target.RawPath = unescaped(call.path), call.path
	target.RawQuery = call.query.Encode()
	reader := call.upload
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, target.String(), reader)
	if err != nil {
		return nil, true, fmt.Errorf("make request %s %s: %w", call.method, call.path, err)
	}
	for name, values := range call.header {
		request.Header[name] = values
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if call.repeat {
		request.GetBody = nil // send repeats it at the next address; net/http would, at the one that fell silent
	}
	c.sign(request.Header)
	response, err := c.doorOf(call).Do(request)
	if err != nil {
		return nil, notSent(err), c.unreached(ctx, base, err)
	}
	if response.StatusCode < 300 {
		return response, false, nil
	}
	defer response.Body.Close()
	told, err := decodeError(response)
	return nil, told, err
}

// doorOf is the way out for a request.
func (c *Client) doorOf(call call) *http.Client {
	if call.upload != nil {
		return c.uploads
	}
	return c.http
}

// notSent reports whether a transport failed before it sent anything.
func notSent(err error) bool {
	var op *net.OpError
	var untrusted *untrustedError
	return errors.As(err, &untrusted) || errors.As(err, &op) && op.Op == "dial"
}

// sign adds the headers that every request carries. HeaderRequestedBy tells
// agents that no browser form made the request.
func (c *Client) sign(header http.Header) {
	if c.token != "" {
		header.Set("Authorization", "Bearer "+c.token)
	}
	if c.language != "" {
		header.Set("Accept-Language", c.language)
	}
	if c.project != "" {
		header.Set(HeaderProject, c.project)
	}
	header.Set(HeaderRequestedBy, "api")
}

// unreached turns a transport's failure into an error for people and moves
// on to the next address.
func (c *Client) unreached(ctx context.Context, base *url.URL, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask %s: %w", base.Host, ctx.Err())
	}
	c.current.Add(1)
	if refused := refusedPeer(base.Host, err); refused != nil {
		return refused
	}
	return structs.NewError(structs.CodeUnavailable, "api.unreachable", "address", base.Host, "reason", rootCause(err)).Because(err)
}

// rootCause is the innermost text of a chain of errors, which is what a
// person needs ("connection refused").
func rootCause(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// decodeError reads an error answer; told says that it is an agent's own.
// Anything else, for instance of a proxy in between, is told as it is.
func decodeError(response *http.Response) (told bool, _ error) {
	data, err := io.ReadAll(io.LimitReader(response.Body, errorBodyMax))
	if err != nil {
		return false, structs.NewError(structs.CodeUnavailable, "api.answer_broken", "status", response.StatusCode).Because(err)
	}
	decoded := new(structs.Error)
	if err := json.Unmarshal(data, decoded); err == nil && decoded.Code != "" && decoded.ID != "" {
		return true, decoded
	}
	code := structs.CodeInternal
	if response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusBadGateway {
		code = structs.CodeUnavailable
	}
	text := strings.TrimSpace(string(data[:min(len(data), 200)]))
	return false, structs.NewError(code, "api.foreign_answer", "status", response.StatusCode, "text", text)
}

// newKey makes an idempotency key.
func newKey() string {
	var key [16]byte
	rand.Read(key[:]) // never fails, see crypto/rand
	return hex.EncodeToString(key[:])
}

func unescaped(path string) string {
	plain, err := url.PathUnescape(path)
	if err != nil {
		return path
	}
	return plain
}
