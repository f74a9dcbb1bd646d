package front

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/api"
)

// browser asks as the page's scripts do: with the cookie, never with a token.
type browser struct {
	front  http.Handler
	cookie string
}

func (b *browser) send(method, path, body string, header http.Header) *httptest.ResponseRecorder {
	a := ask{method: method, path: path, body: body, header: http.Header{
		"Authorization": nil, "Origin": {"https://127.0.0.1"}, "Sec-Fetch-Site": {"same-origin"}, "X-Nomadlike-Request": {"ui"},
	}}
	if b.cookie != "" {
		a.header.Set("Cookie", sessionCookie+"="+b.cookie)
	}
	for name, values := range header {
		a.header[name] = values
	}
	return a.of(b.front)
}

func (b *browser) signIn(t *testing.T, token string) *http.Cookie {
	t.Helper()
	answer := b.send("POST", "/v1/session", fmt.Sprintf(`{"token":%q}`, token), nil)
	cookies := answer.Result().Cookies()
	if answer.Code != 200 || len(cookies) != 1 {
		t.Fatalf("sign in: %d %s %v", answer.Code, answer.Body, cookies)
	}
	if strings.Contains(answer.Body.String(), token) || strings.Contains(fmt.Sprint(answer.Header()), token) {
		t.Error("the token is in the answer")
	}
	b.cookie = cookies[0].Value
	return cookies[0]
}

func TestSignInGivesACookieThatOnlyThisHostGets(t *testing.T) {
	b := &browser{front: fakeFront(Limits{}, time.Now, nil)}
	if answer := b.send("GET", "/v1/queue", "", nil); answer.Code != 401 {
		t.Fatalf("before signing in: %d", answer.Code)
	}
	cookie := b.signIn(t, goodToken)
	if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" ||
		!strings.HasPrefix(cookie.Name, "__Host-") || cookie.MaxAge <= 0 || len(cookie.Value) > ticketMax || strings.Contains(cookie.Value, goodToken) {
		t.Errorf("cookie %+v", cookie)
	}
	for _, request := range [][3]string{{"GET", "/v1/queue", ""}, {"POST", "/v1/jobs/validate", `{"hcl":"x"}`}, {"DELETE", "/v1/jobs/x", ""}} {
		if answer := b.send(request[0], request[1], request[2], nil); answer.Code != 200 {
			t.Errorf("%v with the cookie: %d %s", request, answer.Code, answer.Body)
		}
	}
	other := &browser{front: b.front}
	if again := other.signIn(t, goodToken); again.Value == cookie.Value {
		t.Error("two sign-ins share a cookie")
	}
	old := b.cookie
	b.signIn(t, goodToken) // in the same browser: the old cookie is over
	if answer := (&browser{front: b.front, cookie: old}).send("GET", "/v1/queue", "", nil); answer.Code != 401 {
		t.Errorf("the cookie before the second sign-in: %d", answer.Code)
	}
}

func TestSignOutEndsTheSession(t *testing.T) {
	b := &browser{front: fakeFront(Limits{}, time.Now, nil)}
	b.signIn(t, goodToken)
	answer := b.send("DELETE", "/v1/session", "", nil)
	if cookies := answer.Result().Cookies(); answer.Code != 200 || len(cookies) != 1 || cookies[0].MaxAge >= 0 || cookies[0].Value != "" {
		t.Errorf("sign out: %d %v", answer.Code, cookies)
	}
	answer = b.send("GET", "/v1/queue", "", nil)
	if failure := failureOf(t, answer); answer.Code != 401 || failure.ID != "agent.session_over" {
		t.Errorf("after signing out: %d %+v", answer.Code, failure)
	}
	if answer := b.send("GET", "/v1/agent/health", "", nil); answer.Code != 200 {
		t.Errorf("an open route with a cookie that is over: %d", answer.Code)
	}
}

// A link signs in once, and not for long; a wrong code counts as a wrong token.
func TestSignInByLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fakeFront(Limits{RequestsPerSec: 100, SubmitsPerSec: 1, Streams: 2, TokenFailures: 5}, time.Now, nil)
		b := &browser{front: f}
		code := func() string {
			link := f.SignInLink("127.0.0.1:1", goodToken)
			address, code, _ := strings.Cut(link, "#code=")
			if address != "https://127.0.0.1:1/" || len(code) < 26 || strings.Contains(link, goodToken) {
				t.Fatalf("link %s", link)
			}
			return code
		}
		use := func(code string) int {
			return b.send("POST", "/v1/session", fmt.Sprintf(`{"code":%q}`, code), nil).Code
		}
		first := code()
		if got := use(first); got != 200 {
			t.Errorf("the first use: %d", got)
		}
		if got := use(first); got != 401 {
			t.Errorf("the second use: %d", got)
		}
		late := code()
		time.Sleep(offerLife)
		if got := use(late); got != 401 {
			t.Errorf("too late: %d", got)
		}
		if got := use(""); got != 401 {
			t.Errorf("no code and no token: %d", got)
		}
		if answer := b.send("POST", "/v1/session", `{"code":"x","token":"good"}`, nil); answer.Code != 400 {
			t.Errorf("code and token: %d", answer.Code)
		}
		for range 3 * offersMax {
			code()
		}
		if n := len(f.sessions.mu.offers); n > offersMax {
			t.Errorf("%d codes are kept", n)
		}
		for range 10 {
			use("guess")
		}
		if got := use("guess"); got != 429 {
			t.Errorf("guessing: %d", got)
		}
	})
}

// What a page of another site can make a browser send, even one that does not
// know SameSite or Fetch metadata.
func TestCookieIsNoUseToOtherSites(t *testing.T) {
	handled := 0
	f := fakeFront(Limits{}, time.Now, func(handlers map[string]Handler) {
		for _, route := range api.Routes() {
			if route.Mutates() || route.Stream == api.StreamWebsocket {
				handlers[route.Name] = func(*Request) error { handled++; return nil }
			}
		}
	})
	b := &browser{front: f}
	b.signIn(t, goodToken)
	handled = 0
	foreign := http.Header{"Origin": {"https://evil.example.com"}, "Sec-Fetch-Site": {"cross-site"}, "X-Nomadlike-Request": nil}
	bare := http.Header{"Origin": nil, "Sec-Fetch-Site": nil, "X-Nomadlike-Request": nil} // of an old browser
	with := func(base http.Header, pairs ...string) http.Header {
		out := base.Clone()
		for i := 0; i < len(pairs); i += 2 {
			out.Set(pairs[i], pairs[i+1])
		}
		return out
	}
	for _, test := range []struct {
		name, method, path, body string
		header                   http.Header
	}{
		{"a form", "POST", "/v1/jobs/x/stop", "reason=1", with(foreign, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Mode", "navigate")},
		{"a form of an old browser", "POST", "/v1/jobs/x/stop", `{}`, with(bare, "Content-Type", "application/json")},
		{"a form without a body", "POST", "/v1/nodes/x/cordon", "", bare},
		{"text that is JSON", "POST", "/v1/jobs", `{"hcl":"x"}`, with(foreign, "Content-Type", "text/plain", "Sec-Fetch-Mode", "no-cors")},
		{"another origin alone", "DELETE", "/v1/jobs/x", "", http.Header{"Origin": {"https://evil.example.com"}, "Sec-Fetch-Site": nil}},
		{"no origin and no header", "DELETE", "/v1/jobs/x", "", bare},
		{"the opaque origin", "DELETE", "/v1/jobs/x", "", http.Header{"Origin": {"null"}, "Sec-Fetch-Site": nil}},
		{"a neighbour's site", "DELETE", "/v1/jobs/x", "", http.Header{"Origin": nil, "Sec-Fetch-Site": {"same-site"}}},
		{"signing in as another", "POST", "/v1/session", `{"token":"good"}`, with(bare, "Content-Type", "application/json")},
		{"signing out", "DELETE", "/v1/session", "", bare},
		{"a websocket of another site", "GET", "/v1/allocations/x/exec", "", with(foreign, "Upgrade", "websocket", "Connection", "Upgrade")},
		{"a websocket without an origin", "GET", "/v1/allocations/x/exec", "", with(bare, "Upgrade", "websocket", "Connection", "Upgrade")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if answer := b.send(test.method, test.path, test.body, test.header); answer.Code != 403 {
				t.Errorf("got %d %s", answer.Code, answer.Body)
			}
		})
	}
	if handled > 0 {
		t.Errorf("%d requests were handled", handled)
	}
	if answer := b.send("GET", "/v1/allocations/x/exec", "", http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}); answer.Code != 200 || handled != 1 {
		t.Errorf("a websocket of our own page: %d", answer.Code)
	}
	if answer := b.send("GET", "/v1/queue", "", http.Header{"Cookie": {sessionCookie + "=AAAA"}}); answer.Code != 401 {
		t.Errorf("an invented cookie: %d", answer.Code)
	}
}

// No route that changes something takes a cookie from another site's page, nor from a
// browser that says nothing of where a request comes from, whatever the route's name is:
// one that is added is asked, too.
func TestNoChangeByACookieFromElsewhere(t *testing.T) {
	handled, asked := 0, 0
	f := fakeFront(Limits{}, time.Now, func(handlers map[string]Handler) {
		for _, route := range api.Routes() {
			if route.Mutates() || route.Stream == api.StreamWebsocket {
				handlers[route.Name] = func(*Request) error { handled++; return nil }
			}
		}
	})
	b := &browser{front: f}
	b.signIn(t, goodToken)
	handled = 0
	for _, route := range api.Routes() {
		if !route.Mutates() && route.Stream != api.StreamWebsocket {
			continue
		}
		path := strings.ReplaceAll(route.Pattern, "{id}", "x")
		for name, header := range map[string]http.Header{
			"another site":  {"Origin": {"https://evil.example.com"}, "Sec-Fetch-Site": {"cross-site"}, "X-Nomadlike-Request": nil, "Content-Type": {"application/json"}},
			"its own words": {"Origin": {"https://evil.example.com"}, "Sec-Fetch-Site": nil, "X-Nomadlike-Request": {"ui"}, "Content-Type": {"application/json"}},
			"no word":       {"Origin": nil, "Sec-Fetch-Site": nil, "X-Nomadlike-Request": nil, "Content-Type": {"application/json"}},
		} {
			if route.Stream == api.StreamWebsocket {
				header.Set("Upgrade", "websocket")
				header.Set("Connection", "Upgrade")
			}
			asked++
			if answer := b.send(route.Method, path, "{}", header); answer.Code != http.StatusForbidden {
				t.Errorf("%s (%s): %d %s", route.Name, name, answer.Code, answer.Body)
			}
		}
	}
	if handled > 0 || asked < 200 {
		t.Errorf("%d of %d requests were handled", handled, asked)
	}
}

// A token is neither in a log nor in an error, whether it is good or wrong.
func TestTokensAreNotLogged(t *testing.T) {
	var log bytes.Buffer
	f := fakeFront(Limits{}, time.Now, func(handlers map[string]Handler) {
		handlers["queue.read"] = func(*Request) error { return fmt.Errorf("a defect") }
	})
	f.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b := &browser{front: f}
	b.signIn(t, goodToken)
	b.send("GET", "/v1/queue", "", nil)
	const wrong = "nl_user_canary"
	answer := b.send("POST", "/v1/session", fmt.Sprintf(`{"token":%q}`, wrong), nil)
	if answer.Code != 401 || strings.Contains(answer.Body.String(), "canary") {
		t.Errorf("a wrong token: %d %s", answer.Code, answer.Body)
	}
	for _, secret := range []string{"canary", "Bearer", b.cookie} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, log.String())
		}
	}
	if log.Len() == 0 {
		t.Error("nothing was logged: the test looks in the wrong place")
	}
}

func TestWrongTokensAtSignInAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &browser{front: fakeFront(Limits{RequestsPerSec: 100, SubmitsPerSec: 1, Streams: 2, TokenFailures: 3}, time.Now, nil)}
		codes := map[int]int{}
		for range 10 {
			codes[b.send("POST", "/v1/session", `{"token":"bad"}`, nil).Code]++
		}
		if codes[401] != 2 || codes[429] != 8 {
			t.Errorf("wrong tokens: %v", codes)
		}
		b.signIn(t, goodToken) // is not locked out
	})
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(time.Now)
		idle, expires := s.begin("secret", "192.0.2.1", time.Time{})
		if got := time.Until(expires); got != sessionLife {
			t.Errorf("lives for %s", got)
		}
		busy, _ := s.begin("secret", "192.0.2.1", time.Time{})
		short, expires := s.begin("secret", "192.0.2.1", time.Now().Add(time.Hour))
		if got := time.Until(expires); got != time.Hour {
			t.Errorf("of a token that ends in an hour: %s", got)
		}
		alive := s.find(idle, "192.0.2.1").alive
		time.Sleep(time.Hour)
		if s.find(short, "192.0.2.1") != nil {
			t.Error("outlives its token")
		}
		for range int(sessionLife/sessionIdle) * 2 {
			if s.find(busy, "192.0.2.1") == nil {
				t.Fatal("a busy session ended")
			}
			time.Sleep(sessionIdle/2 - 5*time.Minute)
		}
		if s.find(idle, "192.0.2.1") != nil || alive.Err() == nil {
			t.Error("an idle session lives on")
		}
		time.Sleep(12 * time.Hour)
		if s.find(busy, "192.0.2.1") != nil {
			t.Error("a session outlives its week")
		}
		first, _ := s.begin("secret", "192.0.2.1", time.Time{})
		time.Sleep(time.Second)
		second, _ := s.begin("secret", "192.0.2.1", time.Time{})
		for range sessionsAt - 1 {
			s.begin("secret", "192.0.2.1", time.Time{})
		}
		if s.find(first, "192.0.2.1") != nil || s.find(second, "192.0.2.1") == nil || len(s.mu.byID) != sessionsAt {
			t.Errorf("%d sessions are kept", len(s.mu.byID))
		}
	})
}

// TestSignInsLogNobodyOut: guests by a share link sign in again and again, from
// one address and from many; whoever came by another token, or by the same link
// from elsewhere, stays.
func TestSignInsLogNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(time.Now)
		ada, _ := s.begin("ada's", "192.0.2.1", time.Time{})
		guest, _ := s.begin("link", "192.0.2.2", time.Time{})
		time.Sleep(time.Minute) // both are the quietest
		for range 4800 {
			s.begin("link", "192.0.2.66", time.Time{})
		}
		if s.find(ada, "192.0.2.1") == nil || s.find(guest, "192.0.2.1") == nil || len(s.mu.byID) != sessionsAt+2 {
			t.Errorf("from one address: %d sessions are left", len(s.mu.byID))
		}
		for i := range 4800 {
			s.begin("link", fmt.Sprintf("198.51.%d.%d", i/250, i%250), time.Time{})
		}
		if s.find(ada, "192.0.2.1") == nil || len(s.mu.byID) != sessionsOf+1 {
			t.Errorf("from many: %d sessions are left", len(s.mu.byID))
		}
		for i := range sessionsMax { // a user with many tokens
			s.begin(fmt.Sprintf("mine-%d", i/200), fmt.Sprintf("198.51.%d.%d", i/250, i%250), time.Time{})
		}
		if s.find(ada, "192.0.2.1") == nil || len(s.mu.byID) != sessionsMax {
			t.Errorf("by many tokens: %d sessions are left", len(s.mu.byID))
		}
	})
}

// TestWrongTokensDoNotFillTheLog: one line for an address and ten seconds, with
// how many there were.
func TestWrongTokensDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		f := fakeFront(generous, time.Now, nil)
		f.log = slog.New(slog.NewTextHandler(&logged, nil))
		wrong := func(count int, remote string) {
			for range count {
				ask{path: "/v1/queue", remote: remote, header: http.Header{"Authorization": {"Bearer x"}}}.of(f)
			}
		}
		wrong(1000, "192.0.2.7:1")
		wrong(1, "192.0.2.8:1")
		if lines := strings.Count(logged.String(), "credentials refused"); lines != 2 {
			t.Errorf("%d lines of two addresses", lines)
		}
		time.Sleep(failuresToldEvery)
		wrong(1, "192.0.2.7:1")
		if !strings.Contains(logged.String(), "count=1000") {
			t.Errorf("what was left out is not counted: %s", logged.String())
		}
	})
}
