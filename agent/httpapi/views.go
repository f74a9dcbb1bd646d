package httpapi

import (
	"encoding/json"
	"fmt"
	"sync"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
)

// Bounds of the answers that are kept.
const (
	viewsMax     = 16       // of one forecast
	viewBytesMax = 16 << 20 // of one answer
)

// views keeps what was answered from the newest forecast as it goes out, for the
// next caller that asks the same and may see the same: of a long queue an answer has
// megabytes, and writing it as JSON takes longer than all else.
type views struct {
	mu struct {
		sync.Mutex
		of   *server.ForecastSnapshot
		made map[string]*view
	}
}

// view is one answer.
type view struct {
	once sync.Once
	data []byte
	err  error
}

// get returns the answer of a key from a forecast, and makes it when nobody has.
func (v *views) get(of *server.ForecastSnapshot, key string, draw func() ([]byte, error)) ([]byte, error) {
	one := v.keep(of, key)
	one.once.Do(func() {
		one.data, one.err = draw()
		if len(one.data) > viewBytesMax {
			v.forget(of, key)
		}
	})
	return one.data, one.err
}

// keep finds a place for an answer; when there is none, one that nobody else has.
func (v *views) keep(of *server.ForecastSnapshot, key string) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.of != of {
		if v.mu.of != nil && of.At < v.mu.of.At {
			return new(view) // of a caller of long ago
		}
		v.mu.of, v.mu.made = of, make(map[string]*view)
	}
	one := v.mu.made[key]
	if one == nil {
		one = new(view)
		if len(v.mu.made) < viewsMax {
			v.mu.made[key] = one
		}
	}
	return one
}

func (v *views) forget(of *server.ForecastSnapshot, key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.of == of {
		delete(v.mu.made, key)
	}
}

// drawn is an answer from a forecast. key names the question and all that the
// caller may see of the answer; draw makes the answer.
func drawn[Response any](v *views, of *server.ForecastSnapshot, key string, draw func() *Response) (*front.Encoded[Response], error) {
	data, err := v.get(of, key, func() ([]byte, error) {
		data, err := json.Marshal(draw())
		return append(data, '\n'), err
	})
	if err != nil {
		return nil, fmt.Errorf("encode what was drawn from a forecast: %w", err)
	}
	return &front.Encoded[Response]{Data: data}, nil
}

// readsAll reports whether the caller may read every job there is: also one that is
// nobody's friend, in a project that is not theirs.
func readsAll(r *front.Request) bool {
	stranger := auth.Object{Kind: auth.ObjectJob, ID: "·", Project: "·", Owner: "·"}
	return auth.Allowed(r.Caller.Principal, auth.VerbRead, stranger).Allow
}
