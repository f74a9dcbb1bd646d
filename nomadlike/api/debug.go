package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Parts of what a server tells of its inside, named as files.
const (
	DebugAgent      = "agent.json" // AgentSelf: the configuration without secrets
	DebugMetrics    = "metrics.txt"
	DebugGoroutines = "goroutines.txt"
	DebugHeap       = "heap.pprof"
	DebugCPU        = "cpu.pprof"
	DebugLog        = "agent.log"
)

// Bounds of a look at the processor.
const (
	DebugSpanDefault = 5 * time.Second
	DebugSpanMax     = time.Minute
)

// DebugLogBytes is how much of its log an agent keeps in memory for DebugLog.
const DebugLogBytes = 512 << 10

// DebugParts lists them.
func DebugParts() []string {
	return []string{DebugAgent, DebugMetrics, DebugGoroutines, DebugHeap, DebugCPU, DebugLog}
}

// Debug writes one part of what a server tells of its inside to w; server is its id, ""
// the one that answers. span is for DebugCPU.
func (c *Client) Debug(ctx context.Context, w io.Writer, server, part string, span time.Duration) error {
	values := url.Values{"part": {part}}
	if server != "" {
		values.Set("server", server)
	}
	if span > 0 {
		values.Set("span", span.String())
	}
	response, err := c.send(ctx, call{method: http.MethodGet, path: OperatorDebug.path(""), query: values, repeat: true})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("read %s: %w", part, err)
	}
	return nil
}
