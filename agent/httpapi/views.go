package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
)

// Bounds of the answers that are kept.
const (
	viewsMax     = 16       // of one picture
	viewBytesMax = 16 << 20 // of one answer
)

// views keeps what was answered from the newest picture as it goes out, for the
// next who asks the same and may see the same: of a long queue an answer has
// megabytes, and writing it as JSON takes longer than all else.
type views struct {
	mu struct {
		sync.Mutex
		of   *server.Picture
		made map[string]*view
	}
}

// view is one answer.
type view struct {
	once sync.Once
	data []byte
	err  error
}

// get gives the answer of a key from a picture, and makes it when nobody has.
func (v *views) get(of *server.Picture, key string, draw func() any) ([]byte, error) {
	one := v.keep(of, key)
	one.once.Do(func() {
		one.data, one.err = json.Marshal(draw())
		one.data = append(one.data, '\n')
		if len(one.data) > viewBytesMax {
			v.forget(of, key)
		}
	})
	return one.data, one.err
}

// keep finds a place for an answer; when there is none, one that nobody else has.
func (v *views) keep(of *server.Picture, key string) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.of != of {
		if v.mu.of != nil && of.At < v.mu.of.At {
			return new(view) // of who asked long ago
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

func (v *views) forget(of *server.Picture, key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.of == of {
		delete(v.mu.made, key)
	}
}

// replyView answers from a picture. key names the question and all that the
// caller may see of the answer; draw makes the answer.
func (s *handlers) replyView(r *front.Request, of *server.Picture, key string, draw func() any) error {
	data, err := s.views.get(of, key, draw)
	if err != nil {
		return fmt.Errorf("encode answer of %s: %w", r.Route.Name, err)
	}
	r.Writer.Header().Set("Content-Type", "application/json; charset=utf-8")
	r.Writer.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = r.Writer.Write(data) // the caller went away: nothing to do about it
	return nil
}

// readsAll reports whether the caller may read every job there is: also one that is
// nobody's friend, in a project that is not theirs.
func readsAll(r *front.Request) bool {
	stranger := auth.Object{Kind: auth.ObjectJob, ID: "·", Project: "·", Owner: "·"}
	return auth.Allowed(r.Caller.Principal, auth.VerbRead, stranger).Allow
}
