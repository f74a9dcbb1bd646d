package front

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// fakeCallers know one token of an administrator.
type fakeCallers struct{}

const goodToken = "good"

func (fakeCallers) Authenticate(_ context.Context, secret, _ string, _ bool) (Caller, error) {
	if secret != goodToken {
		return Caller{}, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	}
	token := &structs.Token{ID: "t1", Role: "admin", User: "ada"}
	return Caller{Principal: auth.Principal{Kind: auth.KindUser, ID: "ada", Role: auth.RoleAdmin}, Token: token}, nil
}

func (fakeCallers) Again(_ context.Context, caller Caller) (Caller, error) { return caller, nil }

// findAny finds every object.
func findAny(r *Request) (auth.Object, error) {
	object := auth.Object{Kind: auth.ObjectKind(r.Route.Kind), ID: r.ID, Owner: "ada"}
	if r.Route.Kind == api.ObjectJob {
		object.Project = "default"
	}
	return object, nil
}

// fakeFront answers every route with its name.
func fakeFront(limits Limits, now func() time.Time, edit func(map[string]Handler)) *Front {
	if limits.RequestsPerSec == 0 {
		limits = Limits{Streams: 128, RequestsPerSec: 100, SubmitsPerSec: 20, TokenFailures: 10}
	}
	f := New(Config{
		Log: slog.New(slog.DiscardHandler), Now: now, Hosts: []string{"nomadlike.example.org"}, Limits: limits, Rest: NoPages(), Callers: fakeCallers{},
	})
	handlers := map[string]Handler{}
	for _, route := range api.Routes() {
		handlers[route.Name] = func(r *Request) error { return r.Reply(map[string]any{"route": r.Route.Name}) }
	}
	if edit != nil {
		edit(handlers)
	}
	f.Route(tableOf(handlers))
	return f
}

// tableOf is a table of handlers that care for no type, by the names of routes.
func tableOf(handlers map[string]Handler) *Table {
	t := NewTable()
	for _, route := range api.Routes() {
		handle, known := handlers[route.Name]
		if !known {
			continue
		}
		t.entries[route.Name] = entry{through: t.through, open: func() call {
			c := call{find: findAny, handle: handle}
			if route.Request != nil {
				c.into = reflect.New(reflect.TypeOf(route.Request)).Interface()
			}
			return c
		}}
	}
	return t
}

type ask struct {
	method, path, body string
	header             http.Header
	host, remote       string
}

func (a ask) of(f http.Handler) *httptest.ResponseRecorder {
	if a.method == "" {
		a.method = http.MethodGet
	}
	request := httptest.NewRequest(a.method, "https://127.0.0.1"+a.path, strings.NewReader(a.body))
	request.RemoteAddr = "192.0.2.1:9"
	if a.remote != "" {
		request.RemoteAddr = a.remote
	}
	if a.host != "" {
		request.Host = a.host
	}
	request.Header.Set("Authorization", "Bearer "+goodToken)
	if a.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, values := range a.header {
		request.Header[name] = values
	}
	recorder := httptest.NewRecorder()
	f.ServeHTTP(recorder, request)
	return recorder
}

func failureOf(t *testing.T, r *httptest.ResponseRecorder) *structs.Error {
	t.Helper()
	failure := new(structs.Error)
	if err := json.Unmarshal(r.Body.Bytes(), failure); err != nil {
		t.Fatalf("answer is no error: %s", r.Body.String())
	}
	return failure
}

func TestFrontRefuses(t *testing.T) {
	f := fakeFront(Limits{}, time.Now, nil)
	deep := strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100)
	for _, test := range []struct {
		name   string
		ask    ask
		status int
		id     string
	}{
		{"an unknown path", ask{path: "/v1/nothing"}, 404, "agent.route_unknown"},
		{"an unknown method", ask{path: "/v1/queue", method: "POST"}, 405, "agent.method"},
		{"another host", ask{path: "/v1/queue", host: "evil.example.com"}, 421, "agent.misdirected"},
		{"a host of our name with an ending", ask{path: "/v1/queue", host: "nomadlike.example.org.evil.com"}, 421, "agent.misdirected"},
		{"another site", ask{path: "/v1/queue", header: http.Header{"Origin": {"https://evil.example.com"}}}, 403, "agent.foreign_origin"},
		{"our site without TLS", ask{path: "/v1/queue", header: http.Header{"Origin": {"http://127.0.0.1"}}}, 403, "agent.foreign_origin"},
		{"a cross-site fetch", ask{path: "/v1/queue", header: http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}}}, 403, "agent.foreign_origin"},
		{"a cross-site form", ask{path: "/v1/jobs", method: "POST", body: "{}", header: http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}}}, 403, "agent.foreign_origin"},
		{"a form's body", ask{path: "/v1/jobs", method: "POST", body: `{"hcl":"x"}`, header: http.Header{"Content-Type": {"text/plain"}}}, 400, "agent.content_type"},
		{"no body", ask{path: "/v1/jobs", method: "POST", header: http.Header{"Content-Type": {"application/json"}}}, 400, "agent.body_malformed"},
		{"a body that is too large", ask{path: "/v1/jobs", method: "POST", body: `{"hcl":"` + strings.Repeat("x", api.BodySizeMax) + `"}`}, 413, "agent.body_too_large"},
		{"an unknown field", ask{path: "/v1/jobs", method: "POST", body: `{"hcl":"x","user":"root"}`}, 400, "agent.body_malformed"},
		{"a key twice", ask{path: "/v1/jobs", method: "POST", body: `{"hcl":"x","hcl":"y"}`}, 400, "agent.body_malformed"},
		{"a key twice, spelled with an escape", ask{path: "/v1/jobs", method: "POST", body: `{"hcl":"x","\u0068cl":"y"}`}, 400, "agent.body_malformed"},
		{"deep nesting", ask{path: "/v1/jobs", method: "POST", body: deep}, 400, "agent.body_malformed"},
		{"two values", ask{path: "/v1/jobs", method: "POST", body: `{"hcl":"x"}{}`}, 400, "agent.body_malformed"},
		{"a figure out of range", ask{path: "/v1/tokens", method: "POST", body: `{"role":"admin","ttl":1e999}`}, 400, "agent.body_malformed"},
		{"no token", ask{path: "/v1/queue", header: http.Header{"Authorization": nil}}, 401, "auth.login_required"},
		{"a wrong token", ask{path: "/v1/queue", header: http.Header{"Authorization": {"Bearer bad"}}}, 401, "auth.token_invalid"},
		{"two tokens", ask{path: "/v1/queue", header: http.Header{"Authorization": {"Bearer good", "Bearer good"}}}, 401, "auth.token_invalid"},
		{"another scheme", ask{path: "/v1/queue", header: http.Header{"Authorization": {"Basic good"}}}, 401, "auth.token_invalid"},
		{"a wrong token on an open route", ask{path: "/v1/agent/health", header: http.Header{"Authorization": {"Bearer bad"}}}, 401, "auth.token_invalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := test.ask.of(f)
			failure := failureOf(t, answer)
			if answer.Code != test.status || failure.ID != test.id {
				t.Errorf("got %d %+v, want %d %s", answer.Code, failure, test.status, test.id)
			}
			if failure.Message == "" || strings.Contains(failure.Message, "{") && !strings.Contains(test.ask.body, "{") {
				t.Errorf("message %q", failure.Message)
			}
			if got := answer.Header().Get("X-Content-Type-Options"); got != "nosniff" {
				t.Error("security headers are missing")
			}
		})
	}
}

func TestFrontLetsThrough(t *testing.T) {
	f := fakeFront(Limits{}, time.Now, nil)
	for _, test := range []ask{
		{path: "/v1/queue"},
		{path: "/v1/queue", host: "nomadlike.example.org:4646"},
		{path: "/v1/queue", host: "localhost:4646"},
		{path: "/v1/queue", host: "[::1]:4646"},
		{path: "/v1/queue", header: http.Header{"Origin": {"https://127.0.0.1"}, "Sec-Fetch-Site": {"same-origin"}}},
		{path: "/v1/agent/health", header: http.Header{"Authorization": nil}},
		{path: "/", header: http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}}},
		{path: "/v1/jobs", method: "POST", body: `{"job":{"name":"x","project":"default"}}`},
	} {
		if answer := test.of(f); answer.Code != 200 {
			t.Errorf("%+v: %d %s", test, answer.Code, answer.Body)
		}
	}
}

func TestErrorsAreToldInTheCallersLanguage(t *testing.T) {
	f := fakeFront(Limits{}, time.Now, nil)
	for header, want := range map[string]messages.Language{
		"": messages.English, "zh-CN,zh;q=0.9,en;q=0.8": messages.Chinese, "fr, zh-TW": messages.Chinese, "en-GB, zh": messages.English, "de": messages.English,
	} {
		answer := ask{path: "/v1/nothing", header: http.Header{"Accept-Language": {header}}}.of(f)
		failure := failureOf(t, answer)
		if text := messages.Textf(want, "agent.route_unknown", "path", "/v1/nothing"); failure.Message != text {
			t.Errorf("%q: got %q, want %q", header, failure.Message, text)
		}
	}
}

// A defect of ours is logged with a reference; its text stays inside.
func TestDefectsStayInside(t *testing.T) {
	f := fakeFront(Limits{}, time.Now, func(handlers map[string]Handler) {
		handlers["queue.read"] = func(*Request) error { return fmt.Errorf("secret detail") }
		handlers["nodes.list"] = func(*Request) error { panic("secret panic") }
	})
	for _, path := range []string{"/v1/queue", "/v1/nodes"} {
		answer := ask{path: path}.of(f)
		if failure := failureOf(t, answer); answer.Code != 500 || failure.ID != "agent.internal" || strings.Contains(answer.Body.String(), "secret") {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}

func TestRateLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fakeFront(Limits{RequestsPerSec: 10, SubmitsPerSec: 1, Streams: 2, TokenFailures: 3}, time.Now, nil)
		send := func(n int, a ask) (ok int) {
			for range n {
				switch answer := a.of(f); answer.Code {
				case 200:
					ok++
				case 429:
					if answer.Header().Get("Retry-After") == "" {
						t.Error("Retry-After is missing")
					}
				default:
					t.Fatalf("%d %s", answer.Code, answer.Body)
				}
			}
			return ok
		}
		if got := send(50, ask{path: "/v1/tokens"}); got != 20 {
			t.Errorf("%d requests at once", got)
		}
		time.Sleep(time.Second)
		if got := send(50, ask{path: "/v1/tokens"}); got != 10 {
			t.Errorf("%d requests after a second", got)
		}
		time.Sleep(time.Minute)
		if got := send(10, ask{path: "/v1/jobs", method: "POST", body: `{"hcl":"x"}`}); got != 2 {
			t.Errorf("%d submissions", got)
		}
		// Wrong tokens are slowed down; the good one of the same address is
		// not locked out by them.
		wrong := ask{path: "/v1/tokens", header: http.Header{"Authorization": {"Bearer bad"}}}
		refused := map[int]int{}
		for range 10 {
			refused[wrong.of(f).Code]++
		}
		if refused[401] != 2 || refused[429] != 8 {
			t.Errorf("wrong tokens: %v", refused)
		}
		time.Sleep(time.Second)
		if got := send(1, ask{path: "/v1/tokens"}); got != 1 {
			t.Error("the good token was locked out")
		}
		wrong.remote = "192.0.2.99:1"
		if code := wrong.of(f).Code; code != 401 {
			t.Errorf("another address: %d", code)
		}
	})
}

func TestStreamsAreLimited(t *testing.T) {
	l := newLimiter(Limits{RequestsPerSec: 100, SubmitsPerSec: 100, Streams: 2, TokenFailures: 1}, time.Now)
	route := api.Route{Name: "events.stream", Stream: api.StreamNDJSON}
	var release []func()
	for range 2 {
		done, err := l.enter("t1", route)
		if err != nil {
			t.Fatal(err)
		}
		release = append(release, done)
	}
	if _, err := l.enter("t1", route); structs.CodeOf(err) != structs.CodeUnavailable {
		t.Errorf("third stream: %v", err)
	}
	if _, err := l.enter("t2", route); err != nil {
		t.Errorf("of another token: %v", err)
	}
	release[0]()
	if _, err := l.enter("t1", route); err != nil {
		t.Errorf("after one ended: %v", err)
	}
}
