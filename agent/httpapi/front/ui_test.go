package front

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"nomadlike/nomadlike/api"
)

func packed(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // into memory
	_ = w.Close()
	return b.Bytes()
}

// pageFront serves small pages in the place of the built ones.
func pageFront() *Front {
	pages := Pages(fstest.MapFS{
		"index.html":          {Data: []byte(`<meta name="csp-nonce" content="__CSP_NONCE__"><title>page</title>`)},
		"favicon.svg":         {Data: []byte("<svg/>")},
		"assets/app-1.js.gz":  {Data: packed("app")},
		"assets/app-1.css.gz": {Data: packed("css")},
	})
	f := fakeFront(Limits{}, time.Now, nil)
	f.mux = http.NewServeMux()
	f.mux.Handle("/", pages)
	handlers := map[string]Handler{}
	for _, route := range api.Routes() {
		handlers[route.Name] = func(r *Request) error { return r.Reply(nil) }
	}
	f.Route(tableOf(handlers))
	return f
}

func TestPages(t *testing.T) {
	f := pageFront()
	html := http.Header{"Accept": {"text/html,*/*"}, "Authorization": nil}
	for _, test := range []struct {
		ask    ask
		status int
		kind   string
		body   string
	}{
		{ask{path: "/", header: html}, 200, "text/html", "<title>page"},
		{ask{path: "/jobs/digits", header: html}, 200, "text/html", "<title>page"},
		{ask{path: "/nodes/node-1.example.org", header: html}, 200, "text/html", "<title>page"},
		{ask{path: "/index.html", header: html}, 200, "text/html", "<title>page"},
		{ask{path: "//evil.example.com/", header: html}, 200, "text/html", "<title>page"},
		{ask{path: "/favicon.svg", header: html}, 200, "image/svg+xml", "<svg/>"},
		{ask{path: "/assets/app-1.js", header: http.Header{"Authorization": nil}}, 200, "text/javascript", "app"},
		{ask{path: "/assets/none.js", header: html}, 404, "text/plain", ""},
		{ask{path: "/assets", header: http.Header{"Authorization": nil}}, 404, "text/plain", ""},
		{ask{path: "/robots.txt", header: http.Header{"Authorization": nil}}, 404, "text/plain", ""},
		{ask{path: "/jobs", method: "POST", header: html}, 405, "text/plain", ""},
		{ask{path: "/v1/jobs", header: html}, 401, "application/json", ""},
	} {
		answer := test.ask.of(f)
		if answer.Code >= 300 && answer.Code < 400 && !strings.HasPrefix(answer.Header().Get("Location"), "/evil") {
			t.Errorf("%s leads to %s", test.ask.path, answer.Header().Get("Location"))
			continue
		}
		if test.ask.path == "//evil.example.com/" && answer.Code < 400 {
			continue // the router cleans the path: it stays on this host
		}
		if answer.Code != test.status || !strings.HasPrefix(answer.Header().Get("Content-Type"), test.kind) || !strings.Contains(answer.Body.String(), test.body) {
			t.Errorf("%+v: %d %s %q", test.ask, answer.Code, answer.Header().Get("Content-Type"), answer.Body)
		}
		if answer.Header().Get("X-Content-Type-Options") != "nosniff" || answer.Header().Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: security headers are missing", test.ask.path)
		}
	}
}

func TestPagesArePacked(t *testing.T) {
	answer := ask{path: "/assets/app-1.js", header: http.Header{"Accept-Encoding": {"gzip, br"}}}.of(pageFront())
	if answer.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(answer.Header().Get("Cache-Control"), "immutable") {
		t.Fatalf("headers %v", answer.Header())
	}
	reader, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(reader); err != nil || string(text) != "app" {
		t.Errorf("%q %v", text, err)
	}
}

// The policy has no unsafe word, forbids frames, and its nonce is that of the
// page and of no other answer.
func TestPolicyOfThePage(t *testing.T) {
	f := pageFront()
	seen := map[string]bool{}
	for range 3 {
		answer := ask{path: "/", header: http.Header{"Accept": {"text/html"}}}.of(f)
		policy := answer.Header().Get("Content-Security-Policy")
		found := regexp.MustCompile(`'nonce-([^']+)'`).FindStringSubmatch(policy)
		if found == nil || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") ||
			!strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "script-src 'self';") || !strings.Contains(policy, "base-uri 'none'") {
			t.Fatalf("policy %s", policy)
		}
		if !strings.Contains(answer.Body.String(), `content="`+found[1]+`"`) || strings.Contains(answer.Body.String(), pageNonce) || seen[found[1]] {
			t.Errorf("nonce %s in %s", found[1], answer.Body)
		}
		seen[found[1]] = true
		if answer.Header().Get("Cache-Control") != "no-store" {
			t.Error("a page with a nonce must not be kept")
		}
	}
}

// Without a build there is a page all the same.
func TestWithoutPages(t *testing.T) {
	if Pages(fstest.MapFS{}) != nil {
		t.Error("pages without an index")
	}
	answer := httptest.NewRecorder()
	NoPages().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "https://127.0.0.1/", nil))
	if answer.Code != 200 || !strings.Contains(answer.Body.String(), "make ui") || !strings.Contains(answer.Body.String(), "不含网页") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}
