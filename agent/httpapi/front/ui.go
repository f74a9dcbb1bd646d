package front

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

const (
	pageIndex  = "index.html"
	pageAssets = "/assets/" // their names carry a hash of their content
	// pageNonce stands in the index where the nonce of one answer belongs: the
	// page hands it to the style sheets that it makes while it runs.
	pageNonce = "__CSP_NONCE__"
	nonceSize = 16 // bytes of randomness
)

// Pages serves the web pages in files: index.html, and what is beside it,
// each file as it is or packed as name.gz. Every path without a file shows
// the index, which draws the page that the path names. Without an index it
// returns nil, and Options.UI says how to build the pages.
func Pages(files fs.FS) http.Handler {
	index, err := fs.ReadFile(files, pageIndex)
	if err != nil {
		return nil
	}
	return &pages{files: files, index: index}
}

type pages struct {
	files fs.FS
	index []byte
}

// ServeHTTP answers for everything that is no route of the API. Nothing here
// is secret: data comes through the API alone.
func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name != pageIndex && fs.ValidPath(name) && p.asset(w, r, name) {
		return
	}
	if strings.HasPrefix(r.URL.Path, pageAssets) || !strings.Contains(r.Header.Get("Accept"), "text/html") && r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	p.page(w)
}

// page answers with the index under a policy that lets only its own scripts
// run, and only styles that know the nonce of this answer.
func (p *pages) page(w http.ResponseWriter) {
	var random [nonceSize]byte
	rand.Read(random[:]) // never fails
	nonce := base64.RawURLEncoding.EncodeToString(random[:])
	w.Header().Set("Content-Security-Policy", fmt.Sprintf(
		"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", nonce))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(bytes.ReplaceAll(p.index, []byte(pageNonce), []byte(nonce))) // the caller went away: nothing to do about it
}

// asset answers with a file, and reports whether there is one.
func (p *pages) asset(w http.ResponseWriter, r *http.Request, name string) bool {
	file, packed, err := p.open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" {
		kind = "application/octet-stream"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.HasPrefix("/"+name, pageAssets) {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	var content io.Reader = file
	switch {
	case packed && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
		w.Header().Set("Content-Encoding", "gzip")
	case packed:
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			return true
		}
		content = unpacked
	}
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, content) // the caller went away: nothing to do about it
	}
	return true
}

// open finds a file, packed or not.
func (p *pages) open(name string) (file fs.File, packed bool, err error) {
	if file, err = p.files.Open(name + ".gz"); err == nil {
		return file, true, nil
	}
	if file, err = p.files.Open(name); err != nil {
		return nil, false, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close() // it was only looked at
		return nil, false, errors.Join(err, fs.ErrNotExist)
	}
	return file, false, nil
}

// NoPages says how to get the web pages, in a build without them.
func NoPages() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, noUI)
	})
}

const noUI = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>nomadlike</title>
<h1>nomadlike</h1>
<p>The agent runs. This build carries no web pages: <code>make ui</code> builds them, <code>make</code> then puts them into the binary.</p>
<p lang="zh">agent 正在运行。此版本不含网页：先执行 <code>make ui</code>，再执行 <code>make</code> 即可包含。</p>
<p>The API is under <a href="/v1/agent/health">/v1</a>, its description at <code>/v1/openapi.json</code>.</p>
</html>
`
