package deviceplugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/proto"
)

// Deadlines of calls to a plugin. A caller's own may be shorter.
const (
	CallTimeout = 15 * time.Second
	// HealTimeout is long because a reset of several devices is.
	HealTimeout = 5 * time.Minute
)

// Client is a device plugin in another process. It implements device.Plugin
// and device.Healer; its methods may be called from any goroutine.
type Client struct {
	service proto.DeviceServiceClient
}

// Ping asks the plugin for its name, which reports whether it is alive.
func (c *Client) Ping(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	info, err := c.service.Info(ctx, &proto.InfoRequest{})
	if err != nil {
		return "", fmt.Errorf("ping device plugin: %w: %w", device.ErrUnavailable, err)
	}
	return info.GetName(), nil
}

// Configure hands the plugin its configuration. The host calls it once, first.
func (c *Client) Configure(ctx context.Context, setup Setup) error {
	_, err := call(ctx, CallTimeout, c.service.Configure, &proto.ConfigureRequest{Config: setup.Config, StateDir: setup.StateDir})
	return err
}

// Fingerprint hands the plugin's snapshots on, cut to their limits. When the
// plugin dies the channel is closed, too.
func (c *Client) Fingerprint(ctx context.Context) (<-chan device.Snapshot, error) {
	stream, err := c.service.Fingerprint(ctx, &proto.FingerprintRequest{})
	if err != nil {
		return nil, fromStatus(ctx, err)
	}
	return receive(ctx, stream, func(p *proto.FingerprintResponse) device.Snapshot {
		snapshot := snapshotFromProto(p)
		if dropped := snapshot.Bound(); len(dropped) > 0 {
			if snapshot.Attributes == nil {
				snapshot.Attributes = make(map[string]string, 1)
			}
			text := strings.Join(dropped, "; ")
			snapshot.Attributes[AttributeDropped] = text[:min(len(text), device.TextMax)]
		}
		return snapshot
	}), nil
}

// AttributeDropped is a key of Snapshot.Attributes: what was left out of the
// plugin's report because it was malformed or too much.
const AttributeDropped = "dropped"

// receive hands the messages of a stream on until it or ctx ends.
func receive[P, T any](ctx context.Context, stream grpc.ServerStreamingClient[P], convert func(*P) T) <-chan T {
	values := make(chan T)
	go func() { // ends with ctx or with the plugin
		defer close(values)
		for {
			message, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case values <- convert(message):
			case <-ctx.Done():
				return
			}
		}
	}()
	return values
}

// Reserve asks what a task needs to see devices. A malformed answer is an
// error.
func (c *Client) Reserve(ctx context.Context, ids []string) (device.Reservation, error) {
	response, err := call(ctx, CallTimeout, c.service.Reserve, &proto.ReserveRequest{Ids: ids})
	if err != nil {
		return device.Reservation{}, err
	}
	reservation := reservationFromProto(response)
	if err := reservation.Bound(); err != nil {
		return device.Reservation{}, fmt.Errorf("reserve devices: %w", err)
	}
	return reservation, nil
}

// Stats hands measurements on.
func (c *Client) Stats(ctx context.Context, every time.Duration) (<-chan device.Stats, error) {
	stream, err := c.service.Stats(ctx, &proto.StatsRequest{EveryNs: every.Nanoseconds()})
	if err != nil {
		return nil, fromStatus(ctx, err)
	}
	return receive(ctx, stream, func(p *proto.StatsResponse) device.Stats {
		stats := statsFromProto(p)
		stats.Bound()
		return stats
	}), nil
}

// Reap has devices cleaned.
func (c *Client) Reap(ctx context.Context, request device.Reaping) (device.ReapReport, error) {
	limit := request.Limit
	if limit <= 0 {
		limit = device.ReapLimitDefault
	}
	request.Limit = min(limit, device.ReapLimitMax)
	response, err := call(ctx, request.Limit+CallTimeout, c.service.Reap, reapingToProto(&request))
	if err != nil {
		return device.ReapReport{}, err
	}
	report := reportFromProto(response)
	report.Bound()
	return report, nil
}

// Heal has devices reset and tested.
func (c *Client) Heal(ctx context.Context, ids []string) error {
	_, err := call(ctx, HealTimeout, c.service.Heal, &proto.HealRequest{Ids: ids})
	return err
}

// Clear has the faults of devices forgotten.
func (c *Client) Clear(ctx context.Context, ids []string) error {
	_, err := call(ctx, CallTimeout, c.service.Clear, &proto.ClearRequest{Ids: ids})
	return err
}

// call makes a unary call with a deadline and the contract's errors.
func call[Q, R any](ctx context.Context, limit time.Duration, method func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) (R, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	response, err := method(limited, request)
	return response, fromStatus(ctx, err)
}
