package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// transport bounds what a provider may send and how often its keys are fetched. A
// token with an unknown key has them fetched again, since that is how keys are
// rotated; but whoever sends such tokens must not have the provider flooded.
type transport struct {
	inner http.RoundTripper
	now   func() time.Time

	mu struct {
		sync.Mutex
		keysAt string // address of the provider's keys
		keys   *kept
	}
}

// kept is an answer with keys, as it was given a moment ago.
type kept struct {
	head http.Header
	body []byte
	at   time.Time
}

// keysEvery is how often keys are fetched at most.
const keysEvery = 10 * time.Second

func newTransport(inner http.RoundTripper, now func() time.Time) *transport {
	return &transport{inner: inner, now: now}
}

// keysAt says which address has the provider's keys.
func (t *transport) keysAt(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.keysAt != address {
		t.mu.keysAt, t.mu.keys = address, nil
	}
}

// keysFor returns the keys as they were a moment ago, and whether a request is for keys.
func (t *transport) keysFor(request *http.Request) (*kept, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if request.Method != http.MethodGet || request.URL.String() != t.mu.keysAt {
		return nil, false
	}
	if t.mu.keys == nil || !t.now().Before(t.mu.keys.at.Add(keysEvery)) {
		return nil, true
	}
	return t.mu.keys, true
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errors.New("a provider is asked over TLS alone")
	}
	last, forKeys := t.keysFor(request)
	if last != nil {
		return last.answer(request), nil
	}
	answer, err := t.inner.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerMax+1))
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	switch {
	case err != nil:
		return nil, err
	case len(body) > answerMax:
		return nil, fmt.Errorf("its answer has more than %d bytes", answerMax)
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if forKeys && answer.StatusCode == http.StatusOK {
		t.mu.Lock()
		t.mu.keys = &kept{answer.Header.Clone(), body, t.now()}
		t.mu.Unlock()
	}
	return answer, nil
}

func (k *kept) answer(request *http.Request) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: k.head.Clone(), Body: io.NopCloser(bytes.NewReader(k.body)), ContentLength: int64(len(k.body)),
	}
}

// noRedirects has a provider be where it says that it is: a code or a secret is
// carried nowhere else.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// get reads JSON from a provider.
func (p *Provider) get(ctx context.Context, address, access string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+access)
	return p.ask(request, into)
}

// post sends a form with the client's credentials, as the token endpoint wants them.
func (p *Provider) post(ctx context.Context, m *metadata, address string, form url.Values, into any) error {
	basic := m.client.Endpoint.AuthStyle == oauth2.AuthStyleInHeader
	if !basic {
		form.Set("client_id", p.config.ClientID)
		if p.config.ClientSecret != "" {
			form.Set("client_secret", string(p.config.ClientSecret))
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if basic {
		request.SetBasicAuth(url.QueryEscape(p.config.ClientID), url.QueryEscape(string(p.config.ClientSecret)))
	}
	return p.ask(request, into)
}

// oauthError is a refusal in the words of OAuth (RFC 6749, section 5.2).
type oauthError struct{ Code string }

func (e *oauthError) Error() string { return fmt.Sprintf("it answers %.64q", e.Code) }

func (p *Provider) ask(request *http.Request, into any) error {
	request.Header.Set("Accept", "application/json")
	answer, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it is in memory already
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fmt.Errorf("it answers %d with something else than JSON", answer.StatusCode)
	}
	if answer.StatusCode != http.StatusOK {
		var said struct {
			Error string `json:"error"`
		}
		if json.NewDecoder(answer.Body).Decode(&said) == nil && said.Error != "" {
			return &oauthError{said.Error}
		}
		return fmt.Errorf("it answers %d", answer.StatusCode)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
