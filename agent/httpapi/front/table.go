package front

import (
	"maps"

	"nomadlike/nomadlike/api"
)

// Table maps endpoints to their handlers. An endpoint and its handler meet in
// Read, Write or Stream, where the compiler compares the types of the body and
// of the answer.
type Table struct {
	handlers map[string]Handler // by the route's name
	through  func(Handler) Handler
}

// NewTable makes an empty table.
func NewTable() *Table {
	return &Table{handlers: map[string]Handler{}, through: func(h Handler) Handler { return h }}
}

// Through is the same table for handlers that stand behind another one.
func (t *Table) Through(wrap func(Handler) Handler) *Table {
	return &Table{handlers: t.handlers, through: wrap}
}

// add takes a handler in. An endpoint that has one already is a defect of the
// program.
func (t *Table) add(route api.Route, handle Handler) {
	if t.handlers[route.Name] != nil {
		panic("front: route " + route.Name + " has two handlers")
	}
	t.handlers[route.Name] = t.through(handle)
}

// with is the table with the handlers of another one.
func (t *Table) with(other *Table) map[string]Handler {
	all := maps.Clone(t.handlers)
	maps.Copy(all, other.handlers)
	return all
}

// Read has a handler answer an endpoint without a body.
func Read[Response any](t *Table, e api.Endpoint[api.None, Response], handle func(*Request) (*Response, error)) {
	t.add(e.Route(), func(r *Request) error {
		answer, err := handle(r)
		if err != nil {
			return err
		}
		return r.Reply(answer)
	})
}

// Write has a handler answer an endpoint with a JSON body. The body is the
// request's own: a request that is judged anew keeps what was changed in it.
func Write[Body, Response any](t *Table, e api.Endpoint[Body, Response], handle func(*Request, *Body) (*Response, error)) {
	t.add(e.Route(), func(r *Request) error {
		answer, err := handle(r, r.Asked.(*Body))
		if err != nil {
			return err
		}
		return r.Reply(answer)
	})
}

// Stream has a handler write the answer of an endpoint by itself.
func Stream[Response any](t *Table, e api.Endpoint[api.None, Response], handle func(*Request) error) {
	t.add(e.Route(), handle)
}
