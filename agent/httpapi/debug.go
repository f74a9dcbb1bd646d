package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// debugHandlers answers with what tells how a server is from inside.
type debugHandlers struct {
	*core
	self      func() api.AgentSelf
	members   Membership
	metrics   *metrics
	lines     func() []byte                  // the newest of the agent's log; nil: it keeps none
	to        func(addr string) http.Handler // passes a request on to another server
	profiling chan struct{}                  // the one profile of the processor at a time
}

// part answers operator.debug: one part, of this server or, by its id, of another of
// Raft's configuration, which judges the caller itself.
func (h *debugHandlers) part(r *front.Request) error {
	q := front.Query{R: r}
	part, server, span := q.Text("part"), q.Text("server"), q.Span("span", api.DebugSpanDefault, api.DebugSpanMax)
	if !slices.Contains(api.DebugParts(), part) {
		q.Refuse("part", part)
	}
	if q.Err != nil {
		return q.Err
	}
	if server != "" && server != h.self().ID {
		peers := h.members.Peers()
		at := slices.IndexFunc(peers, func(p api.RaftPeer) bool { return p.ID == server })
		if at < 0 {
			return auth.NotFound("server", server)
		}
		h.to(peers[at].Addr).ServeHTTP(r.Writer, r.Request)
		return nil
	}
	var out bytes.Buffer
	if err := h.write(r.Context(), &out, part, span); err != nil {
		return err
	}
	r.Writer.Header().Set("Content-Type", "application/octet-stream")
	_, _ = r.Writer.Write(out.Bytes()) // the caller went away: nothing to do about it
	return nil
}

// write makes one part.
func (h *debugHandlers) write(ctx context.Context, to io.Writer, part string, span time.Duration) error {
	switch part {
	case api.DebugAgent:
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return encoder.Encode(h.self())
	case api.DebugMetrics:
		// Compression is the client's wish, and there is no client.
		answer := plainAnswer{to: to, header: http.Header{}}
		promhttp.HandlerFor(h.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(answer, (&http.Request{Header: http.Header{}}).WithContext(ctx))
		return nil
	case api.DebugGoroutines:
		return pprof.Lookup("goroutine").WriteTo(to, 1)
	case api.DebugHeap:
		return pprof.Lookup("heap").WriteTo(to, 0)
	case api.DebugCPU:
		return h.processor(ctx, to, span)
	}
	if h.lines == nil {
		return structs.NewError(structs.CodeNotAvailable, "agent.debug_no_log")
	}
	_, err := to.Write(h.lines())
	return err
}

// processor writes what the processor does for a while.
func (h *debugHandlers) processor(ctx context.Context, to io.Writer, span time.Duration) error {
	select {
	case h.profiling <- struct{}{}:
	default:
		return structs.NewError(structs.CodeConflict, "agent.debug_busy")
	}
	defer func() { <-h.profiling }()
	if err := pprof.StartCPUProfile(to); err != nil {
		return structs.NewError(structs.CodeConflict, "agent.debug_busy").Because(err)
	}
	over := time.NewTimer(span)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	case <-h.stopping:
	}
	pprof.StopCPUProfile()
	return ctx.Err()
}

// plainAnswer takes an answer's body alone.
type plainAnswer struct {
	to     io.Writer
	header http.Header
}

func (a plainAnswer) Header() http.Header { return a.header }
func (a plainAnswer) WriteHeader(int)     {}

// Write implements io.Writer.
func (a plainAnswer) Write(p []byte) (int, error) { return a.to.Write(p) }

// LogLines keeps the newest lines of a log, for a debug archive. Its methods may be
// called from any goroutine.
type LogLines struct {
	max int
	mu  chan []byte // what is kept, held by its one reader or writer
}

// NewLogLines keeps at most so many bytes.
func NewLogLines(maxBytes int) *LogLines {
	l := &LogLines{max: maxBytes, mu: make(chan []byte, 1)}
	l.mu <- nil
	return l
}

// Write implements io.Writer; it never fails.
func (l *LogLines) Write(p []byte) (int, error) {
	kept := append(<-l.mu, p...)
	if len(kept) > 2*l.max { // seldom, so that a line costs what it is long
		kept = append([]byte(nil), kept[len(kept)-l.max:]...)
	}
	l.mu <- kept
	return len(p), nil
}

// Lines are the newest lines, whole ones.
func (l *LogLines) Lines() []byte {
	kept := <-l.mu
	text := string(kept)
	l.mu <- kept
	if len(text) > l.max {
		text = text[len(text)-l.max:]
		_, text, _ = strings.Cut(text, "\n")
	}
	return []byte(text)
}
