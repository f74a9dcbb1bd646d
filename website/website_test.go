package website

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func packed(text string) *fstest.MapFile {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return &fstest.MapFile{Data: b.Bytes()}
}

var guides = fstest.MapFS{
	"en/index.html.gz":         packed("<h1>Guide</h1>"),
	"zh/index.html.gz":         packed("<h1>指南</h1>"),
	"en/reference/cli.html.gz": packed("<h1>Command line</h1>"),
	"en/reference/cli.md.gz":   packed("# Command line"),
	"site.css.gz":              packed("body{}"),
	"en/topics.json.gz":        packed(`[{"name":"index","title":"Guide"}]`),
}

func TestHandler(t *testing.T) {
	rest := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "pages "+r.URL.Path) })
	handler := Handler(guides, rest)
	for _, c := range []struct {
		method, path, language string
		status                 int
		kind, body             string // body: where it leads to, for a redirect
	}{
		{"GET", "/jobs", "", 200, "", "pages /jobs"},
		{"GET", "/docs", "", 308, "", "/docs/"},
		{"GET", "/docs/", "", 302, "", "/docs/en/"},
		{"GET", "/docs/", "fr, zh-CN;q=0.8, en", 302, "", "/docs/zh/"},
		{"GET", "/docs/en/", "", 200, "text/html; charset=utf-8", "<h1>Guide</h1>"},
		{"GET", "/docs/zh", "", 200, "text/html; charset=utf-8", "<h1>指南</h1>"},
		{"GET", "/docs/en/reference/cli", "", 200, "text/html; charset=utf-8", "<h1>Command line</h1>"},
		{"GET", "/docs/en/reference/cli.md", "", 200, "text/plain; charset=utf-8", "# Command line"},
		{"GET", "/docs/site.css", "", 200, "text/css; charset=utf-8", "body{}"},
		{"GET", "/docs/en/nothing", "", 404, "text/plain; charset=utf-8", "There is no such page. The guides begin at /docs/\n没有这个页面，指南从 /docs/ 开始。\n"},
		{"GET", "/docs/%2e%2e/%2e%2e/etc/passwd", "", 404, "", ""},
		{"HEAD", "/docs/en/", "", 200, "text/html; charset=utf-8", ""},
		{"POST", "/docs/en/", "", 405, "", "Method Not Allowed\n"},
	} {
		request := httptest.NewRequest(c.method, c.path, nil)
		request.Header.Set("Accept-Language", c.language)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		body := answer.Body.String()
		if to := answer.Header().Get("Location"); to != "" {
			body = to
		}
		if answer.Code != c.status || c.body != "" && body != c.body || c.kind != "" && answer.Header().Get("Content-Type") != c.kind {
			t.Errorf("%s %s answers %d %s %q", c.method, c.path, answer.Code, answer.Header().Get("Content-Type"), body)
		}
		if strings.Contains(body, "root:") {
			t.Errorf("%s leaves the guides", c.path)
		}
	}
	request := httptest.NewRequest("GET", "/docs/en/", nil)
	request.Header.Set("Accept-Encoding", "gzip")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if unpacked, err := gzip.NewReader(answer.Body); answer.Header().Get("Content-Encoding") != "gzip" || err != nil || unpacked == nil {
		t.Errorf("not packed: %v, %v", answer.Header(), err)
	}
}

func TestUnbuilt(t *testing.T) {
	none := fstest.MapFS{"README": {}}
	answer := httptest.NewRecorder()
	Handler(none, http.NotFoundHandler()).ServeHTTP(answer, httptest.NewRequest("GET", "/docs/en/", nil))
	if answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "run make docs") || !strings.Contains(answer.Body.String(), "请先执行 make docs") {
		t.Errorf("without guides the answer is %d %q", answer.Code, answer.Body)
	}
	if _, err := Topics(none, "en"); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("topics of none: %v", err)
	}
}

func TestTopics(t *testing.T) {
	topics, err := Topics(guides, "en")
	if err != nil || len(topics) != 1 || topics[0] != (Topic{"index", "Guide"}) {
		t.Errorf("topics %v, %v", topics, err)
	}
	if page, err := Page(guides, "en", "reference/cli"); err != nil || string(page) != "# Command line" {
		t.Errorf("page %q, %v", page, err)
	}
	for _, name := range []string{"nothing", "../en/topics", "/etc/passwd", ""} {
		if _, err := Page(guides, "en", name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("page %q gives %v", name, err)
		}
	}
}
