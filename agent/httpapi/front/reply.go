package front

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"nomadlike/nomadlike/api"
)

// Answer is what a handler answers with: a value, which is written as JSON, or one
// that was written before.
type Answer[Response any] interface {
	*Response | *Encoded[Response]
}

// Encoded is an answer that was written before, for the next caller that asks the
// same.
type Encoded[Response any] struct {
	Data []byte // JSON, with a newline at the end
}

// reply writes what a handler answered.
func reply[Response any, A Answer[Response]](r *Request, answer A, err error) error {
	if err != nil {
		return err
	}
	if encoded, ok := any(answer).(*Encoded[Response]); ok {
		r.Writer.Header().Set("Content-Length", strconv.Itoa(len(encoded.Data)))
		r.write(encoded.Data)
		return nil
	}
	return r.Reply(answer)
}

// Reply writes a JSON answer.
func (r *Request) Reply(answer any) error {
	data, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode answer of %s: %w", r.Route.Name, err)
	}
	r.write(append(data, '\n'))
	return nil
}

func (r *Request) write(data []byte) {
	r.Writer.Header().Set("Content-Type", "application/json; charset=utf-8")
	if r.unhealthy {
		r.Writer.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = r.Writer.Write(data) // the caller went away: nothing to do about it
}

// SetIndex tells the caller of which index of the log the answer is. It comes before
// the answer.
func (r *Request) SetIndex(index uint64) {
	r.Writer.Header().Set(api.HeaderIndex, strconv.FormatUint(index, 10))
}

// SetUnhealthy has the answer say by its status that the agent cannot do its work. It
// comes before the answer.
func (r *Request) SetUnhealthy() { r.unhealthy = true }
