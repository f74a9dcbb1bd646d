package front

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strconv"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// Bounds of queries.
const (
	waitDefault  = 5 * time.Minute
	waitMax      = 10 * time.Minute
	jsonDepthMax = 64
)

// decodeBody reads the JSON body of a request that has one into a value. Unknown fields
// and trailing bytes are refused, so a typing error is told, not ignored. The
// returned function says that the request was answered.
func (f *Front) decodeBody(r *Request, into any) (func(), error) {
	nothing := func() {}
	if into == nil {
		return nothing, nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nothing, structs.NewError(structs.CodeInvalid, "agent.content_type", "type", strconv.Quote(r.Header.Get("Content-Type")))
	}
	held, err := f.readBody(r)
	if err != nil {
		r.Writer.Header().Set("Connection", "close") // what comes behind is no request
		return held.release, err
	}
	if err := DecodeJSON(held.data, into); err != nil {
		return held.release, malformed(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(held.data)) // for the leader, where that answers
	return held.release, nil
}

func malformed(err error) *structs.Error {
	return structs.NewError(structs.CodeInvalid, "agent.body_malformed", "reason", err)
}

// DecodeJSON reads one JSON value that every decoder understands in the same
// way, with no field that into does not have.
func DecodeJSON(data []byte, into any) error {
	if err := CheckJSON(data); err != nil {
		return err
	}
	return StrictJSON(data, into)
}

// StrictJSON reads JSON into a value, and refuses a field that into does not have.
func StrictJSON(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// CheckJSON refuses what decoders disagree about or suffer from: a key twice
// in one object, and deep nesting.
func CheckJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var open []map[string]bool // keys of the open objects; nil for an array
	wantKey := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch value := token.(type) {
		case json.Delim:
			switch value {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			if len(open) > jsonDepthMax {
				return fmt.Errorf("nested deeper than %d", jsonDepthMax)
			}
			wantKey = len(open) > 0 && open[len(open)-1] != nil
			continue
		case string:
			if wantKey {
				keys := open[len(open)-1]
				if keys[value] {
					return fmt.Errorf("key %q stands twice in one object", value)
				}
				keys[value] = true
				wantKey = false
				continue
			}
		}
		wantKey = len(open) > 0 && open[len(open)-1] != nil
	}
}

// Query reads the parameters of a request; the first malformed one is kept.
type Query struct {
	R   *Request
	Err error
}

// Text returns a parameter as it stands, "" when there is none.
func (q *Query) Text(name string) string { return q.R.URL.Query().Get(name) }

// Refuse keeps that a parameter is malformed, unless another one was before it.
func (q *Query) Refuse(name, value string) {
	if q.Err == nil {
		q.Err = structs.NewError(structs.CodeInvalid, "agent.query_malformed", "name", name, "value", strconv.Quote(value))
	}
}

// Uint returns a number, 0 when there is none.
func (q *Query) Uint(name string) uint64 {
	value := q.Text(name)
	if value == "" {
		return 0
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		q.Refuse(name, value)
	}
	return n
}

// Int returns a number from low to high, 0 when there is none.
func (q *Query) Int(name string, low, high int64) int64 {
	value := q.Text(name)
	if value == "" {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < low || n > high {
		q.Refuse(name, value)
	}
	return n
}

// Bool reports whether a parameter is set; its name alone sets it.
func (q *Query) Bool(name string) bool {
	value := q.Text(name)
	switch {
	case value == "" && !q.R.URL.Query().Has(name):
		return false
	case value == "":
		return true // ?stale
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		q.Refuse(name, value)
	}
	return b
}

// Wait returns how long the caller waits for a change.
func (q *Query) Wait() time.Duration { return q.Span("wait", waitDefault, waitMax) }

// Span is a span of time from 0 to high.
func (q *Query) Span(name string, otherwise, high time.Duration) time.Duration {
	value := q.Text(name)
	if value == "" {
		return otherwise
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > high {
		q.Refuse(name, value)
	}
	return d
}

// Limit returns how many items a page has at most.
func (q *Query) Limit() int {
	n := int(q.Int("limit", 1, api.PageSizeMax))
	if n == 0 {
		return api.PageSizeDefault
	}
	return n
}
