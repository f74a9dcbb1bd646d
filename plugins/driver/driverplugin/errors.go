package driverplugin

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/proto"
)

// sentinels pairs the contract's errors with their kinds on the wire.
func sentinels() map[proto.CallError_Kind]error {
	return map[proto.CallError_Kind]error{
		proto.CallError_KIND_UNKNOWN_TASK: driver.ErrUnknownTask,
		proto.CallError_KIND_TASK_EXISTS:  driver.ErrTaskExists,
		proto.CallError_KIND_TASK_ENDED:   driver.ErrTaskEnded,
		proto.CallError_KIND_UNSUPPORTED:  driver.ErrUnsupported,
		proto.CallError_KIND_UNAVAILABLE:  driver.ErrUnavailable,
	}
}

// toStatus makes an error of the driver ready for the wire.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	detail := &proto.CallError{}
	var start *driver.StartError
	var user *structs.Error
	switch {
	case errors.As(err, &start):
		detail.Kind, detail.ExitCode, detail.User = proto.CallError_KIND_START, int64(start.ExitCode), userErrorToProto(start.Err)
	case errors.As(err, &user):
		detail.Kind, detail.User = proto.CallError_KIND_USER, userErrorToProto(user)
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	default:
		for kind, sentinel := range sentinels() {
			if errors.Is(err, sentinel) {
				detail.Kind = kind
			}
		}
	}
	s, detailErr := status.New(codes.Unknown, err.Error()).WithDetails(detail)
	if detailErr != nil {
		return status.Error(codes.Unknown, err.Error())
	}
	return s.Err()
}

// fromStatus returns the error that toStatus took, or says that the
// plugin itself cannot answer. ctx is the caller's own: when that has ended,
// its error counts.
func fromStatus(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s, ok := status.FromError(err)
	if !ok {
		return fmt.Errorf("call driver plugin: %w: %w", driver.ErrUnavailable, err)
	}
	for _, detail := range s.Details() {
		if told, ok := detail.(*proto.CallError); ok {
			return fromCallError(told, s.Message())
		}
	}
	switch s.Code() {
	case codes.Unimplemented:
		return driver.ErrUnsupported
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted, codes.Internal:
		return fmt.Errorf("call driver plugin: %w: %s", driver.ErrUnavailable, s.Message())
	default:
		return fmt.Errorf("driver plugin: %s", s.Message())
	}
}

func fromCallError(told *proto.CallError, text string) error {
	user := userErrorFromProto(told.GetUser())
	switch {
	case told.GetKind() == proto.CallError_KIND_START && user != nil:
		return &driver.StartError{ExitCode: int(told.GetExitCode()), Err: user}
	case told.GetKind() == proto.CallError_KIND_USER && user != nil:
		return user
	}
	if sentinel, ok := sentinels()[told.GetKind()]; ok {
		return fmt.Errorf("driver plugin: %w: %s", sentinel, text)
	}
	return fmt.Errorf("driver plugin: %s", text)
}
