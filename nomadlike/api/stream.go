package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// eventLineMax bounds one line of the event stream.
const eventLineMax = 1 << 20 // bytes

// EventFilter narrows the event stream; empty fields match all.
type EventFilter struct {
	After   structs.Cursor // begin after this place, told by EventStream.Cursor
	Index   uint64         // without After: begin with the events of this index; 0: only what is new
	Topics  []string       // job | attempt | alloc | node | token | cluster | data
	JobID   string
	Project string
}

// EventStream is an open stream of events. One goroutine reads it.
type EventStream struct {
	body  io.ReadCloser
	lines *bufio.Scanner
	after structs.Cursor
}

// Events opens the stream of what happens, filtered to what the caller may
// see. The caller closes it, or cancels ctx.
func (c *Client) Events(ctx context.Context, filter EventFilter) (*EventStream, error) {
	values := url.Values{}
	switch {
	case !filter.After.IsZero():
		values.Set("cursor", filter.After.String())
		// An agent that knows no cursors begins after an index: with this one it
		// repeats some events, which Next leaves out, and skips none.
		values.Set("index", strconv.FormatUint(filter.After.Index-1, 10))
	case filter.Index > 0:
		values.Set("index", strconv.FormatUint(filter.Index, 10))
	}
	if len(filter.Topics) > 0 {
		values.Set("topic", strings.Join(filter.Topics, ","))
	}
	if filter.JobID != "" {
		values.Set("job", filter.JobID)
	}
	if filter.Project != "" {
		values.Set("project", filter.Project)
	}
	response, err := c.send(ctx, call{method: http.MethodGet, path: EventsStream.path(""), query: values, repeat: true})
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, eventLineMax)
	return &EventStream{body: response.Body, lines: lines, after: filter.After}, nil
}

// Next waits for the next event. It returns io.EOF when the agent ended the
// stream in order, for instance because it stops: open a new one after
// Cursor() then.
func (s *EventStream) Next() (*structs.Event, error) {
	for s.lines.Scan() {
		var line EventLine
		if err := json.Unmarshal(s.lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("read event: %w", err)
		}
		if line.Error != nil {
			return nil, line.Error
		}
		if line.Event == nil {
			s.pass(line.place())
		} else if s.pass(line.Event.Cursor()) {
			return line.Event, nil
		}
	}
	if err := s.lines.Err(); err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return nil, io.EOF
}

// pass moves on to a place, and reports false when that was passed before.
func (s *EventStream) pass(place structs.Cursor) bool {
	if place.Compare(s.after) <= 0 {
		return false
	}
	s.after = place
	return true
}

// place is up to where a line without an event says that all is known. Agents
// that tell no cursor mean everything up to the index.
func (l *EventLine) place() structs.Cursor {
	if place, ok := structs.ParseCursor(l.Cursor); ok {
		return place
	}
	return structs.CursorAfter(l.Index)
}

// Cursor is up to where the events are known: give it to Events to go on. It
// holds with every agent of the cluster.
func (s *EventStream) Cursor() structs.Cursor { return s.after }

// Close ends the stream.
func (s *EventStream) Close() error { return s.body.Close() }

// LogOptions says which part of a log to read.
type LogOptions struct {
	Stream string // stdout (default) | stderr | hooks
	Offset int64  // first byte; negative counts from the end
	Tail   int    // only so many last lines; 0 goes by Offset
	Follow bool   // stay for what is still to come
	Times  bool   // put when it was printed before each line: RFC 3339 in UTC, or "-", and a space. Offset counts none of that
}

// Logs opens a task's log. With Follow it ends when the task has ended and
// all was read. A read that fails half way returns an error that is not
// io.EOF.
func (c *Client) Logs(ctx context.Context, allocID string, options LogOptions) (io.ReadCloser, error) {
	values := url.Values{}
	if options.Stream != "" {
		values.Set("stream", options.Stream)
	}
	if options.Offset != 0 {
		values.Set("offset", strconv.FormatInt(options.Offset, 10))
	}
	if options.Tail > 0 {
		values.Set("tail", strconv.Itoa(options.Tail))
	}
	if options.Follow {
		values.Set("follow", "true")
	}
	if options.Times {
		values.Set("times", "true")
	}
	response, err := c.send(ctx, call{method: http.MethodGet, path: AllocationsLogs.path(allocID), query: values, repeat: true})
	if err != nil {
		return nil, err
	}
	return &logReader{body: response.Body, trailer: response.Trailer}, nil
}

// TrailerError is the HTTP trailer in which a stream tells, as a JSON
// structs.Error, why it broke off.
const TrailerError = "X-Nomadlike-Error"

// logReader reads a log's bytes and turns the trailer into an error.
type logReader struct {
	body    io.ReadCloser
	trailer http.Header // filled by net/http when the body has ended
}

func (r *logReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if errors.Is(err, io.EOF) {
		if text := r.trailer.Get(TrailerError); text != "" {
			failure := new(structs.Error)
			if json.Unmarshal([]byte(text), failure) == nil {
				return n, failure
			}
		}
	}
	return n, err
}

func (r *logReader) Close() error { return r.body.Close() }
