package structs

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// ErrorCode is the kind of a failure. Codes are append-only: they cross the
// wire, become HTTP statuses (see HTTPStatus) and decide exit codes.
type ErrorCode string

// The kinds of failures that leave an agent.
const (
	CodeInvalid      ErrorCode = "invalid"       // the request is malformed or breaks a rule
	CodeUnauthorized ErrorCode = "unauthorized"  // no or unknown credentials
	CodeForbidden    ErrorCode = "forbidden"     // known principal, verb not allowed
	CodeNotFound     ErrorCode = "not_found"     // no such object, or hidden from the caller
	CodeConflict     ErrorCode = "conflict"      // the object's state does not allow the change
	CodeUnavailable  ErrorCode = "unavailable"   // no leader, node away, or a full disk: try again
	CodeTimeout      ErrorCode = "timeout"       // the outcome is unknown: ask before repeating
	CodeNotAvailable ErrorCode = "not_available" // a named feature that this version does not have yet
	CodeTooLarge     ErrorCode = "too_large"     // over a named limit
	CodeInternal     ErrorCode = "internal"      // a defect of nomadlike
)

// ErrorCodes lists every code, in the order of their HTTP statuses.
func ErrorCodes() []ErrorCode {
	return []ErrorCode{
		CodeInvalid, CodeUnauthorized, CodeForbidden, CodeNotFound, CodeConflict, CodeTooLarge, CodeNotAvailable, CodeInternal, CodeUnavailable, CodeTimeout,
	}
}

// HTTPStatus is the status line of an answer that carries this code.
func (c ErrorCode) HTTPStatus() int {
	switch c {
	case CodeInvalid:
		return 400
	case CodeUnauthorized:
		return 401
	case CodeForbidden:
		return 403
	case CodeNotFound:
		return 404
	case CodeConflict:
		return 409
	case CodeTooLarge:
		return 413
	case CodeNotAvailable:
		return 422
	case CodeUnavailable:
		return 503
	case CodeTimeout:
		return 504
	default:
		return 500
	}
}

// Error is a failure that a person or a program outside the agent will see.
// ID names a text of the message catalogue (internal/messages) and Params
// fill it, so that every reader renders it in their own language; Code tells
// programs what kind it is. Details holds further problems found together
// with the first, for instance all diagnostics of a job file.
type Error struct {
	Code    ErrorCode         `json:"code"`
	ID      string            `json:"id"`
	Params  map[string]string `json:"params,omitempty"`
	Message string            `json:"message,omitempty"` // English rendering, filled at the door
	Hint    string            `json:"hint,omitempty"`    // English rendering of ID+".hint", filled at the door
	Details []Error           `json:"details,omitempty"`

	cause error
}

// NewError returns an Error with the given kind and message id. Params come
// as pairs: name, value, name, value; values are formatted with %v.
func NewError(code ErrorCode, id string, params ...any) *Error {
	e := &Error{Code: code, ID: id}
	for i := 0; i+1 < len(params); i += 2 {
		if e.Params == nil {
			e.Params = make(map[string]string, len(params)/2)
		}
		e.setParam(fmt.Sprint(params[i]), params[i+1])
	}
	return e
}

// setParam keeps one parameter. Of an error that names a text of the catalogue
// that name is kept too, with its parameters, under names made of this one: so
// messages.Text can say it in the reader's language.
func (e *Error) setParam(name string, value any) {
	e.Params[name] = fmt.Sprint(value)
	err, ok := value.(error)
	var inner *Error
	if !ok || !errors.As(err, &inner) {
		return
	}
	e.Params[name+"_id"] = inner.ID
	for key, text := range inner.Params {
		e.Params[name+"."+key] = text
	}
}

// Told returns what the failure says, for whoever renders it within another text.
func (e *Error) Told() (id string, params map[string]string) { return e.ID, e.Params }

// Because records what caused e, for errors.Is and errors.As on this side of
// the wire, and returns e. The cause itself never crosses the wire.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// Error renders the failure without the catalogue: the English message when
// it is known, else the id with its parameters in order of their names.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Message != "" {
		b.WriteString(e.Message)
	} else {
		b.WriteString(e.ID)
		names := make([]string, 0, len(e.Params))
		for name := range e.Params {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			fmt.Fprintf(&b, " %s=%s", name, e.Params[name])
		}
	}
	if e.cause != nil {
		b.WriteString(": ")
		b.WriteString(e.cause.Error())
	}
	return b.String()
}

// Unwrap returns the local cause, if any.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf is the code of the first *Error in err's chain, CodeInternal when
// there is none, and "" for nil.
func CodeOf(err error) ErrorCode {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// IsLasting reports whether err is a refusal that lasts until somebody has done
// something about a machine, so that trying again at once is no use.
func IsLasting(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && strings.HasSuffix(refused.ID, ".disk_full")
}
