package front

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// Bounds of what requests bring. Bodies are held while their request is
// answered: without these, thousands that never end would take the memory.
const (
	bodyTimeout      = time.Minute      // to send a JSON body
	bodyStall        = 15 * time.Second // in which at least a byte must come
	bodyOpenMax      = 64 << 10         // bytes of a body of somebody without a token
	bodiesMax        = 64 << 20         // bytes of all bodies that are held
	bodiesCallerMax  = 16 << 20         // of one caller's
	bodiesOpenMax    = 1 << 20          // of one address's, without a token
	bodyFirst        = 4 << 10          // bytes that a body takes up at first
	bodyBusyPatience = time.Second      // to come again after
)

// slowBody ends a body of which nothing comes any more.
type slowBody struct {
	io.ReadCloser
	stall time.Duration
	conn  *http.ResponseController
}

// watchBody lets the body of a request end when it stalls, whoever reads it;
// also the server itself, after a handler that did not.
func watchBody(w http.ResponseWriter, r *http.Request, stall time.Duration) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	body := &slowBody{ReadCloser: r.Body, stall: stall, conn: http.NewResponseController(w)}
	_ = body.conn.SetReadDeadline(time.Now().Add(stall)) // only a test's recorder has no deadlines
	r.Body = body
}

// Read waits a bounded time. At the end the deadline goes: the server reads on,
// to see whether the caller is still there.
func (b *slowBody) Read(p []byte) (int, error) {
	_ = b.conn.SetReadDeadline(time.Now().Add(b.stall))
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}

// reserve counts bytes of a body for a caller, and reports whether there was room.
func (l *limiter) reserve(key string, open bool, bytes int64) bool {
	most := int64(bodiesCallerMax)
	if open {
		most = bodiesOpenMax
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.held+bytes > bodiesMax || l.mu.bodies[key]+bytes > most {
		return false
	}
	l.mu.held += bytes
	l.mu.bodies[key] += bytes
	return true
}

// drop releases what reserve has counted.
func (l *limiter) drop(key string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.held -= bytes
	if l.mu.bodies[key] -= bytes; l.mu.bodies[key] <= 0 {
		delete(l.mu.bodies, key)
	}
}

// countedBody is the text of a body, and what it is counted for.
type countedBody struct {
	guard *limiter
	key   string
	open  bool // of somebody without a token
	data  []byte
	bytes int64 // counted
}

func (b *countedBody) release() { b.guard.drop(b.key, b.bytes) }

// grow makes room for more, at most for most bytes together.
func (b *countedBody) grow(most int) error {
	room := min(max(2*cap(b.data), bodyFirst), most)
	if !b.guard.reserve(b.key, b.open, int64(room-cap(b.data))) {
		return TooMany(structs.CodeUnavailable, "agent.bodies_busy", bodyBusyPatience)
	}
	b.bytes += int64(room - cap(b.data))
	data := make([]byte, len(b.data), room)
	copy(data, b.data)
	b.data = data
	return nil
}

// readBody reads the body of a request into memory, within the bounds of its
// caller and of all. The caller releases it, also after an error.
func (f *Front) readBody(r *Request) (*countedBody, error) {
	b := &countedBody{guard: f.guard, key: "peer " + PeerKey(r.RemoteAddr), open: r.Caller.Token == nil}
	most := api.BodySizeMax
	if b.open {
		most = bodyOpenMax
	} else {
		b.key = r.Caller.Token.ID
	}
	large := structs.NewError(structs.CodeTooLarge, "agent.body_too_large", "max", most)
	if r.ContentLength > int64(most) {
		return b, large
	}
	end := time.Now().Add(f.bodyPatience)
	for {
		if len(b.data) == cap(b.data) {
			if len(b.data) > most {
				return b, large
			}
			if err := b.grow(most + 1); err != nil {
				return b, err
			}
		}
		n, err := r.Body.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		switch {
		case len(b.data) > most:
			return b, large
		case errors.Is(err, io.EOF):
			return b, nil
		case errors.Is(err, os.ErrDeadlineExceeded), err == nil && time.Now().After(end):
			return b, &StatusError{http.StatusRequestTimeout, structs.NewError(structs.CodeTimeout, "agent.body_slow", "seconds", int(f.bodyPatience.Seconds()))}
		case err != nil:
			return b, malformed(err)
		}
	}
}
