package deviceplugin

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/proto"
)

// sentinels pairs the contract's errors with their kinds on the wire.
func sentinels() map[proto.CallError_Kind]error {
	return map[proto.CallError_Kind]error{
		proto.CallError_KIND_UNKNOWN_DEVICE: device.ErrUnknownDevice,
		proto.CallError_KIND_BUSY:           device.ErrBusy,
		proto.CallError_KIND_UNSUPPORTED:    device.ErrUnsupported,
		proto.CallError_KIND_UNAVAILABLE:    device.ErrUnavailable,
	}
}

// toStatus makes an error of the plugin ready for the wire.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	detail := &proto.CallError{}
	var user *structs.Error
	switch {
	case errors.As(err, &user):
		detail.Kind = proto.CallError_KIND_USER
		detail.User = &proto.UserError{Code: string(user.Code), Id: user.ID, Params: user.Params}
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

// complaintMax bounds what a plugin's own words add to an error.
const complaintMax = 500

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
		return fmt.Errorf("call device plugin: %w: %w", device.ErrUnavailable, err)
	}
	for _, detail := range s.Details() {
		if told, ok := detail.(*proto.CallError); ok {
			return fromCallError(told, s.Message())
		}
	}
	switch s.Code() {
	case codes.Unimplemented:
		return device.ErrUnsupported
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted, codes.Internal:
		return fmt.Errorf("call device plugin: %w: %.*s", device.ErrUnavailable, complaintMax, s.Message())
	default:
		return fmt.Errorf("device plugin: %.*s", complaintMax, s.Message())
	}
}

func fromCallError(told *proto.CallError, text string) error {
	if user := told.GetUser(); told.GetKind() == proto.CallError_KIND_USER && user != nil {
		return &structs.Error{Code: structs.ErrorCode(user.GetCode()), ID: user.GetId(), Params: user.GetParams()}
	}
	if sentinel, ok := sentinels()[told.GetKind()]; ok {
		return fmt.Errorf("device plugin: %w: %.*s", sentinel, complaintMax, text)
	}
	return fmt.Errorf("device plugin: %.*s", complaintMax, text)
}
