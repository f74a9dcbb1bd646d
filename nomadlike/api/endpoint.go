package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// None stands for a body or a JSON answer that an endpoint does not have.
type None struct{}

// Endpoint is a route with the types of its body and its answer. Client methods
// and handlers are made from the same values, so that the compiler compares
// them: path, verb, body and answer are written once.
type Endpoint[Request, Response any] struct{ route Route }

// Route describes the endpoint as data.
func (e Endpoint[Request, Response]) Route() Route { return e.route }

// endpoint fills in the types of the route's body and answer.
func endpoint[Request, Response any](route Route) Endpoint[Request, Response] {
	var request Request
	var response Response
	if _, none := any(request).(None); !none {
		route.Request = request
	}
	if _, none := any(response).(None); !none {
		route.Response = response
	}
	return Endpoint[Request, Response]{route}
}

// path is the endpoint's path, with id in the place of {id}.
func (e Endpoint[Request, Response]) path(id string) string {
	return strings.Replace(e.route.Pattern, "{id}", url.PathEscape(id), 1)
}

// read gets an answer, and repeats the request where that helps. The id is ""
// for endpoints without one.
func read[Response any](ctx context.Context, c *Client, e Endpoint[None, Response], id string, query url.Values) (*Response, *Meta, error) {
	out := new(Response)
	meta, err := c.do(ctx, call{method: http.MethodGet, path: e.path(id), query: query, repeat: true}, out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// ask sends a question that changes nothing, and so may be repeated.
func ask[Request, Response any](ctx context.Context, c *Client, e Endpoint[Request, Response], id string, in Request) (*Response, error) {
	return post(ctx, c, e, call{path: e.path(id), repeat: true}, in)
}

// change has something done. It is repeated only while nothing was.
func change[Request, Response any](ctx context.Context, c *Client, e Endpoint[Request, Response], id string, in Request) (*Response, error) {
	return post(ctx, c, e, call{path: e.path(id)}, in)
}

// post sends a body, where the endpoint has one.
func post[Request, Response any](ctx context.Context, c *Client, e Endpoint[Request, Response], message call, in Request) (*Response, error) {
	if e.route.Request != nil {
		message.in = in
	}
	return send(ctx, c, e, message)
}

// send sends a message to an endpoint and reads its answer.
func send[Request, Response any](ctx context.Context, c *Client, e Endpoint[Request, Response], message call) (*Response, error) {
	message.method = e.route.Method
	out := new(Response)
	if _, err := c.do(ctx, message, out); err != nil {
		return nil, err
	}
	return out, nil
}
