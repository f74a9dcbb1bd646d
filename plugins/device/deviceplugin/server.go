package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/proto"
)

// server answers a host's calls with a plugin, once that is configured.
type server struct {
	proto.UnimplementedDeviceServiceServer
	name string
	open Open

	mu struct {
		sync.Mutex
		impl device.Plugin
	}
}

func (s *server) Info(context.Context, *proto.InfoRequest) (*proto.InfoResponse, error) {
	return &proto.InfoResponse{Name: s.name}, nil
}

func (s *server) Configure(_ context.Context, r *proto.ConfigureRequest) (*proto.ConfigureResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.impl != nil {
		return nil, toStatus(errors.New("configure: done already"))
	}
	impl, err := s.open(Setup{Config: r.GetConfig(), StateDir: r.GetStateDir()})
	if err != nil {
		return nil, toStatus(fmt.Errorf("configure: %w", err))
	}
	s.mu.impl = impl
	return &proto.ConfigureResponse{}, nil
}

// plugin returns what Configure has made.
func (s *server) plugin() (device.Plugin, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.impl == nil {
		return nil, toStatus(fmt.Errorf("%w: not configured yet", device.ErrUnavailable))
	}
	return s.mu.impl, nil
}

func (s *server) Fingerprint(_ *proto.FingerprintRequest, stream grpc.ServerStreamingServer[proto.FingerprintResponse]) error {
	impl, err := s.plugin()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	snapshots, err := impl.Fingerprint(ctx)
	if err != nil {
		return toStatus(err)
	}
	for snapshot := range snapshots {
		if err := stream.Send(snapshotToProto(&snapshot)); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) Reserve(ctx context.Context, r *proto.ReserveRequest) (*proto.ReserveResponse, error) {
	impl, err := s.plugin()
	if err != nil {
		return nil, err
	}
	reservation, err := impl.Reserve(ctx, r.GetIds())
	if err != nil {
		return nil, toStatus(err)
	}
	return reservationToProto(&reservation), nil
}

func (s *server) Stats(r *proto.StatsRequest, stream grpc.ServerStreamingServer[proto.StatsResponse]) error {
	impl, err := s.plugin()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	measured, err := impl.Stats(ctx, max(time.Duration(r.GetEveryNs()), device.StatsEveryMin))
	if err != nil {
		return toStatus(err)
	}
	for stats := range measured {
		if err := stream.Send(statsToProto(&stats)); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) Reap(ctx context.Context, r *proto.ReapRequest) (*proto.ReapResponse, error) {
	impl, err := s.plugin()
	if err != nil {
		return nil, err
	}
	report, err := impl.Reap(ctx, reapingFromProto(r))
	if err != nil {
		return nil, toStatus(err)
	}
	return reportToProto(&report), nil
}

func (s *server) healer() (device.Healer, error) {
	impl, err := s.plugin()
	if err != nil {
		return nil, err
	}
	healer, ok := impl.(device.Healer)
	if !ok {
		return nil, toStatus(device.ErrUnsupported)
	}
	return healer, nil
}

func (s *server) Heal(ctx context.Context, r *proto.HealRequest) (*proto.HealResponse, error) {
	healer, err := s.healer()
	if err != nil {
		return nil, err
	}
	return &proto.HealResponse{}, toStatus(healer.Heal(ctx, r.GetIds()))
}

func (s *server) Clear(ctx context.Context, r *proto.ClearRequest) (*proto.ClearResponse, error) {
	healer, err := s.healer()
	if err != nil {
		return nil, err
	}
	return &proto.ClearResponse{}, toStatus(healer.Clear(ctx, r.GetIds()))
}
