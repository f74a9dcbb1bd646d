package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Errors travel in a trailer of their own; the gRPC status beside them only
// serves people who look at the wire.
const (
	errorTrailer   = "nomadlike-error-bin"
	errorSizeMax   = 64 << 10 // bytes of an encoded error; details beyond are dropped
	statusTextMax  = 512      // bytes of the status text
	errorDetailMax = 100      // details that cross
)

// outgoingError turns what a handler returned into what crosses the wire.
// Failures that are no *structs.Error become CodeInternal, with their text,
// since only agents of the cluster can read it.
func outgoingError(err error) (metadata.MD, error) {
	var failure *structs.Error
	if !errors.As(err, &failure) {
		failure = wrapForeign(err)
	}
	sent := *failure
	if len(sent.Details) > errorDetailMax {
		sent.Details = sent.Details[:errorDetailMax]
	}
	data, marshalErr := wire.Marshal(&sent)
	if marshalErr == nil && len(data) > errorSizeMax {
		sent.Details = nil
		data, marshalErr = wire.Marshal(&sent)
	}
	if marshalErr != nil || len(data) > errorSizeMax {
		sent = structs.Error{Code: failure.Code, ID: "rpc.internal", Params: map[string]string{"cause": "the error is too large to send"}}
		if data, marshalErr = wire.Marshal(&sent); marshalErr != nil {
			panic(fmt.Sprintf("rpc: encode a plain error: %v", marshalErr))
		}
	}
	text := failure.Error()
	if len(text) > statusTextMax {
		text = text[:statusTextMax]
	}
	return metadata.Pairs(errorTrailer, string(data)), status.Error(grpcCode(failure.Code), text)
}

// wrapForeign adds a code to errors that carry none.
func wrapForeign(err error) *structs.Error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return structs.NewError(structs.CodeTimeout, "rpc.timeout").Because(err)
	case errors.Is(err, context.Canceled):
		return structs.NewError(structs.CodeTimeout, "rpc.canceled").Because(err)
	case status.Code(err) == codes.ResourceExhausted:
		return structs.NewError(structs.CodeTooLarge, "rpc.too_large", "limit", wire.MessageSizeMax).Because(err)
	default:
		return structs.NewError(structs.CodeInternal, "rpc.internal", "cause", err.Error()).Because(err)
	}
}

func grpcCode(code structs.ErrorCode) codes.Code {
	switch code {
	case structs.CodeInvalid:
		return codes.InvalidArgument
	case structs.CodeUnauthorized:
		return codes.Unauthenticated
	case structs.CodeForbidden:
		return codes.PermissionDenied
	case structs.CodeNotFound:
		return codes.NotFound
	case structs.CodeConflict:
		return codes.FailedPrecondition
	case structs.CodeUnavailable:
		return codes.Unavailable
	case structs.CodeTimeout:
		return codes.DeadlineExceeded
	case structs.CodeNotAvailable:
		return codes.Unimplemented
	case structs.CodeTooLarge:
		return codes.ResourceExhausted
	default:
		return codes.Internal
	}
}

// incomingError turns what gRPC reports at the caller into a *structs.Error.
// sent reports whether the request may have left this agent.
func incomingError(err error, trailer metadata.MD, method, addr string, sent bool) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if values := trailer.Get(errorTrailer); len(values) == 1 && len(values[0]) <= errorSizeMax {
		failure := new(structs.Error)
		if wire.Unmarshal([]byte(values[0]), failure) == nil && failure.Code != "" {
			return failure
		}
	}
	params := []any{"method", method, "addr", addr}
	text := status.Convert(err).Message()
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		return structs.NewError(structs.CodeTimeout, "rpc.timeout", params...).Because(context.DeadlineExceeded)
	case codes.Canceled:
		return structs.NewError(structs.CodeTimeout, "rpc.canceled", params...).Because(context.Canceled)
	case codes.Unavailable:
		if sent {
			return structs.NewError(structs.CodeTimeout, "rpc.broken", params...).Because(err)
		}
		return structs.NewError(structs.CodeUnavailable, "rpc.unavailable", append(params, "cause", text)...).Because(err)
	case codes.ResourceExhausted:
		return structs.NewError(structs.CodeTooLarge, "rpc.too_large", append(params, "limit", wire.MessageSizeMax)...).Because(err)
	case codes.Unimplemented:
		return structs.NewError(structs.CodeNotAvailable, "rpc.unknown_method", params...).Because(err)
	default:
		return structs.NewError(structs.CodeInternal, "rpc.internal", append(params, "cause", text)...).Because(err)
	}
}
