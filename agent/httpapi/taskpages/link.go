package taskpages

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"time"

	"golang.org/x/crypto/ssh"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/structs"
)

// linkIdle is how long a link is kept that nobody uses.
const linkIdle = 2 * time.Minute

// linkKey is whose link it is, and to where.
type linkKey struct{ holder, alloc string }

// link is the way of one sign-in into one task, for all its ports.
type link struct {
	door *Door
	key  linkKey
	end  context.CancelFunc

	ready   chan struct{} // closed once one of these is set
	client  *ssh.Client
	refused *structs.Error // why there is no client, in the words of the caller's language

	// The rest is guarded by the door's mu.
	users   int
	idle    *time.Timer
	proxies map[int]*httputil.ReverseProxy
}

// link returns a link to where a request wants to go, made anew where there is none.
// Release it when the request is answered.
func (d *Door) link(key linkKey, holder *front.Holder, r *http.Request) *link {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.links[key]
	if l == nil {
		ctx, end := context.WithCancel(context.Background())
		l = &link{door: d, key: key, end: end, ready: make(chan struct{}), proxies: map[int]*httputil.ReverseProxy{}}
		d.links[key] = l
		asked := r.Clone(ctx) // its address and its language outlive it
		go l.run(ctx, holder, asked)
	}
	l.users++
	if l.idle != nil {
		l.idle.Stop()
	}
	return l
}

func (l *link) release() {
	l.door.mu.Lock()
	defer l.door.mu.Unlock()
	if l.users--; l.users == 0 {
		l.idle = time.AfterFunc(linkIdle, l.leave)
	}
}

// leave ends a link that nobody uses.
func (l *link) leave() {
	l.door.mu.Lock()
	defer l.door.mu.Unlock()
	if l.users == 0 {
		l.forgetLocked()
		l.end()
	}
}

// forgetLocked has the next request make a link of its own.
func (l *link) forgetLocked() {
	if l.door.links[l.key] == l {
		delete(l.door.links, l.key)
	}
}

// run holds the link until its right ends, the task does, or nobody uses it.
func (l *link) run(ctx context.Context, holder *front.Holder, asked *http.Request) {
	defer l.end()
	answer := &answer{header: http.Header{}}
	request, done, err := holder.Request(ctx, asked, http.MethodGet, l.door.config.ExecPath(l.key.alloc))
	if err == nil {
		defer done()
		l.door.config.Alone(func(r *front.Request) error {
			return l.door.config.Use(r, func(ctx context.Context, client *ssh.Client) {
				l.client = client
				close(l.ready)
				defer context.AfterFunc(ctx, func() { client.Close() })()
				_ = client.Wait() // why it ended is of no use to anybody
			})
		}).ServeHTTP(answer, request)
	}
	l.door.mu.Lock()
	defer l.door.mu.Unlock()
	l.forgetLocked()
	if l.client == nil {
		l.refused = answer.failure()
		close(l.ready)
		return
	}
	for _, proxy := range l.proxies {
		proxy.Transport.(*http.Transport).CloseIdleConnections()
	}
}

// answer takes what is said to a request that has no browser behind it.
type answer struct {
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// failure reads an answer as the error that it is.
func (a *answer) failure() *structs.Error {
	told := new(structs.Error)
	if json.Unmarshal(a.body.Bytes(), told) != nil || told.Code == "" {
		return structs.NewError(structs.CodeUnavailable, "taskpage.broken")
	}
	return told
}
