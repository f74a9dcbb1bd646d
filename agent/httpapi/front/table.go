package front

import (
	"maps"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
)

// idLengthMax bounds an id or name in a path, in bytes.
const idLengthMax = 128

// Table maps endpoints to what is done for them. An endpoint, what finds the
// object of its requests and its handler meet in Read, Write, WriteFrom or
// Stream, or in the forms of these for found objects. There the compiler compares
// the types of the body, of what is found and of the answer.
type Table struct {
	entries map[string]entry // by the route's name
	through func(Handler) Handler
}

// entry is what a table has for a route.
type entry struct {
	open    func() call
	through func(Handler) Handler
}

// call is one request on its way through an endpoint. Its body and what it is about
// have types that only the closures know.
type call struct {
	into   any                                 // what the JSON body is read into; nil: there is none
	find   func(*Request) (auth.Object, error) // what is judged; again whenever it is judged anew
	handle Handler
}

// NewTable makes an empty table.
func NewTable() *Table {
	return &Table{entries: map[string]entry{}, through: func(h Handler) Handler { return h }}
}

// Through is the same table for handlers that stand behind another one.
func (t *Table) Through(wrap func(Handler) Handler) *Table {
	return &Table{entries: t.entries, through: wrap}
}

// add takes an endpoint in, whose object is found in one of some ways. An endpoint
// that is there already, or whose route says another source, is a defect of the
// program.
func (t *Table) add(route api.Route, open func() call, from ...api.Source) {
	if t.entries[route.Name].open != nil {
		panic("front: route " + route.Name + " has two handlers")
	}
	known := false
	for _, one := range from {
		known = known || one == route.From
	}
	if !known {
		panic("front: the object of route " + route.Name + " is not found by " + string(route.From))
	}
	t.entries[route.Name] = entry{open: open, through: t.through}
}

// with is the table with the entries of another one.
func (t *Table) with(other *Table) map[string]entry {
	all := maps.Clone(t.entries)
	maps.Copy(all, other.entries)
	return all
}

// Finder finds what a request is about, so that it can be judged.
type Finder[Found any] struct {
	From api.Source // of the routes that it is for
	// Find finds the object, and what the policy is asked about. It sets the
	// request's ID to the full one. It must not tell apart what does not exist and
	// what the caller may not see. It is asked again when the request is judged anew.
	Find func(*Request) (Found, auth.Object, error)
}

// Section is a part of a table, of the endpoints about objects of one type.
type Section[Found any] struct {
	table  *Table
	finder Finder[Found]
}

// About is the part of a table for what a finder finds.
func About[Found any](t *Table, finder Finder[Found]) Section[Found] {
	return Section[Found]{table: t, finder: finder}
}

// Read has a handler answer an endpoint without a body, about a kind as a whole or
// what the path names.
func Read[Response any, A Answer[Response]](t *Table, e api.Endpoint[api.None, Response], handle func(*Request) (A, error)) {
	t.add(e.Route(), func() call {
		return call{find: findKind, handle: func(r *Request) error {
			answer, err := handle(r)
			return reply[Response](r, answer, err)
		}}
	}, api.FromKind, api.FromProject)
}

// Write is Read of an endpoint with a JSON body. The body is the request's own: a
// request that is judged anew keeps what was changed in it.
func Write[Body, Response any, A Answer[Response]](t *Table, e api.Endpoint[Body, Response], handle func(*Request, *Body) (A, error)) {
	t.add(e.Route(), func() call {
		body := new(Body)
		return call{into: body, find: findKind, handle: func(r *Request) error {
			answer, err := handle(r, body)
			return reply[Response](r, answer, err)
		}}
	}, api.FromKind, api.FromProject)
}

// Stream is Read with a handler that writes the answer by itself.
func Stream[Response any](t *Table, e api.Endpoint[api.None, Response], handle func(*Request) error) {
	t.add(e.Route(), func() call { return call{find: findKind, handle: handle} }, api.FromKind, api.FromProject)
}

// WriteFrom is Write of an endpoint whose object is made from its body. The handler
// gets what was made.
func WriteFrom[Body, Found, Response any, A Answer[Response]](t *Table, e api.Endpoint[Body, Response],
	find func(*Request, *Body) (Found, auth.Object, error), handle func(*Request, Found) (A, error),
) {
	t.add(e.Route(), func() call {
		body := new(Body)
		var found Found
		return call{
			into: body,
			find: func(r *Request) (object auth.Object, err error) {
				found, object, err = find(r, body)
				return object, err
			},
			handle: func(r *Request) error {
				answer, err := handle(r, found)
				return reply[Response](r, answer, err)
			},
		}
	}, api.FromBody)
}

// ReadOf is Read about a found object.
func ReadOf[Found, Response any, A Answer[Response]](s Section[Found], e api.Endpoint[api.None, Response], handle func(*Request, Found) (A, error)) {
	s.add(e.Route(), func(found *Found) call {
		return call{handle: func(r *Request) error {
			answer, err := handle(r, *found)
			return reply[Response](r, answer, err)
		}}
	})
}

// WriteOf is Write about a found object.
func WriteOf[Found, Body, Response any, A Answer[Response]](s Section[Found], e api.Endpoint[Body, Response],
	handle func(*Request, Found, *Body) (A, error),
) {
	s.add(e.Route(), func(found *Found) call {
		body := new(Body)
		return call{into: body, handle: func(r *Request) error {
			answer, err := handle(r, *found, body)
			return reply[Response](r, answer, err)
		}}
	})
}

// StreamOf is Stream about a found object.
func StreamOf[Found, Response any](s Section[Found], e api.Endpoint[api.None, Response], handle func(*Request, Found) error) {
	s.add(e.Route(), func(found *Found) call {
		return call{handle: func(r *Request) error { return handle(r, *found) }}
	})
}

// AnswerOf is WriteOf with a handler that writes the answer by itself.
func AnswerOf[Found, Body, Response any](s Section[Found], e api.Endpoint[Body, Response], handle func(*Request, Found, *Body) error) {
	s.add(e.Route(), func(found *Found) call {
		body := new(Body)
		return call{into: body, handle: func(r *Request) error { return handle(r, *found, body) }}
	})
}

// add takes an endpoint in. open is given where the object is, once it is found.
func (s Section[Found]) add(route api.Route, open func(*Found) call) {
	s.table.add(route, func() call {
		found := new(Found)
		c := open(found)
		c.find = func(r *Request) (object auth.Object, err error) {
			*found, object, err = s.finder.Find(r)
			return object, err
		}
		return c
	}, s.finder.From)
}

// findKind is what a request is about that names no record: a kind as a whole, or a
// project, whether or not it has a record.
func findKind(r *Request) (auth.Object, error) {
	kind := auth.ObjectKind(r.Route.Kind)
	if r.Route.From != api.FromProject {
		return auth.Object{Kind: kind}, nil
	}
	if !PlausibleID(r.ID) {
		return auth.Object{}, auth.NotFound(kind, r.ID)
	}
	return auth.Object{Kind: kind, Project: r.ID, ID: r.ID}, nil
}

// PlausibleID reports whether a text may be an id or a name.
func PlausibleID(id string) bool {
	if id == "" || len(id) > idLengthMax {
		return false
	}
	return !strings.ContainsFunc(id, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	})
}
