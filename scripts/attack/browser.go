package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// guestSignIns are more than there is room for sessions on one agent.
const guestSignIns = 4800

// page is what a browser holds: the cookie of whoever signed in, "" for nobody.
type page struct {
	client *http.Client
	base   string
	cookie string
}

// page opens the first server's pages, with a connection that stays.
func (t *target) page() *page {
	client := t.browser(nil)
	client.Transport.(*http.Transport).DisableKeepAlives = false
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &page{client: client, base: "https://" + t.servers[0]}
}

// send asks as a page's script does; header replaces what that sends.
func (p *page) send(ctx context.Context, method, path, body string, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, p.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(api.HeaderRequestedBy, "ui")
	request.Header.Set("Origin", p.base)
	if p.cookie != "" {
		request.Header.Set("Cookie", p.cookie)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response, err
}

// status is what send was answered with.
func (p *page) status(ctx context.Context, method, path, body string, header http.Header) (int, error) {
	response, err := p.send(ctx, method, path, body, header)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}

// signIn exchanges a token for a cookie.
func (p *page) signIn(ctx context.Context, token string) (*http.Cookie, error) {
	response, err := p.send(ctx, http.MethodPost, "/v1/session", fmt.Sprintf("{\"token\":%q}", token), nil)
	if err != nil {
		return nil, err
	}
	cookies := response.Cookies()
	if response.StatusCode != http.StatusOK || len(cookies) != 1 {
		return nil, fmt.Errorf("sign in: status %d, %d cookies", response.StatusCode, len(cookies))
	}
	p.cookie = cookies[0].Name + "=" + cookies[0].Value
	return cookies[0], nil
}

// pages attacks what browsers are shown and send. job is one of another project
// with a link for guests.
func (t *target) pages(user *api.Client, job string) {
	person := t.page()
	signedIn := func(ctx context.Context) error {
		if person.cookie == "" {
			if _, err := person.signIn(ctx, t.token); err != nil {
				return err
			}
		}
		status, err := person.status(ctx, http.MethodGet, "/v1/tokens/self", "", nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	}
	t.line("9 4,800 sign-ins of guests by one link", "somebody signed in before, and at least 300 guests got in", signedIn, func(ctx context.Context) error {
		link, err := t.admin.ShareJob(ctx, job, api.ShareRequest{Name: "guests"})
		if err != nil {
			return err
		}
		var left, in atomic.Int64
		left.Store(guestSignIns)
		var guests sync.WaitGroup
		for range 8 {
			guests.Go(func() {
				one := t.page()
				for left.Add(-1) >= 0 && ctx.Err() == nil {
					one.cookie = "" // a new guest
					if _, err := one.signIn(ctx, link.Secret); err == nil {
						in.Add(1)
					}
				}
			})
		}
		guests.Wait()
		fmt.Printf("        %d of %d guests got in\n", in.Load(), guestSignIns)
		if in.Load() < 300 {
			return fmt.Errorf("not tried: %d guests got in", in.Load())
		}
		if err := signedIn(ctx); err != nil {
			return fmt.Errorf("who was signed in is not any more: %w", err)
		}
		return nil
	})
	t.line("6.22 cookies and pages that scripts or frames could use", "the sign-in gives a cookie, the page is answered", signedIn, func(ctx context.Context) error {
		other := t.page()
		cookie, err := other.signIn(ctx, t.token)
		if err != nil {
			return err
		}
		if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || !strings.HasPrefix(cookie.Name, "__Host-") {
			return fmt.Errorf("the cookie is %s, secure %t, http only %t, same site %d", cookie.Name, cookie.Secure, cookie.HttpOnly, cookie.SameSite)
		}
		for _, path := range []string{"/", "/v1/tokens/self", "/no-such-page"} {
			response, err := other.send(ctx, http.MethodGet, path, "", nil)
			if err != nil {
				return err
			}
			policy := response.Header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || response.Header.Get("X-Content-Type-Options") != "nosniff" || response.Header.Get("Access-Control-Allow-Origin") != "" {
				return fmt.Errorf("%s: policy %q, headers %v", path, policy, response.Header)
			}
		}
		return nil
	})
	valid := fmt.Sprintf("{\"hcl\":%q}", plainJob("forged").HCL)
	t.line("6.19 another site's page that uses the cookie", "the page itself may: its job is valid", func(ctx context.Context) error {
		if err := signedIn(ctx); err != nil {
			return err
		}
		status, err := person.status(ctx, http.MethodPost, "/v1/jobs/validate", valid, nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	}, func(ctx context.Context) error {
		for name, header := range map[string]http.Header{
			"another origin":        {"Origin": {"https://evil.example"}},
			"no origin, cross site": {"Origin": nil, "Sec-Fetch-Site": {"cross-site"}},
			"a form":                {api.HeaderRequestedBy: nil, "Content-Type": {"text/plain"}},
		} {
			if status, err := person.status(ctx, http.MethodPost, "/v1/jobs", valid, header); err != nil || status != http.StatusForbidden {
				return fmt.Errorf("%s: status %d, %v", name, status, err)
			}
		}
		upgrade := http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
		for name, origin := range map[string][]string{"a foreign page's websocket": {"https://evil.example"}, "a websocket without an origin": nil} {
			upgrade["Origin"] = origin
			if status, err := person.status(ctx, http.MethodGet, "/v1/allocations/"+nobody+"/exec", "", upgrade); err != nil || status != http.StatusForbidden {
				return fmt.Errorf("%s: status %d, %v", name, status, err)
			}
		}
		return nil
	})
	script := "<img src=x onerror=alert(1)></script><script>alert(1)</script>"
	var own string
	t.line("6.17 6.18 texts and files that browsers could run", "the text is in the log that is given out", func(ctx context.Context) error {
		hcl := strings.Replace(plainJob("script").HCL, "\"true\"", fmt.Sprintf("%q", "printf %s '"+script+"'"), 1)
		submitted, err := user.SubmitJob(ctx, api.JobRequest{HCL: hcl}, "")
		if err != nil {
			return err
		}
		own = submitted.JobID
		return t.await(ctx, own, structs.JobSucceeded)
	}, func(ctx context.Context) error {
		list, _, err := t.admin.Allocations(ctx, own, api.AllocationFilter{}, nil)
		if err != nil || len(list.Allocations) == 0 {
			return fmt.Errorf("find its rank: %w", err)
		}
		if err := signedIn(ctx); err != nil {
			return err
		}
		for path, kind := range map[string]string{
			"/v1/allocations/" + list.Allocations[0].ID + "/logs":     "text/plain",
			"/v1/jobs/" + own + "/files/content?path=logs%2Fstdout.0": "application/octet-stream",
		} {
			response, err := person.send(ctx, http.MethodGet, path, "", nil)
			if err != nil {
				return err
			}
			data, _ := io.ReadAll(response.Body)
			if !bytes.Contains(data, []byte(script)) {
				return fmt.Errorf("not tried: %s is answered %d %.80q", path, response.StatusCode, data)
			}
			if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, kind) || response.Header.Get("X-Content-Type-Options") != "nosniff" {
				return fmt.Errorf("%s is %s", path, got)
			}
		}
		for _, name := range []string{"<script>", "a\"onerror=", "x}\\nfake 1", "=cmd()"} { // names go to pages, metrics and tables
			_, err := user.SubmitJob(ctx, api.JobRequest{HCL: strings.Replace(plainJob("NAME").HCL, "\"NAME\"", fmt.Sprintf("%q", name), 1)}, "")
			if err := refusedAs(err, structs.CodeInvalid); err != nil {
				return fmt.Errorf("a job %q: %w", name, err)
			}
		}
		return nil
	})
	t.revoked(job)
}

// revoked takes a token away while it is used.
func (t *target) revoked(job string) {
	var client *api.Client
	var made *api.NewToken
	var streams []io.Closer
	ended := make(chan string, 2)
	t.line("6.12 a token that is taken back while its streams are open", "both streams were open a second after they had been opened", func(ctx context.Context) error {
		var err error
		if made, err = t.admin.CreateToken(ctx, api.TokenRequest{Role: "project-admin", Project: "victims", User: "eve"}); err != nil {
			return err
		}
		if client, err = t.client(made.Secret); err != nil {
			return err
		}
		events, err := client.Events(context.Background(), api.EventFilter{})
		if err != nil {
			return err
		}
		list, _, err := t.admin.Allocations(ctx, job, api.AllocationFilter{}, nil)
		if err != nil || len(list.Allocations) == 0 {
			return fmt.Errorf("find a rank: %w", err)
		}
		logs, err := client.Logs(context.Background(), list.Allocations[0].ID, api.LogOptions{Follow: true})
		if err != nil {
			return err
		}
		streams = append(streams, events, logs)
		go func() {
			for {
				if _, err := events.Next(); err != nil {
					ended <- "events"
					return
				}
			}
		}()
		go func() {
			_, _ = io.Copy(io.Discard, logs)
			ended <- "logs"
		}()
		select {
		case name := <-ended:
			return fmt.Errorf("the stream of %s ended by itself", name)
		case <-time.After(time.Second):
			return nil
		}
	}, func(ctx context.Context) error {
		if _, err := t.admin.DeleteToken(ctx, made.Token.ID); err != nil {
			return err
		}
		begin := time.Now()
		for range streams {
			select {
			case name := <-ended:
				fmt.Printf("        %s ended after %s\n", name, round(time.Since(begin)))
			case <-time.After(2 * time.Second):
				return errors.New("a stream is open 2 s later")
			}
		}
		_, err := client.SelfToken(ctx)
		return refusedAs(err, structs.CodeUnauthorized)
	})
	for _, stream := range streams {
		_ = stream.Close()
	}
}
