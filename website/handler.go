package website

import (
	"compress/gzip"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// Root is the path below which an agent serves the guides.
const Root = "/docs/"

// languages of the guides, as the first part of a path names them.
var languages = []string{"en", "zh"}

// Handler serves the guides in files below Root, and everything else by rest.
// Every name without an ending is a page. A path without a language leads to that
// of the reader.
func Handler(files fs.FS, rest http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", rest)
	mux.Handle("/docs", http.RedirectHandler(Root, http.StatusPermanentRedirect))
	mux.Handle(Root, http.StripPrefix(strings.TrimSuffix(Root, "/"), &handler{files: files}))
	return mux
}

type handler struct{ files fs.FS }

// ServeHTTP answers a path below Root. The policy of the agent's front door, which
// lets nothing but its own scripts and styles run, holds for these pages as it is.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" {
		w.Header().Set("Vary", "Accept-Language")
		http.Redirect(w, r, Root+preferred(r.Header.Get("Accept-Language"))+"/", http.StatusFound)
		return
	}
	for _, language := range languages {
		if name == language {
			name += "/index"
		}
	}
	if path.Ext(name) == "" {
		name += ".html"
	}
	if !fs.ValidPath(name) || !h.serve(w, r, name) {
		h.missing(w)
	}
}

// preferred chooses the language of a reader: the first one of the header that
// there is, English without one.
func preferred(header string) string {
	for wanted := range strings.SplitSeq(header, ",") {
		wanted = strings.ToLower(strings.TrimSpace(wanted))
		for _, language := range languages {
			if strings.HasPrefix(wanted, language) {
				return language
			}
		}
	}
	return languages[0]
}

// missing answers for what is not there, in both languages, for the path may not say
// which. A build without guides says how to get them.
func (h *handler) missing(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	if _, err := fs.Stat(h.files, "en/index.html.gz"); err != nil {
		_, _ = io.WriteString(w, "This nomadlike was built without its guides: run make docs, then make build.\n"+
			"本程序编译时没有包含指南：请先执行 make docs，再执行 make build。\n") // the reader may have left
		return
	}
	_, _ = io.WriteString(w, "There is no such page. The guides begin at "+Root+"\n没有这个页面，指南从 "+Root+" 开始。\n")
}

// serve answers with a file that is kept packed, and reports whether there is one.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, name string) bool {
	file, err := h.files.Open(name + ".gz")
	if err != nil {
		return false
	}
	defer file.Close()
	header := w.Header()
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" || path.Ext(name) == ".md" {
		kind = "text/plain; charset=utf-8"
	}
	header.Set("Content-Type", kind)
	header.Set("Vary", "Accept-Encoding")
	header.Set("Cache-Control", "no-cache") // a new release has new pages under the same names
	var content io.Reader = file
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
	} else if content, err = gzip.NewReader(file); err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return true
	}
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, content) // the reader may have left
	}
	return true
}
