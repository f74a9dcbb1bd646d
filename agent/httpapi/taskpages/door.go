package taskpages

import (
	"context"
	"html"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

const (
	// EntryPath is where a page begins, with an entry as its only parameter.
	EntryPath = "/.nomadlike/enter"
	// EntryParam is the parameter.
	EntryParam = "entry"

	ownPaths   = "/.nomadlike/"
	passCookie = ownCookies + "-task"
	ownCookies = "__Host-nomadlike" // begins the name of every cookie of ours

	startLook = 2 * time.Second // between looks for a program that does not listen yet
)

// Config is what a Door needs.
type Config struct {
	Domain   string // "tasks.example.com": pages are one label below
	Log      *slog.Logger
	SignIns  *front.Sessions
	Alone    func(front.Handler) http.Handler // lets in who may enter the allocation that a path names
	ExecPath func(alloc string) string        // the path
	// Use makes a client of the task of a request, and calls use with it. What use is
	// given ends with the caller's right to be there.
	Use func(r *front.Request, use func(context.Context, *ssh.Client)) error
}

// Door answers for the origins of tasks' pages. It implements front.Beside; its methods
// may be called from any goroutine.
type Door struct {
	config Config
	mu     sync.Mutex
	links  map[linkKey]*link
}

// New makes a door.
func New(config Config) *Door { return &Door{config: config, links: map[linkKey]*link{}} }

// Answers implements front.Beside.
func (d *Door) Answers(host string) bool {
	_, ok := under(d.config.Domain, host)
	return ok
}

// ServeHTTP answers a request for the page of a task.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	where, ok := placeOf(d.config.Domain, r.Host)
	if !ok {
		fail(w, r, structs.NewError(structs.CodeNotFound, "taskpage.host", "host", r.Host))
		return
	}
	if err := admit(r); err != nil {
		fail(w, r, err)
		return
	}
	if strings.HasPrefix(r.URL.Path, ownPaths) {
		d.enter(w, r, where)
		return
	}
	cookie, err := r.Cookie(passCookie)
	if err != nil {
		fail(w, r, structs.NewError(structs.CodeUnauthorized, "taskpage.no_pass"))
		return
	}
	holder, ok := d.config.SignIns.Holder(cookie.Value, where.host, r.RemoteAddr)
	if !ok {
		fail(w, r, structs.NewError(structs.CodeUnauthorized, "taskpage.no_pass"))
		return
	}
	l := d.link(linkKey{holder.Key, where.alloc}, holder, r)
	defer l.release()
	select {
	case <-l.ready:
	case <-r.Context().Done():
		return
	}
	if l.refused != nil {
		if l.refused.ID == "agent.alloc_ended" { // nothing of it is of use any more, its workers least
			w.Header().Set("Clear-Site-Data", `"cache", "cookies", "storage"`)
		}
		fail(w, r, l.refused)
		return
	}
	l.proxy(where.port).ServeHTTP(w, r)
}

// admit refuses what a page of another origin could make a browser send with the pass,
// what two programs in a row may read differently, and what is no request for a page.
func admit(r *http.Request) *structs.Error {
	upgrade := r.Header.Get("Upgrade") != ""
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return structs.NewError(structs.CodeInvalid, "agent.method", "path", r.URL.Path, "method", r.Method)
	case len(r.TransferEncoding) > 0: // see front.Front
		return structs.NewError(structs.CodeInvalid, "agent.chunked")
	case origin != "" && origin != "https://"+r.Host, upgrade && origin == "":
		return structs.NewError(structs.CodeForbidden, "agent.foreign_origin", "origin", origin)
	case upgrade && !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		return structs.NewError(structs.CodeInvalid, "taskpage.upgrade", "protocol", r.Header.Get("Upgrade"))
	case site == "" || site == "same-origin" || site == "none":
		return nil
	case r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document":
		return nil // somebody follows a link
	}
	return structs.NewError(structs.CodeForbidden, "agent.foreign_origin", "origin", site)
}

// enter exchanges an entry for a pass.
func (d *Door) enter(w http.ResponseWriter, r *http.Request, where place) {
	if r.URL.Path != EntryPath || r.Method != http.MethodGet {
		fail(w, r, structs.NewError(structs.CodeNotFound, "agent.route_unknown", "path", r.URL.Path))
		return
	}
	pass, life, ok := d.config.SignIns.Enter(r.URL.Query().Get(EntryParam), where.host)
	if !ok {
		fail(w, r, structs.NewError(structs.CodeUnauthorized, "taskpage.entry"))
		return
	}
	// Lax, since the browser comes from the page of the job.
	http.SetCookie(w, &http.Cookie{Name: passCookie, Value: pass, Path: "/", MaxAge: int(life / time.Second), Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// fail answers with a page of ours, or with a line for what is no page.
func fail(w http.ResponseWriter, r *http.Request, err *structs.Error) {
	language := front.AcceptedLanguage(r.Header.Get("Accept-Language"))
	told := err
	if told.Message == "" {
		told = front.Render(err, language)
	}
	status := told.Code.HTTPStatus()
	again := told.ID == "taskpage.nobody"
	if told.ID == "taskpage.nobody" || told.ID == "taskpage.broken" {
		status = http.StatusBadGateway
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(strings.TrimSpace(told.Message+"\n"+told.Hint) + "\n")) // nobody hears of it
		return
	}
	if again && r.Method == http.MethodGet {
		h.Set("Refresh", strconv.Itoa(int(startLook/time.Second)))
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(page(language, told)))
}

func page(language messages.Language, told *structs.Error) string {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"" + string(language) + "\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">")
	b.WriteString("<title>" + html.EscapeString(messages.Text(language, "taskpage.title", nil)) + "</title>")
	b.WriteString("<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:15vh auto;padding:0 1rem}p+p{opacity:.75}</style>")
	b.WriteString("<p>" + html.EscapeString(told.Message) + "</p>")
	if told.Hint != "" {
		b.WriteString("<p>" + html.EscapeString(told.Hint) + "</p>")
	}
	b.WriteString("</html>\n")
	return b.String()
}
