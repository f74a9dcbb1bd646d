package taskpages

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/taskport"
)

// Bounds of what one link has open in its task, where each connection is a process.
const (
	connsMax     = 40 // of one port
	connsIdleMax = 4
	connsIdle    = 15 * time.Second
)

// proxy passes requests to a port of the link's task.
func (l *link) proxy(port int) *httputil.ReverseProxy {
	l.door.mu.Lock()
	defer l.door.mu.Unlock()
	if made := l.proxies[port]; made != nil {
		return made
	}
	made := &httputil.ReverseProxy{
		Rewrite: rewrite,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return taskport.Dial(ctx, l.client, port)
			},
			MaxConnsPerHost: connsMax, MaxIdleConnsPerHost: connsIdleMax, IdleConnTimeout: connsIdle, DisableCompression: true,
		},
		FlushInterval:  -1, // what a task streams is seen as it comes
		ModifyResponse: confine,
		ErrorLog:       slog.NewLogLogger(l.door.config.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			switch {
			case errors.Is(err, context.Canceled):
			case taskport.Nobody(err):
				fail(w, r, structs.NewError(structs.CodeUnavailable, "taskpage.nobody", "port", strconv.Itoa(port)))
			default:
				fail(w, r, structs.NewError(structs.CodeUnavailable, "taskpage.broken").Because(err))
			}
		},
	}
	l.proxies[port] = made
	return made
}

// rewrite makes of a browser's request one for the task: without what is ours, and with
// the host that the browser sees, which programs compare with the origin of a websocket.
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = "http", "task"
	r.Out.Host = r.In.Host
	r.Out.Header.Set("X-Forwarded-Proto", "https")
	r.Out.Header.Set("X-Forwarded-Host", r.In.Host)
	cookies := r.Out.Header["Cookie"]
	r.Out.Header.Del("Cookie")
	if kept := foreignCookies(cookies); kept != "" {
		r.Out.Header.Set("Cookie", kept)
	}
}

// foreignCookies leaves out the cookies that are ours. The others stay as they are.
func foreignCookies(headers []string) string {
	var kept []string
	for _, header := range headers {
		for each := range strings.SplitSeq(header, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(each), "=")
			if name != "" && !own(name) {
				kept = append(kept, strings.TrimSpace(each))
			}
		}
	}
	return strings.Join(kept, "; ")
}

func own(cookie string) bool {
	return len(cookie) >= len(ownCookies) && strings.EqualFold(cookie[:len(ownCookies)], ownCookies)
}

// confine takes out of a task's answer what reaches beyond its origin: cookies for the
// whole domain or in our name, and other places that stand for this one; and lets
// nobody else frame it.
func confine(r *http.Response) error {
	cookies := r.Header["Set-Cookie"]
	r.Header.Del("Set-Cookie")
	for _, cookie := range cookies {
		if kept, ok := confined(cookie); ok {
			r.Header.Add("Set-Cookie", kept)
		}
	}
	// A program that knows nothing of TLS sends the browser to where nobody answers.
	if to, found := strings.CutPrefix(r.Header.Get("Location"), "http://"+r.Request.Host+"/"); found {
		r.Header.Set("Location", "/"+to)
	}
	r.Header.Del("Alt-Svc")
	r.Header.Del("Strict-Transport-Security")
	r.Header.Add("Content-Security-Policy", "frame-ancestors 'self'")
	if r.Header.Get("Cross-Origin-Resource-Policy") == "" {
		r.Header.Set("Cross-Origin-Resource-Policy", "same-origin")
	}
	return nil
}

// confined is a cookie for this host alone; none where it takes a name of ours.
func confined(cookie string) (string, bool) {
	parts := strings.Split(cookie, ";")
	name, _, _ := strings.Cut(parts[0], "=")
	if own(strings.TrimSpace(name)) {
		return "", false
	}
	kept := parts[:1]
	for _, part := range parts[1:] {
		attribute, _, _ := strings.Cut(part, "=")
		if !strings.EqualFold(strings.TrimSpace(attribute), "domain") {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ";"), true
}
